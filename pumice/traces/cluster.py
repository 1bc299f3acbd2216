"""A cluster in virtual time: Jobs under the controller, cycles of the scheduler, and pods that end.

At a moment the controller and the scheduler take turns until neither has anything to do for the other: as in a cluster, a gang first enters its queue,
then it has pods, then they are placed; evicted pods are gone, and their Jobs get new ones. Between two moments nothing happens, so the
clock goes from one to the next: an arrival, an end, or what is due (times that a plan of the controller or a cycle has named).

Times are seconds since a zero; the controller and the scheduler are told UNIX seconds.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Protocol

from msgspec.structs import replace

from pumice.api import keys
from pumice.api.meta import Raw, format_time
from pumice.api.pods import ContainerState, ContainerStatus, Pod, PodStatus, Terminated
from pumice.api.raw import key_in
from pumice.plugins import Registry
from pumice.scheduler import Config, CycleResult
from pumice.scheduler.model.report_times import ReportDelays
from pumice.scheduler.simulate import ClusterObjects, Simulation
from pumice.traces.controlled_job import ControlledJob, PlainKind, job_of
from pumice.traces.jobs import ControlledJobs

MOST_CYCLES = 1000
"""Maximum number of cycles at one moment: a configuration may evict pods in circles."""

_RECURRENCE = 2 * 86_400.0
"""Seconds after which dues that recur have been tried: windows of time open and close once a day."""

_IDLE = 3000
"""As many dues that recur in a row at most, at which nothing was decided."""

_IN_VAIN, _ROUNDS = 200, 10
"""Moments in a row at which pods are evicted or made again without that a Job ends or arrives: so many are no progress, if each pod that
exists was so often concerned, on average."""

_RESTLESS = 20
"""A moment at which `MOST_CYCLES` are not enough counts like this many moments without progress."""

_DELAYS = ReportDelays(renewals=60.0)
"""No owner reads in virtual time why a gang waits: two reasons are renewed once a minute, for the report and for the end."""

_GANG = "gang "
"""Stands before keys of gangs where those of Jobs are, too."""


class ClusterListener(Protocol):
    """Is told what happens, in order."""

    def started(self, pods: Iterable[Pod], now: float) -> None:
        """Pods run from now on."""

    def ended(self, pods: Iterable[Pod], now: float, *, failed: bool) -> None:
        """Pods have ended by themselves."""

    def evicted(self, pods: Iterable[Pod], now: float) -> None:
        """Pods were evicted."""

    def removed(self, pods: Iterable[Pod], now: float) -> None:
        """The controller has removed pods, that run or that ended, of a Job that goes on."""

    def finished(self, job: ControlledJob, now: float) -> None:
        """A Job is over; it is removed with its pods."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How pods end.

    Attributes:
        duration: Seconds that they run; None if they do not end.
        fails: Whether they end with exit code 1.
    """

    duration: float | None
    fails: bool = False


@dataclass(slots=True)
class _Batch:
    """Pods of one gang that started at the same moment, by key."""

    ending: Ending
    pods: dict[str, None]


class VirtualCluster:
    """A cluster in virtual time.

    Attributes:
        simulation: The objects, and the scheduler.
        jobs: The Jobs, and the controller.
        decision_seconds: What the cycles took.
        unsettled: Keys of Jobs for which the controller went on planning changes.
        restless: Number of moments at which the scheduler did not come to an end.
        is_in_circles: Whether pods are evicted or made again without end, so that nothing further happens.
    """

    def __init__(
        self,
        objects: ClusterObjects,
        config: Config,
        *,
        zero: float,
        registry: Registry,
        listener: ClusterListener,
        measure_time: Callable[[], float],
        admitted: Callable[[Raw], Raw] = lambda pod: pod,
        scheduler_names: tuple[str, ...] = (keys.DEFAULT_SCHEDULER,),
        leaves_out: bool = False,
    ) -> None:
        """Take in what exists; pods that run do not end unless `set_end` says so.

        The zero is in UNIX seconds, and `measure_time` gives the seconds that cycles take. The listener is told what happens;
        a new pod is what `admitted` makes of it, as an API server stores it.

        Raises:
            UnreadableObjectError: A quantity cannot be read.
        """
        self._zero = zero
        self._listener = listener
        self._measure_time = measure_time
        self.simulation = Simulation(
            objects, config, scheduler_names=scheduler_names, leaves_out=leaves_out
        )
        self.simulation.state.delays = _DELAYS
        self.jobs = ControlledJobs(
            objects.queues, objects.priority_classes, registry, admitted, drops_finished=True
        )
        self.jobs.take(self.simulation.pods.values())
        self._endings: dict[str, Ending] = {}
        self._batches: dict[str, _Batch] = {}
        self._ends: list[tuple[float, int, _Batch]] = []
        self._numbers = count()
        self._ended: dict[str, Pod] = {}
        self._due: float | None = None
        self._changed = self._known_due = 0.0
        self._idle = self._in_vain = self._moved = 0
        self._restless_at = -1.0
        self.cycles = 0
        self.decision_seconds = 0.0
        self.unsettled: set[str] = set()
        self.restless = 0
        self.is_in_circles = False

    # -- what is known beforehand --------------------------------------------------------------

    def submit(
        self,
        raw: Raw,
        ending: Ending,
        groups: Mapping[str, Raw] | None = None,
        pods: Iterable[Pod] = (),
        plain: PlainKind | None = None,
    ) -> ControlledJob:
        """Take in a Job that is admitted.

        Args:
            raw: The Job.
            ending: How its pods end.
            groups: PodGroups that exist, by `namespace/name`.
            pods: Its pods that exist.
            plain: Its kind, if it is plain.
        """
        job = self.jobs.add(raw, groups, plain)
        self.jobs.take(pods)
        self._in_vain = self._moved = 0
        self.expect(job.key, ending)
        return job

    def expect(self, job: str, ending: Ending) -> None:
        """Note how pods end that carry the name of a Job, by its key; without `submit`, none are made in place of evicted ones."""
        self._endings[job] = ending

    def expect_gang(self, gang: str, ending: Ending) -> None:
        """Note how pods of a gang end for whose Job nothing is noted, or that have none."""
        self._endings[f"{_GANG}{gang}"] = ending

    def set_end(self, pods: Iterable[str], now: float, ending: Ending) -> None:
        """Let pods that run end together, by key.

        Args:
            pods: The pods.
            now: Since when the duration counts.
            ending: How they end.
        """
        batch = _Batch(ending, dict.fromkeys(pods))
        self._batches |= dict.fromkeys(batch.pods, batch)
        if ending.duration is not None:
            heapq.heappush(self._ends, (now + ending.duration, next(self._numbers), batch))

    @property
    def next_moment(self) -> float | None:
        """When something happens next; None if nothing does."""
        if self.is_in_circles:
            return None
        found = []
        while self._ends and not self._ends[0][2].pods:
            heapq.heappop(self._ends)  # all of them were evicted
        if self._ends:
            found.append(self._ends[0][0])
        if (due := self.jobs.next_due) is not None:
            found.append(self._since_zero(due))
        if self._due is not None and (found or not self._is_vain(self._due)):
            found.append(self._due)
        return min(found, default=None)

    def _is_vain(self, due: float) -> bool:
        """Whether all was tried that was due when something changed last, and what recurs since then."""
        is_late = due > self._changed + _RECURRENCE or self._idle >= _IDLE
        return is_late and due > self._known_due

    # -- moments -----------------------------------------------------------------------------

    def advance(self, now: float) -> bool:
        """Let happen what happens at a moment; whether anything does, apart from a cycle that decides nothing."""
        has_changed, is_due = False, True
        moment, moved = self._zero + now, self._moved
        for _ in range(MOST_CYCLES):
            is_news = self._end(now) | self._control(now)
            has_changed |= is_news
            if not (is_news or is_due) or self._decides_nothing(moment):
                break
            has_decided, is_due = self._take_in(self._cycle(moment), now)
            has_changed |= has_decided
            if not (has_decided or is_due):
                break
        else:
            self.restless += now != self._restless_at
            self._restless_at = now
            self._in_vain += _RESTLESS
        dues = self._dues(moment)
        self._due = self._since_zero(min(dues)) if dues else None
        self._idle += 1
        if has_changed:
            self._idle, self._changed = 0, now
            self._known_due = self._since_zero(max(dues, default=moment))
        if self._moved > moved:
            self._in_vain += 1
            rounds = _ROUNDS * len(self.simulation.pods)
            self.is_in_circles = self._in_vain >= _IN_VAIN and self._moved >= rounds
        return has_changed

    def _decides_nothing(self, moment: float) -> bool:
        """Whether a cycle need not be run, because no gang waits and nothing is due."""
        state = self.simulation.state
        return not state.gangs.waiting and min(state.wakes, default=math.inf) > moment

    def _cycle(self, moment: float) -> CycleResult:
        begun = self._measure_time()
        result = self.simulation.cycle(moment)
        self.decision_seconds += self._measure_time() - begun
        self.cycles += 1
        return result

    def _dues(self, moment: float) -> list[float]:
        """When cycles are due although nothing happens, in UNIX seconds."""
        state = self.simulation.state
        dues = [*state.wakes, *state.gangs.dues.values()]
        dues += [until for _, until in state.pods.spared.values()]
        return [due for due in dues if due > moment]

    def _since_zero(self, moment: float) -> float:
        """The earliest time since the zero that is not before a moment in UNIX seconds, which are rounded more."""
        now = moment - self._zero
        return now if self._zero + now >= moment else now + math.ulp(moment)

    def _take_in(self, result: CycleResult, now: float) -> tuple[bool, bool]:
        """Carry out what a cycle has decided; whether that was anything, and whether another cycle must follow in any case.

        None need follow where pods were only placed: all gangs had their turn in that cycle.
        """
        started, gone = self.simulation.advance()
        self.jobs.set_statuses(result.pod_groups)
        for pod in gone:
            self.jobs.drop(pod)
            self._leave(pod.metadata.key)
        if gone:
            self._moved += len(gone)
            self._listener.evicted(gone, now)
        if started:
            self._start(started, now)
        is_awake = min(self.simulation.state.wakes, default=math.inf) <= self._zero + now
        return bool(started or gone or self.jobs.has_work), bool(gone or is_awake)

    def _start(self, started: list[Pod], now: float) -> None:
        batches: dict[str, list[str]] = {}
        for pod in started:
            self.jobs.put(pod)
            owner, key = job_of(pod), pod.metadata.key
            if owner not in self._endings:
                owner = f"{_GANG}{self.simulation.gang_of(key)}"
            batches.setdefault(owner, []).append(key)
        for owner, pods in batches.items():
            self.set_end(pods, now, self._endings.get(owner, Ending(None)))
        self._listener.started(started, now)

    def _leave(self, key: str) -> None:
        if (batch := self._batches.pop(key, None)) is not None:
            batch.pods.pop(key, None)

    def _end(self, now: float) -> bool:
        """End the pods whose time is over; whether there are any."""
        has_ended = False
        while self._ends and self._ends[0][0] <= now:
            _, _, batch = heapq.heappop(self._ends)
            found = list(batch.pods)
            if not found:
                continue
            pods = [self.simulation.pods[key] for key in found]
            status = _ended(self._zero + now, pods[0], fails=batch.ending.fails)
            for key, pod in zip(found, pods, strict=True):
                self._leave(key)
                self._end_pod(key, replace(pod, status=status))
            has_ended = True
            self._listener.ended(pods, now, failed=batch.ending.fails)
        return has_ended

    def _end_pod(self, key: str, pod: Pod) -> None:
        """Show the end of a pod to its Job first, which mostly ends with it; a pod without a Job is removed, and its gang with the last one."""
        if self.jobs.put(pod):
            self._ended[key] = pod
            return
        state = self.simulation.state
        gang = self.simulation.gang_of(key)
        self.simulation.remove_pod(pod)
        if gang in state.jobs and not state.jobs[gang].tasks:
            state.remove_pod_group(*gang.split("/", 1))

    def _control(self, now: float) -> bool:
        """Let the controller work; whether that, or an end, changes anything but statuses of Jobs."""
        if not self.jobs.has_work:
            due = self.jobs.next_due
            if due is None or due > self._zero + now:
                return False
        changes = self.jobs.work(self._zero + now)
        self.unsettled.update(changes.unsettled)
        ended, self._ended = self._ended, {}
        finished = [job for job in changes.jobs.values() if job.is_finished]
        over = {job.key for job in finished}
        removed = [pod for pod in changes.gone if job_of(pod) not in over]
        self._listener.removed(removed, now)
        self._moved += len(removed)
        if finished:
            self._in_vain = self._moved = 0
        for pod in changes.gone:
            self._remove(pod.metadata.key, pod, ended)
        for job in finished:
            self._listener.finished(job, now)
            self._endings.pop(job.key, None)
            self.jobs.remove(job)
            for key, pod in job.pods.items():
                if key not in changes.pods:
                    self._remove(key, pod, ended)
            if job.group is not None:
                changes.groups[key_in(job.group)] = None
        for key, group in changes.groups.items():
            if group is None:
                self.simulation.state.remove_pod_group(*key.split("/", 1))
            else:
                self.simulation.replace(None, group)
        for pod in (*ended.values(), *changes.pods.values()):
            if not over or job_of(pod) not in over:
                self.simulation.put_pod(pod)
        return bool(finished or ended or changes.gone or changes.groups or changes.pods)

    def _remove(self, key: str, pod: Pod, ended: dict[str, Pod]) -> None:
        self._leave(key)
        ended.pop(key, None)
        self.simulation.remove_pod(pod)


def _ended(moment: float, pod: Pod, *, fails: bool) -> PodStatus:
    """The status of a pod that has ended; pods that started and end together share it."""
    before = pod.status
    how = Terminated(
        exit_code=int(fails),
        reason="Error" if fails else "Completed",
        started_at=before.start_time,
        finished_at=format_time(moment),
    )
    names = [container.name for container in pod.spec.containers or ()]
    state = ContainerState(terminated=how)
    return replace(
        before,
        phase="Failed" if fails else "Succeeded",
        container_statuses=[ContainerStatus(name, state=state) for name in names],
    )
