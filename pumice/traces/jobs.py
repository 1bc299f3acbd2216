"""Jobs under the controller: its plans, applied in memory.

`reconcile` is called as in a cluster, and its plan is applied to the objects here. A Job is worked on when it is new, when its pods or the
phase of its PodGroup have changed, and at the moment that a plan has named (`RequeueAfter`); other Jobs cost nothing.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from pumice.api import keys
from pumice.api.kinds import JOB, POD, POD_GROUP, Kind
from pumice.api.meta import ObjectMeta, Raw, format_time
from pumice.api.names import pod_group_name
from pumice.api.nodes import PodPriorities, PriorityClass, values_of
from pumice.api.podgroups import PodGroup, PodGroupStatus
from pumice.api.pods import Pod, PodSpec, PodStatus
from pumice.api.queues import Queue
from pumice.controller.jobs.phases import ABORTED, FINISHED, PENDING, RUNNING, SOFT, phase_of
from pumice.controller.jobs.reconcile import reconcile
from pumice.controller.jobs.situation import LIMITS, Limits, Observed
from pumice.controller.objects import with_placeholders
from pumice.controller.plan import (
    CreateObject,
    DeleteObject,
    PatchStatus,
    Plan,
    RequeueAfter,
    Step,
    UpdateObject,
)
from pumice.plugins import Registry

__all__ = [
    "PASSES",
    "ControlledJob",
    "ControlledJobs",
    "ControllerChanges",
    "key_of",
    "without_uids",
]

ALL_AT_ONCE = Limits(window=LIMITS.max_pods)
"""Limits without windows: there is no API server to protect."""

PASSES = 8
"""Maximum number of plans in a row for a Job: objects, group, pods, status, and a reserve."""

_SHORTEST = 0.001
"""Seconds until a Job is due at the earliest: times in its status have whole seconds, moments do not."""

_SPECS = 3
"""Specs that are kept beside the newest: the tasks of a Job, in whose order its pods are created, rarely alternate."""

_NO_UID = "00000000-0000-0000-0000-000000000000"
_PENDING = PodStatus("Pending")


@dataclass(slots=True)
class ControllerChanges:
    """What the controller has changed.

    Attributes:
        groups: PodGroups that are new or changed, by key; None for those that are gone.
        pods: New pods, by key.
        gone: Pods that are gone; a new one may have the name of one of them.
        jobs: Jobs whose status has changed, by key.
        unsettled: Keys of Jobs for which the controller still plans changes after all passes.
    """

    groups: dict[str, PodGroup | None] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    gone: list[Pod] = field(default_factory=list)
    jobs: dict[str, "ControlledJob"] = field(default_factory=dict)
    unsettled: list[str] = field(default_factory=list)


class ControlledJob:
    """A Job and what it owns.

    Attributes:
        key: `namespace/name`.
        raw: The Job, with a uid.
        pods: Its pods, by key.
        group: Its PodGroup.
        group_key: `namespace/name` that this has or will have.
        objects: The objects of its plugins.
        due: When it is to be worked on although nothing has changed, UNIX seconds; None if it is not.
        is_gone: Whether its time to live is over and it was removed.
        specs: Specs of its pods, as they are built and as they are read; equal ones are read once.
        status: Status of its PodGroup, where that is not in `group` yet.
    """

    __slots__ = (
        "due",
        "group",
        "group_key",
        "is_gone",
        "key",
        "objects",
        "pods",
        "raw",
        "specs",
        "status",
    )

    def __init__(self, raw: Raw, groups: Mapping[str, Raw]) -> None:
        """Take in a Job, and its PodGroup if it is among those that exist."""
        metadata = {"namespace": "default", "uid": _NO_UID} | raw["metadata"]
        name = pod_group_name(metadata["name"], metadata["uid"])
        self.group_key = f"{metadata['namespace']}/{name}"
        self.raw = raw | {"metadata": metadata}
        self.key = f"{metadata['namespace']}/{metadata['name']}"
        self.pods: dict[str, Pod] = {}
        self.group = groups.get(self.group_key)
        self.objects: list[Raw] = []
        self.due: float | None = None
        self.is_gone = False
        self.specs: list[tuple[Raw, PodSpec]] = []
        self.status: PodGroupStatus | None = None

    @property
    def phase(self) -> str:
        """Phase of its status; empty for a new Job."""
        return phase_of(self.raw.get("status"))

    @property
    def message(self) -> str:
        """Why it is in its phase."""
        state = (self.raw.get("status") or {}).get("state") or {}
        return str(state.get("message") or state.get("reason") or "")

    @property
    def is_finished(self) -> bool:
        """Whether it is over; an aborted one is, since no user resumes it here."""
        return self.phase in FINISHED or self.phase == ABORTED

    @property
    def queue(self) -> str:
        """Name of its queue."""
        return str((self.raw.get("spec") or {}).get("queue") or keys.DEFAULT_QUEUE)


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
        self._classes = PodPriorities(classes)
        self._admitted = admitted
        self._dues: list[tuple[float, str]] = []
        self._changed: dict[str, None] = {}
        self._phases: dict[str, str] = {}
        self._of_groups: dict[str, ControlledJob] = {}
        self._taken: set[str] = set()
        self.jobs: dict[str, ControlledJob] = {}

    # -- what happens ------------------------------------------------------------------------

    def add(self, raw: Raw, groups: Mapping[str, Raw] | None = None) -> ControlledJob:
        """Take in a Job that is admitted.

        Args:
            raw: The Job.
            groups: PodGroups that exist, by `namespace/name`.
        """
        job = ControlledJob(raw, groups or {})
        self.jobs[job.key] = job
        self._changed[job.key] = None
        if job.group is not None:
            self._of_groups[key_of(job.group)] = job
        return job

    def take(self, pods: Iterable[Pod]) -> None:
        """Take in pods that exist: those of the Jobs, and names that others have."""
        for pod in pods:
            meta = pod.metadata
            self._taken.add(f"{meta.namespace}/{meta.name}")
            self.put(pod)

    def put(self, pod: Pod) -> None:
        """Take in a pod that was changed by others than the controller."""
        meta = pod.metadata
        job = self.jobs.get(f"{meta.namespace}/{meta.label(keys.JOB_NAME)}")
        if job is not None:
            job.pods[f"{meta.namespace}/{meta.name}"] = pod
            self._changed[job.key] = None

    def drop(self, pod: Pod) -> None:
        """Take in that a pod is gone."""
        meta = pod.metadata
        key = f"{meta.namespace}/{meta.name}"
        self._taken.discard(key)
        job = self.jobs.get(f"{meta.namespace}/{meta.label(keys.JOB_NAME)}")
        if job is not None and job.pods.pop(key, None) is not None:
            self._changed[job.key] = None

    def set_statuses(self, statuses: Mapping[str, PodGroupStatus]) -> None:
        """Take in statuses of PodGroups by `namespace/name`; of their Jobs only those change whose phase does."""
        for key, status in statuses.items():
            job = self._of_groups.get(key)
            if job is None or job.group is None:
                continue
            job.status = status
            if self._phases.get(key) != status.phase:
                self._phases[key] = status.phase
                self._changed[job.key] = None

    def remove(self, job: ControlledJob) -> None:
        """Forget a Job and its pods, as if it had been deleted with all that it owns."""
        del self.jobs[job.key]
        self._changed.pop(job.key, None)
        job.is_gone = True
        self._taken.difference_update(job.pods)
        if job.group is not None:
            self._drop_group(key_of(job.group))

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
        queue = self._queues.get(job.queue)
        if job.status is not None and job.group is not None:
            job.group = job.group | {"status": msgspec.to_builtins(job.status)}
            job.status = None
        for _ in range(PASSES):
            plan = reconcile(
                Observed(
                    job=job.raw,
                    pods=tuple(job.pods.values()),
                    group=job.group,
                    objects=tuple(job.objects),
                    queue=queue,
                    priorities=self._priorities,
                ),
                registry=self._registry,
                now=now,
                limits=ALL_AT_ONCE,
            )
            phase = job.phase
            steps = self._carry_out(plan, job, changes, now)
            if not steps or job.is_gone or (job.is_finished and self._drops_finished):
                return
            if self._drops_finished and _is_done(phase, job, steps):
                return
        changes.unsettled.append(job.key)

    def _carry_out(
        self, plan: Plan, job: ControlledJob, changes: ControllerChanges, now: float
    ) -> set[type[Step]]:
        """Apply a plan; the types of steps that have changed something, after which another plan may follow."""
        wake: float | None = None
        types: set[type[Step]] = set()
        for step in plan.steps:
            if isinstance(step, RequeueAfter):
                wake = step.seconds if wake is None else min(wake, step.seconds)
            else:
                types.add(type(step))
                self._apply(step, job, changes, now)
        job.due = None
        if wake is not None and not job.is_gone:
            job.due = now + max(wake, _SHORTEST)
            heapq.heappush(self._dues, (job.due, job.key))
        return types

    def _apply(
        self, step: Step, job: ControlledJob, changes: ControllerChanges, now: float
    ) -> None:
        match step:
            case CreateObject(kind, manifest) if kind == POD:
                key = key_of(manifest)
                if key not in self._taken:
                    self._taken.add(key)
                    job.pods[key] = changes.pods[key] = self._created(manifest, job, now)
            case CreateObject(kind, manifest) if kind == POD_GROUP:
                created = job.raw["metadata"].get("creationTimestamp")
                born = {"creationTimestamp": created} if created else {}
                self._put_group(job, manifest | {"metadata": manifest["metadata"] | born}, changes)
            case CreateObject(_, manifest, secret):
                # A Secret without keys would be deleted and created in every pass; scheduling needs no real ones.
                made = with_placeholders(manifest, secret) if secret is not None else manifest
                job.objects.append(made)
            case UpdateObject(kind, _, _, patch) if kind == POD_GROUP and job.group is not None:
                self._put_group(job, _merged(job.group, patch), changes)
            case UpdateObject(kind, _, _, patch) if kind == JOB:
                job.raw = _merged(job.raw, patch)
            case UpdateObject(kind, _, _, _) if kind == POD:
                pass  # marks of pods that the next stage removes
            case UpdateObject(kind, _, name, patch):
                job.objects = [
                    _merged(each, patch) if _is(each, kind, name) else each for each in job.objects
                ]
            case DeleteObject() if step.kind == JOB:
                self.remove(job)
                changes.gone += job.pods.values()
            case DeleteObject():
                self._delete(step, job, changes)
            case PatchStatus(status):
                job.raw = job.raw | {"status": status}
                changes.jobs[job.key] = job
            case _:
                pass  # events, and claims

    def _put_group(self, job: ControlledJob, group: Raw, changes: ControllerChanges) -> None:
        job.group = group
        key = key_of(group)
        self._of_groups[key] = job
        self._phases[key] = str((group.get("status") or {}).get("phase") or "")
        changes.groups[key] = msgspec.convert(group, PodGroup)

    def _delete(self, step: DeleteObject, job: ControlledJob, changes: ControllerChanges) -> None:
        key = f"{step.namespace}/{step.name}"
        if step.kind == POD:
            if (gone := job.pods.pop(key, None)) is not None:
                self._taken.discard(key)
                if changes.pods.pop(key, None) is None:
                    changes.gone.append(gone)
        elif step.kind == POD_GROUP:
            job.group = None
            self._drop_group(key)
            changes.groups[key] = None
        else:
            job.objects = [each for each in job.objects if not _is(each, step.kind, step.name)]

    def _created(self, manifest: Raw, job: ControlledJob, now: float) -> Pod:
        """A pod as the API server would show it: with a uid, a creation time and a phase."""
        pod = self._admitted(manifest)
        meta = pod["metadata"]
        stamps = {
            "uid": f"{meta.get('namespace')}-{meta['name']}",
            "creationTimestamp": format_time(now),
        }
        return Pod(
            metadata=msgspec.convert(stamps | meta, ObjectMeta),
            spec=self._spec(pod["spec"], job),
            status=_PENDING,
        )

    def _spec(self, raw: Raw, job: ControlledJob) -> PodSpec:
        """The spec of a pod; pods of a Job whose specs are equal share one."""
        for known, spec in job.specs:
            if known == raw:
                return spec
        spec = self._classes.prioritized(msgspec.convert(raw, PodSpec))
        job.specs = [*job.specs[-_SPECS:], (raw, spec)]
        return spec

    def _drop_group(self, key: str) -> None:
        self._of_groups.pop(key, None)
        self._phases.pop(key, None)


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


def key_of(obj: Raw) -> str:
    """`namespace/name` of an object."""
    metadata = obj["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"


def without_uids(text: str) -> str:
    """A text in which PodGroups of new Jobs have the names of these."""
    return text.replace(f"-{_NO_UID}", "")


def _is(found: Raw, kind: Kind, name: str) -> bool:
    """True if this is the object of a kind with a name, in the namespace of its Job."""
    type_of = found.get("apiVersion"), found.get("kind")
    return type_of == (kind.api_version, kind.kind) and found["metadata"]["name"] == name


def _merged(target: Raw, patch: Raw) -> Raw:
    """A merge patch (RFC 7386) applied to a copy."""
    result = dict(target)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            before = result.get(name)
            result[name] = _merged(before if isinstance(before, dict) else {}, value)
        else:
            result[name] = value
    return result
