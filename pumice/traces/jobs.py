"""Jobs under the controller of a simulation.

`reconcile` is called as in a cluster, and its plan is applied in memory. A Job is worked on when it is new, when its pods have changed, when the
phase of its PodGroup has and with it what passes read, and at the moment that a plan has named (`RequeueAfter`); other Jobs cost nothing.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence

from pumice.api.meta import Raw
from pumice.api.nodes import PodPriorities, PriorityClass, values_of
from pumice.api.podgroups import PodGroupStatus
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.api.raw import key_in
from pumice.controller.jobs.phases import PENDING, RUNNING, SOFT
from pumice.controller.jobs.reconcile import reconcile
from pumice.controller.jobs.situation import LIMITS, Limits, Observed
from pumice.controller.plan import DeleteObject, Plan, Step, UpdateObject
from pumice.plugins import Registry
from pumice.traces import plain_jobs
from pumice.traces.controlled_job import (
    ControlledJob,
    PlainKind,
    SeenByPass,
    job_of,
    with_status,
)
from pumice.traces.plan_execution import ControllerChanges, PlanExecution

ALL_AT_ONCE = Limits(window=LIMITS.max_pods)
"""Limits without windows: there is no API server to protect."""

PASSES = 8
"""Maximum number of plans in a row for a Job: objects, group, pods, status, and a reserve."""

_SHORTEST = 0.001
"""Seconds until a Job is due at the earliest: times in its status have whole seconds, moments do not."""


class ControlledJobs:
    """All Jobs that a controller takes care of.

    Attributes:
        jobs: The Jobs, by `namespace/name`.
    """

    def __init__(
        self,
        queues: Sequence[Queue],
        classes: Sequence[PriorityClass],
        registry: Registry,
        admitted: Callable[[Raw], Raw],
        *,
        drops_finished: bool = False,
    ) -> None:
        """Begin without Jobs.

        Args:
            queues: Queues that exist.
            classes: The priority classes.
            registry: The job plugins.
            admitted: A pod as an API server stores it.
            drops_finished: Whether a Job is removed with all that it owns as soon as it is over. No further plan is made for it
                then, nor after a plan that ends no phase: what that plan made is looked at when something changes.
        """
        self._drops_finished = drops_finished
        self._registry = registry
        self._queues = {queue.metadata.name: queue for queue in queues}
        self._priorities = values_of(classes)
        self._execution = PlanExecution(admitted, PodPriorities(classes))
        self._dues: list[tuple[float, str]] = []
        self._changed: dict[str, None] = {}
        self.jobs: dict[str, ControlledJob] = {}

    # -- what happens ------------------------------------------------------------------------

    def add(
        self, raw: Raw, groups: Mapping[str, Raw] | None = None, plain: PlainKind | None = None
    ) -> ControlledJob:
        """Take in a Job that is admitted.

        Args:
            raw: The Job.
            groups: PodGroups that exist, by `namespace/name`.
            plain: Its kind, if it is plain and dropped when it is over.
        """
        job = ControlledJob(raw, groups or {}, plain)
        if (queue := self._queues.get(job.queue)) is not None and queue.spec.extend_clusters:
            job.plain = None  # its pods are marked for other clusters
        self.jobs[job.key] = job
        self._changed[job.key] = None
        if job.group is not None:
            self._execution.of_groups[key_in(job.group)] = job
        return job

    def take(self, pods: Iterable[Pod]) -> None:
        """Take in pods that exist: those of the Jobs, and names that others have."""
        for pod in pods:
            self._execution.taken.add(pod.metadata.key)
            self.put(pod)

    def put(self, pod: Pod) -> bool:
        """Take in a pod that was changed by others than the controller; whether it is one of a Job."""
        job = self.jobs.get(job_of(pod))
        if job is None:
            return False
        job.pods[pod.metadata.key] = pod
        self._changed[job.key] = None
        return True

    def drop(self, pod: Pod) -> None:
        """Take in that a pod is gone."""
        key = pod.metadata.key
        self._execution.taken.discard(key)
        job = self.jobs.get(job_of(pod))
        if job is not None and job.pods.pop(key, None) is not None:
            self._changed[job.key] = None

    def set_statuses(self, statuses: Mapping[str, PodGroupStatus]) -> None:
        """Take in statuses of PodGroups by `namespace/name`."""
        for key, status in statuses.items():
            job = self._execution.of_groups.get(key)
            if job is not None and job.group is not None and job.set_group_status(status):
                self._changed[job.key] = None

    def remove(self, job: ControlledJob) -> None:
        """Forget a Job and its pods, as if it had been deleted with all that it owns."""
        del self.jobs[job.key]
        self._changed.pop(job.key, None)
        job.is_gone = True
        self._execution.forget(job)

    @property
    def next_due(self) -> float | None:
        """When a Job is due next, UNIX seconds; None if none is."""
        while self._dues:
            moment, key = self._dues[0]
            job = self.jobs.get(key)
            if job is not None and job.due == moment:
                return moment
            heapq.heappop(self._dues)
        return None

    @property
    def has_work(self) -> bool:
        """Whether something has changed since the last work."""
        return bool(self._changed)

    # -- the controller ----------------------------------------------------------------------

    def work(self, now: float) -> ControllerChanges:
        """Run the controller for the Jobs that have changed or are due, in the order in which they changed.

        Args:
            now: The moment, in UNIX seconds.
        """
        changes = ControllerChanges()
        while (moment := self.next_due) is not None and moment <= now:
            self._changed[heapq.heappop(self._dues)[1]] = None
        changed, self._changed = self._changed, {}
        for key in changed:
            if key in self.jobs:
                self._settle(self.jobs[key], changes, now)
        return changes

    def _settle(self, job: ControlledJob, changes: ControllerChanges, now: float) -> None:
        if job.plain is not None and self._put_off(job, changes, now):
            return
        job.pass_begins()
        for _ in range(PASSES):
            phase = job.phase
            seen = SeenByPass(tuple(job.pods.values()), job.group, job.group_status, now)
            steps, wake = self._execution.carry_out(self._plan(job, seen), job, changes, now)
            if job.is_gone:
                self.remove(job)
                return
            self._wake(job, None if wake is None else now + max(wake, _SHORTEST))
            if not steps or (job.is_finished and self._drops_finished):
                return
            if self._drops_finished and _is_done(phase, job, steps):
                return
        changes.unsettled.append(job.key)

    def _put_off(self, job: ControlledJob, changes: ControllerChanges, now: float) -> bool:
        """Do for a plain Job what a pass would do, without the pass; False if it needs one, after those that were put off."""
        if plain_jobs.end(job):
            changes.jobs[job.key] = job
            return True
        assert job.plain is not None
        if plain_jobs.put_off(job, job.plain, self._execution, self._priorities, changes, now):
            return True
        seen, job.seen, job.plain, job.read_status = job.seen, [], None, None
        for each in seen:
            if (status := self._plan(job, each).status) is not None:
                job.raw = job.raw | {"status": status}
        return False

    def _plan(self, job: ControlledJob, seen: SeenByPass) -> Plan:
        observed = Observed(
            job=job.raw,
            pods=seen.pods,
            group=with_status(seen.group, seen.status),
            objects=tuple(job.objects),
            queue=self._queues.get(job.queue),
            priorities=self._priorities,
        )
        return reconcile(observed, registry=self._registry, now=seen.moment, limits=ALL_AT_ONCE)

    def _wake(self, job: ControlledJob, moment: float | None) -> None:
        job.due = moment
        if moment is not None:
            heapq.heappush(self._dues, (moment, job.key))


def _is_done(before: str, job: ControlledJob, steps: set[type[Step]]) -> bool:
    """Whether a plan has done what is to be done in a phase: it removes nothing, and led to no other phase that begins with work.

    A Job that begins to run has none, unless pods of it have already ended.
    """
    if DeleteObject in steps or UpdateObject in steps:
        return False
    if before in ("", job.phase):
        return True
    return (before, job.phase) == (PENDING, RUNNING) and not any(
        pod.status.phase in SOFT for pod in job.pods.values()
    )
