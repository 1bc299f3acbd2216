"""The state of the cluster between cycles; it is not copied for a cycle.

It consists of the objects of the cluster (`tables`), the decisions of cycles, and data that cycles keep.
"""

from collections.abc import Iterable, Iterator, Mapping

from pumice.api import keys
from pumice.api.podgroups import PodGroupStatus
from pumice.scheduler.budget import Rounds
from pumice.scheduler.model.axis import Floats, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import PLACED, SchedulingStatus
from pumice.scheduler.reports import NEVER, ReportDelays
from pumice.scheduler.reservation import Reservation
from pumice.scheduler.results import Reason
from pumice.scheduler.tables import ClusterTables
from pumice.scheduler.waiting import Cause

__all__ = ["ClusterState"]


class ClusterState(ClusterTables):
    """The cluster, with decisions and data of cycles.

    What a cycle decides is assumed at once, see `assumptions`.

    Attributes:
        cycles: Cycles that were run on it.
        config: Configuration of the last cycle.
        settled: Version and configuration of a cycle after which there was nothing left to do.
        delays: How long reasons wait before they are written.
        wakes: When plugins and actions want a cycle to run, UNIX seconds.
        changes: Those of them from which on plugins answer otherwise about nodes.
        chose_at: When a plugin last named pods that are to go without another one asking for their place, UNIX seconds.
        reservation: The gang for which nodes are reserved, and the nodes.
        has_restored: Whether what PodGroups tell of reservations was looked at.
        too_large: Keys of gangs that wait and that the nodes could not hold if they were empty, as far as `elect` has looked.
        passed_over: Keys of gangs that `elect` has looked at and that it cannot choose, while it has not looked at all gangs.
        figures: What plugins have published about queues in the last session, see `SessionView.publish`.
        rounds: Which gangs earlier cycles did not reach.
        sought: Version and moment at which an action last looked for victims for all gangs, by the action's name.
    """

    def __init__(
        self,
        scheduler_names: tuple[str, ...] = (keys.DEFAULT_SCHEDULER,),
        default_queue: str = keys.DEFAULT_QUEUE,
        *,
        assumes_bound: bool = False,
        delays: ReportDelays | None = None,
        opens_gates: bool = False,
    ) -> None:
        """Make an empty state.

        Args:
            scheduler_names: Pods with one of these `schedulerName`s are Pumice's.
            default_queue: Queue of PodGroups that name none.
            assumes_bound: Whether claims that are not known count as bound.
            delays: How long reasons wait before they are written; not at all by default.
            opens_gates: Whether the gate of pods that wait for room in their queue is taken away.
        """
        super().__init__(
            scheduler_names, default_queue, assumes_bound=assumes_bound, opens_gates=opens_gates
        )
        self.cycles = 0
        self.config: object = None
        self.settled: tuple[int, object] | None = None
        self.delays = delays or ReportDelays()
        self.wakes: list[float] = []
        self.changes: list[float] = []
        self.chose_at: dict[str, float] = {}
        self.reservation: Reservation | None = None
        self.has_restored = False
        self.too_large: set[str] = set()
        self.passed_over: set[str] = set()
        self.figures: dict[str, Ints | Floats] = {}
        self.rounds = Rounds()
        self.sought: dict[str, tuple[int, float]] = {}

    # -- cycles ------------------------------------------------------------------------------

    def is_settled(self, config: object, now: float) -> bool:
        """True if a cycle would have nothing to do: nothing changed since one that finished its work, and nothing is due."""
        spared = (until for _, until in self.spared.values())
        return (
            self.settled == (self.version, config)
            and min(self.dues.values(), default=NEVER) > now
            and min(self.wakes, default=NEVER) > now
            and min(spared, default=NEVER) > now
        )

    def preparing(self) -> Iterator[None]:
        """Begin what the first cycle has to do for all pods, one pod after the other, so that others can run in between."""
        return self.peers.preparing(self.tasks)

    def settle(self, now: float = 0.0) -> None:
        """Bring rows and columns into order, and end what has lasted; a cycle does this first.

        Args:
            now: The moment, UNIX seconds.
        """
        self._changed(min(self.changes, default=NEVER) <= now, Cause.RULES)
        self.changes.clear()
        self.wakes.clear()
        self.figures.clear()
        for key in [key for key, (_, until) in self.spared.items() if until <= now]:
            del self.spared[key]
            self.line.happened(Cause.VICTIMS)
        self._widen()
        self.nodes.settle()
        self.facts.settle()
        self._charge_anew()
        self.peers.settle(self.tasks.values(), self.nodes.row_of)
        self.shares.settle(self.queues, self.jobs)

    def quarantine(self, key: str, why: Reason) -> None:
        """Leave a gang out of cycles until `release`, or until its PodGroup is changed, which does not help one that is too slow."""
        self.quarantined[key] = why
        self.line.wake(key)

    def release(self, key: str) -> bool:
        """End the quarantine of a gang."""
        if self.quarantined.pop(key, None) is None:
            return False
        if key in self.jobs:
            self.dirty[key] = None
        return self._changed(True)

    def set_reservation(self, reservation: Reservation | None) -> None:
        """Note for which gang nodes are reserved now."""
        for each in (self.reservation, reservation):
            if each is not None and each.gang in self.jobs:
                self._touch(self.jobs[each.gang])
        self.reservation = reservation
        self._changed(True, Cause.RULES)

    def assume_status(self, job: JobInfo, status: PodGroupStatus) -> None:
        """Count a PodGroup's status as written."""
        assert job.group is not None
        self.assumed.assume_status(job.key, job.group.metadata, status)
        if status.phase != job.status.phase:
            self.line.happened(Cause.SHARES)
        job.status = status
        self.shares.place(job)
        self.statuses[job.key] = status
        self._index(job)

    def assume_nominations(self, nominations: Mapping[str, str]) -> None:
        """Count pods as nominated for a node as a cycle decided, or for none any more."""
        for key, node in nominations.items():
            task = self.tasks[key]
            task.nominated = node
            self.assumed.assume_nomination(task, node)
            self._index_nominee(task)
        self._changed(bool(nominations), Cause.NODES)

    def assume_pods(self, pods: Iterable[str]) -> None:
        """Count pods as a cycle decided about them: bound or evicted."""
        tasks = [self.tasks[pod] for pod in pods]
        for task in tasks:
            task.verdict = None
            if task.status is SchedulingStatus.BINDING and task.job:
                task.charge = self.jobs[task.job].queue
            self.assumed.assume_pod(task)
            if task.shape.claims:
                self.claims.choices.decide(task)
            self._index_nominee(task)
        gangs = dict.fromkeys(task.job for task in tasks if task.job)
        for gang in gangs:
            self._touch(self.jobs[gang])
        self._changed(bool(tasks), Cause.NODES | Cause.SHARES | Cause.CLAIMS)

    # -- refusals ----------------------------------------------------------------------------

    def forget(self, key: str, uid: str) -> bool:
        """Drop the assumptions about a pod after the API server refused a write; the watched state is used again.

        Args:
            key: `namespace/name` of the pod.
            uid: uid of the pod that was refused; nothing changes for a later pod of the same name.
        """
        if not self.assumed.end_pod(key, uid):
            return False
        task = self.tasks[key]
        record = self.nodes.records[task.node]
        self.claims.undecide(task)
        self.nodes.discard(task)
        if task.job:
            self.jobs[task.job].move(task, task.shown)
            self._touch(self.jobs[task.job])
        else:
            task.status = task.shown
        if task.shown not in PLACED:
            task.charge = ""
            self._charge(task)
        if task.shown in PLACED:
            self.nodes.add(task, record)
        else:
            self.nodes.drop_if_unused(record)
        self._index_nominee(task)
        return self._changed(True, Cause.NODES | Cause.SHARES | Cause.CLAIMS)

    def spare(self, key: str, uid: str, until: float) -> None:
        """Undo an eviction that the API server refused, and exclude the pod from evictions for some time.

        Args:
            key: `namespace/name` of the pod.
            uid: uid of the pod whose eviction was refused.
            until: Until when no action may choose it, UNIX seconds.
        """
        task = self.tasks.get(key)
        if task is None or task.uid != uid:
            return
        self.forget(key, uid)
        self.spared[key] = (uid, until)
        self._changed(True, Cause.VICTIMS)
