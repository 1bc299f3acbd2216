"""When Jobs that wait will start, if nothing changes: the present state of a cluster, run on in virtual time.

What runs ends when `JobDurations` says, counted from its start; what says nothing is taken not to end. Of jobs that arrive later, and of pods that
fail, nothing is known. So a forecast is one of many futures, and it says what it lacks.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from pumice.api import keys
from pumice.api.jobs import Job
from pumice.api.messages import counted
from pumice.api.meta import Raw, format_time, parse_time
from pumice.api.names import pod_group_name
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.raw import key_in
from pumice.controller.jobs.subject import min_available
from pumice.plugins import Registry
from pumice.scheduler import Config
from pumice.scheduler.simulate import ClusterObjects
from pumice.traces.cluster import Ending, VirtualCluster
from pumice.traces.controlled_job import ControlledJob, job_of
from pumice.traces.durations import JobDurations, ignored_durations, stated
from pumice.traces.job_measures import rounded
from pumice.traces.past_jobs import group_of_job

_BEFORE = ("", "Pending", "Inqueue")
_WAITS = ("", "Pending", "Restarting")
_NEW = "new"
"""The uid of a Job that is not in the cluster."""
_SOON = 1.0
_EXACT = 0.4
"""Part of the time limit after which moments are taken together, so that a forecast reaches farther."""
_STEP = 1 / 32
"""How far they may lie apart then, as a part of the time ahead; the forecast says `about`."""


class StartForecast(msgspec.Struct, frozen=True):
    """When a Job will start.

    Attributes:
        seconds: Seconds until then; None if it is not known, or if it will not start.
        message: The same as a sentence, or what is lacking to know it.
    """

    seconds: float | None
    message: str


@dataclass(frozen=True, slots=True)
class ForecastCluster:
    """What forecasts are made from.

    Attributes:
        objects: The objects of the cluster, Jobs apart.
        jobs: The Jobs, as stored.
        config: Configuration of the scheduler.
        registry: The job plugins.
        now: The moment, in UNIX seconds.
        schedulers: Scheduler names whose pods are placed.
    """

    objects: ClusterObjects
    jobs: Sequence[Raw]
    config: Config
    registry: Registry
    now: float
    schedulers: tuple[str, ...] = (keys.DEFAULT_SCHEDULER,)

    def forecasts(
        self, measure_time: Callable[[], float], limit: float, wanted: Iterable[str] | None = None
    ) -> dict[str, StartForecast]:
        """When Jobs start that wait, by `namespace/name`.

        Args:
            measure_time: A clock, in seconds.
            limit: How long to look, by that clock.
            wanted: The Jobs that are asked for; all that wait if None.

        Raises:
            UnreadableObjectError: A quantity cannot be read.
        """
        run = _Future(self, measure_time)
        names = [key for key in (run.waiting if wanted is None else wanted) if key in run.waiting]
        reached = run.until_started(names, limit)
        return {key: run.forecast(key, reached) for key in names}

    def remark(self) -> str:
        """A sentence about durations of Jobs, gangs and pods that cannot be read; empty if all can."""
        of_jobs = {group_of_job(each) for each in self.jobs}
        groups = [each for each in self.objects.pod_groups if each.metadata.key not in of_jobs]
        pods = [each for each in self.objects.pods if each.group and each.group_key not in of_jobs]
        others = [(f"PodGroup {each.metadata.key}", each.metadata.annotations) for each in groups]
        others += [(f"pod {each.metadata.key}", each.metadata.annotations) for each in pods]
        return ignored_durations(self.jobs, others)

    def trial(
        self, raw: Raw, measure_time: Callable[[], float], limit: float
    ) -> tuple[StartForecast, int]:
        """When a new Job would start, and how many of its pods would run now if a single one were enough for it.

        Args:
            raw: The Job, admitted.
            measure_time: A clock, in seconds.
            limit: How long to look, by that clock.

        Raises:
            UnreadableObjectError: A quantity cannot be read.
        """
        created = {"uid": _NEW, "creationTimestamp": format_time(self.now)}
        job = raw | {"metadata": raw["metadata"] | created}
        key = key_in(job)
        told = replace(self, jobs=[*self.jobs, job]).forecasts(measure_time, limit, [key])
        tasks = [{**task, "minAvailable": None} for task in job["spec"]["tasks"]]
        one = job | {"spec": job["spec"] | {"minAvailable": 1, "tasks": tasks}}
        future = _Future(replace(self, jobs=[*self.jobs, one]), measure_time)
        return told[key], future.running_now(key)


class _Future:
    """One future.

    Attributes:
        waiting: Pods that must run for a Job to have started, of Jobs that wait.
    """

    def __init__(self, known: ForecastCluster, measure_time: Callable[[], float]) -> None:
        self._measure_time = measure_time
        self._starts = _FirstStarts()
        self._cluster = VirtualCluster(
            known.objects,
            known.config,
            zero=known.now,
            registry=known.registry,
            listener=self._starts,
            measure_time=measure_time,
            scheduler_names=known.schedulers,
            leaves_out=True,
        )
        jobs = [(raw, msgspec.convert(raw, Job)) for raw in known.jobs]
        self._durations = JobDurations(job for _, job in jobs)
        groups = {each.metadata.key: each for each in known.objects.pod_groups}
        pods: dict[str, list[Pod]] = {}
        for pod in known.objects.pods:
            pods.setdefault(pod.group_key, []).append(pod)
        owners: dict[str, Job] = {}
        self._gangs: dict[str, str] = {}
        self.waiting = self._starts.minimums
        self._unknown = self._overdue = 0
        for raw, job in jobs:
            meta = job.metadata
            key = f"{meta.namespace}/{pod_group_name(meta.name, meta.uid)}"
            owners[key] = job
            self._gangs[meta.key] = key
            group = groups.get(key)
            if job.status.state.phase in _WAITS and (
                group is None or group.status.phase in _BEFORE
            ):
                self._submit(raw, job, group, pods.get(key, ()))
        for gang, members in pods.items():
            if (group := groups.get(gang)) is not None:  # pods without a gang are services of nodes
                self._let_end(known.now, members, owners.get(gang), group)

    def _submit(self, raw: Raw, job: Job, group: PodGroup | None, pods: Sequence[Pod]) -> None:
        """Take in a Job that waits; one that has all its pods needs no controller."""
        duration = self._durations.of(job)
        key = job.metadata.key
        if group is not None and len(pods) == job.replicas:
            self._cluster.expect(key, Ending(duration))
        else:
            stored = {} if group is None else {group.metadata.key: msgspec.to_builtins(group)}
            self._cluster.submit(raw, Ending(duration), stored, pods)
        self._starts.minimums[key] = min_available(job)
        if duration is None:
            self._starts.endless.add(self._gangs[key])

    def _let_end(self, now: float, pods: Sequence[Pod], job: Job | None, group: PodGroup) -> None:
        """Let the pods of a gang end that run, those that started together at the same moment, and those that start later."""
        starts: dict[float, list[str]] = {}
        for pod in pods:
            if pod.spec.node_name and pod.status.phase in ("", "Pending", "Running"):
                begun = parse_time(pod.status.start_time or pod.metadata.creation_timestamp) or now
                starts.setdefault(begun, []).append(pod.metadata.key)
        annotations = [each.metadata.annotations for each in pods]
        duration = stated(group.metadata.annotations, annotations)
        if duration is None and job is not None:
            duration = self._durations.of(job)
        if duration is None:
            if starts:
                self._unknown += 1
            else:
                self._starts.endless.add(group.metadata.key)
            return
        self._cluster.expect_gang(group.metadata.key, Ending(duration))
        self._overdue += any(begun + duration <= now for begun in starts)
        for begun, names in sorted(starts.items()):
            left = begun + duration - now
            # What should have ended is still there now.
            self._cluster.set_end(names, 0.0, Ending(left if left > 0 else _SOON))

    def until_started(self, names: Iterable[str], limit: float) -> float | None:
        """Run until Jobs have started; returns the moment at which the time for that was over, if it was."""
        begun = self._measure_time()
        left = set(names)
        now: float | None = 0.0
        while now is not None:
            self._cluster.advance(now)
            left -= self._starts.first.keys()
            if not left:
                return None
            spent = self._measure_time() - begun
            if spent > limit:
                return now
            now = self._cluster.next_moment
            if now is not None and spent > limit * _EXACT:
                now *= 1 + _STEP  # what happens until then is taken together
        return None

    def running_now(self, key: str) -> int:
        """How many pods of a Job run at once."""
        self._cluster.advance(0.0)
        return self._starts.running.get(key, 0)

    def forecast(self, key: str, reached: float | None) -> StartForecast:
        """What is known of a Job then."""
        start = self._starts.first.get(key)
        if start is not None:
            if start < _SOON:
                return StartForecast(rounded(start), "starts now (if nothing changes)")
            late = ""
            if self._overdue:
                late = f", and {counted(self._overdue, 'gang')} that should have ended by now will end at once"
            message = f"starts in about {_about(start)} (if nothing changes{late})"
            return StartForecast(rounded(start), message)
        if reached is not None:
            return StartForecast(
                None, f"starts in more than {_about(reached)}; no more is computed"
            )
        state = self._cluster.simulation.state
        gang = self._gangs[key]
        unknown = self._unknown + len(self._starts.endless_begun)
        is_too_large = gang in state.jobs and state.jobs[gang].is_too_large
        if unknown and not is_too_large:
            gangs = "1 gang that runs" if unknown == 1 else f"{unknown} gangs that run"
            return StartForecast(
                None,
                f"when it starts is not known: of {gangs} before it nothing says how long; "
                f"annotate their Jobs with {keys.DURATION}, for example 90m",
            )
        reason = state.gangs.pending.get(gang)
        why = f": {reason.summary}" if reason is not None else ""
        end = "does not start, although all that runs has ended by then"
        if self._cluster.is_in_circles:
            end = "when it starts is not known, since other pods are evicted and made again without end"
        return StartForecast(None, f"{end}{why}")


class _FirstStarts:
    """Notes when Jobs first run with their minimum of pods.

    Attributes:
        minimums: Pods that must run, by Job.
        endless: Gangs of which it is not known how long they run.
        endless_begun: Those of them of which pods have started.
        first: Their first starts.
        running: How many pods of a Job have started and were not lost.
    """

    def __init__(self) -> None:
        self.minimums: dict[str, int] = {}
        self.endless: set[str] = set()
        self.endless_begun: set[str] = set()
        self.first: dict[str, float] = {}
        self.running: dict[str, int] = {}

    def started(self, pods: Iterable[Pod], now: float) -> None:
        """Pods run from now on."""
        for pod in pods:
            job = job_of(pod)
            if (gang := pod.group_key) in self.endless:
                self.endless_begun.add(gang)
            running = self.running[job] = self.running.get(job, 0) + 1
            if running >= self.minimums.get(job, running + 1):
                self.first.setdefault(job, now)

    def ended(self, pods: Iterable[Pod], now: float, *, failed: bool) -> None:
        """Pods have ended; they have run."""

    def removed(self, pods: Iterable[Pod], now: float) -> None:  # noqa: ARG002
        """Pods are gone with what they have done."""
        for pod in pods:
            job = job_of(pod)
            self.running[job] = self.running.get(job, 0) - 1

    evicted = removed

    def finished(self, job: ControlledJob, now: float) -> None:
        """A Job is over; it has started."""


def _about(seconds: float) -> str:
    """A duration in one unit."""
    for most, unit, word in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < most:
            return f"{round(seconds / unit)} {word}"
    return f"{round(seconds / 86_400)} days"
