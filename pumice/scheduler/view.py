"""The read-only view of a session for plugins."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import numpy as np

from pumice.api.budgets import ResourceQuota
from pumice.api.queues import Queue
from pumice.scheduler.model.axis import Axis, Ints
from pumice.scheduler.model.claim_table import ClaimTable
from pumice.scheduler.model.facts import NodeFacts
from pumice.scheduler.model.host_ports import PortBlock, PortUsers
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.nodes import NodeTable
from pumice.scheduler.model.peers import PeerTable
from pumice.scheduler.model.queue_specs import UNLIMITED
from pumice.scheduler.model.queues import QueueTable
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.running_pods import (
    Away,
    BudgetTable,
    RunningTable,
    are_away,
    nothing_away,
)
from pumice.scheduler.model.selectors import NodeMatcher
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.points import PREEMPTING, RECLAIMING, Extensions
from pumice.scheduler.results import Event
from pumice.scheduler.state.reserved_nodes import Reservation
from pumice.scheduler.state.usage import UsageTable
from pumice.scheduler.state.watched_cluster import ClusterState, QueueValues
from pumice.scheduler.topology.levels import Levels
from pumice.scheduler.topology.limits import NO_LIMIT, Limit, limit_of
from pumice.scheduler.waiting.parked import Cause

Figure = Literal["deserved", "capacity", "real_capacity", "share", "overused"]
"""What plugins compute about queues: amounts by row and column for the first three, a number by row for the others."""

_NONE = Extensions()


class SessionView:
    """A read-only view of the cluster for one session.

    Attributes:
        now: The moment, UNIX seconds.
        rows: All nodes; their columns cannot be written to and follow every placement.
        node_names: Names of the nodes by row.
        facts: Labels and taints in columns.
        matcher: Selectors as masks.
        usage: What namespaces have used, if a plugin asks for it.
        shares: Queues in columns: what they hold, ask for and reserve.
        running: Pods of gangs that run or are bound, in columns.
        budgets: PodDisruptionBudgets.
        claims: Claims, and where their volumes can be used.
        peers: What pods say about other pods, and how many pods that concerns.
        levels: The network as a tree of domains.
        reads_network: Whether what gangs say about the network is read.
        jobs: Gangs by key.
        queues: Queues by name.
        quotas: Quotas by namespace and name.
        touched: Rows that have changed, also before this session, in order; it grows while the session decides.
        waiting: Gangs that this session may do something for, in the order of their keys; without those in
            quarantine.
        unplaced: Gangs that wait for something, also those that this session does nothing for.
        actions: Names of the configured actions.
        entered: Gangs that this session has let into their queue, by key.
        extensions: What plugins have registered.
        seems_to_fit: Whether a gang may find room in this session, as far as is known before it is tried.
    """

    def __init__(
        self,
        state: ClusterState,
        now: float,
        actions: frozenset[str],
        events: list[Event],
        waiting: Sequence[JobInfo],
        touched: Sequence[int],
    ) -> None:
        self._axis: Axis = state.axis
        self._state = state
        self._nodes: NodeTable = state.nodes
        self._events = events
        self.now = now
        self.usage: UsageTable = state.usage
        self.rows: Rows = state.nodes.rows()
        self.node_names: Sequence[str] = state.nodes.names
        self.facts: NodeFacts = state.facts
        self.matcher: NodeMatcher = state.matcher
        self.budgets: BudgetTable = state.budgets
        self.claims: ClaimTable = state.claims
        self.peers: PeerTable = state.peers
        self.levels: Levels = state.levels
        self.levels.settle()
        self.reads_network: Callable[[], bool] = lambda: True
        self.shares: QueueTable = state.shares
        self.running: RunningTable = state.nodes.running
        self.jobs: Mapping[str, JobInfo] = MappingProxyType(state.jobs)
        self.queues: Mapping[str, Queue] = MappingProxyType(state.queues)
        self.quotas: Mapping[str, Mapping[str, ResourceQuota]] = state.quotas
        self.unplaced: Iterable[JobInfo] = state.gangs.waiting.values()
        self.waiting: list[JobInfo] = list(waiting)
        self.touched: Sequence[int] = touched
        self.actions = actions
        self.seems_to_fit: Callable[[JobInfo], bool] = lambda _: True
        self.entered: Mapping[str, JobInfo] = {}
        self.extensions = _NONE
        self._away: Away | None = None
        self._yielding: dict[tuple[int, int], Ints] = {}

    def end(self) -> None:
        """Let go of what plugins and the session have registered."""
        reads_network = self.reads_network()
        self.reads_network = lambda: reads_network
        self.seems_to_fit = lambda _: True
        self.extensions = _NONE

    def network_limit(self, job: JobInfo) -> Limit:
        """What a gang says about the domain that its pods must share, or should."""
        if job.group is None or not self.reads_network():
            return NO_LIMIT
        return limit_of(job.group.spec.network_topology, self.levels)

    def column(self, resource: str) -> int | None:
        """Column of a resource; None when no node and no pod has ever named it."""
        return self._axis.find(resource)

    def resource(self, column: int) -> str:
        """Name of the resource of a column."""
        return self._axis.names[column]

    def total(self) -> Ints:
        """What all ready nodes have, by column; a copy."""
        return self.facts.total().copy()

    def used(self) -> Ints:
        """What pods take of all ready nodes, by column; those of other schedulers included."""
        rows, facts = self.rows, self.facts
        used: Ints = np.add.reduce(rows.used) if facts.are_all_ready else facts.ready @ rows.used
        return used

    @property
    def away(self) -> Away:
        """What pods of queues hold on nodes that are not ready, as they were when it was first asked for."""
        if self._away is None:
            if self.facts.are_all_ready and self._nodes.are_all_there:
                self._away = nothing_away(*self.shares.allocated.shape)
            else:
                self._away = Away.of(self.running, self.facts.unready, self.shares)
        return self._away

    def yielding(self, job: JobInfo) -> Ints:
        """What pods take that `preempt` or `gangpreempt` may evict for a gang, by column: pods of less important gangs of its queue.

        Whether plugins protect some of them is not asked. Pods on nodes that are not ready make no room. Nothing without these actions.
        """
        row, priority = key = job.row, job.order_priority
        found = self._yielding.get(key)
        if found is None:
            running, count = self.running, len(self.running.tasks)
            found = np.zeros(running.vectors.shape[1], dtype=np.int64)
            if not self.actions.isdisjoint(PREEMPTING) and row >= 0 and count:
                less = [
                    gang is not None and gang.row == row and gang.order_priority < priority
                    for gang in running.gangs
                ]
                if any(less):
                    mask = running.used[:count] & running.preemptable[:count]
                    mask &= np.array(less, dtype=np.bool_)[running.gang[:count]]
                    mask &= ~are_away(running, self.facts.unready)[:count]
                    found = running.vectors[:count][mask].sum(axis=0)
            self._yielding[key] = found
        return found

    def may_take_back(self, job: JobInfo) -> bool:
        """True if `reclaim` or `gangreclaim` may make room for a gang's minimum, by the plugins' answers about its queue."""
        if not self.actions.isdisjoint(RECLAIMING):
            for each in self.extensions.job_entitled:
                if each.call(job):
                    return True
        return False

    def room_to_take_back(self, job: JobInfo) -> Ints:
        """The most that a gang in the queue of a gang may need, by column, for `may_take_back` to be true."""
        room: Ints = np.zeros(self.shares.width, dtype=np.int64)
        found = self.extensions
        if self.actions.isdisjoint(RECLAIMING):
            return room
        if len(found.entitled_rooms) < len(found.job_entitled):
            room[:] = UNLIMITED  # a plugin does not say
            return room
        for each in found.entitled_rooms:
            np.maximum(room, each(job), out=room)
        return room

    def try_again(self, job: JobInfo) -> None:
        """Try a gang in this session for which only the time has changed."""
        self._state.parked.wake(job.key)
        place = bisect_left(self.waiting, job.key, key=lambda each: each.key)
        is_there = place < len(self.waiting) and self.waiting[place] is job
        if not is_there and job.key not in self._state.gangs.quarantined:
            self.waiting.insert(place, job)

    def wake_at(self, moment: float, *, changes: Cause = Cause.ITSELF) -> None:
        """Schedule a cycle at a time, even if nothing changes until then.

        Args:
            moment: When, UNIX seconds.
            changes: What plugins answer otherwise from then on, so that gangs which wait for it are to be tried again: `Cause.VICTIMS` for
                checks of running pods, `Cause.RULES` for filters or scores of nodes.
        """
        self._state.wakes.append(moment)
        if changes:
            self._state.changes.append((moment, changes))

    def publish(self, figure: Figure, values: QueueValues | Callable[[], QueueValues]) -> None:
        """Let metrics show what a plugin has computed about queues, until the next session; the last one counts.

        Args:
            figure: What it is.
            values: Amounts of each queue in the units of the columns, or a number for each queue, by the rows of `shares`.
                They are kept as they are: give a copy of what changes during the session. Or a function that gives
                them when they are asked for, also after the session.
        """
        self._state.published[figure] = values

    @property
    def reservation(self) -> Reservation | None:
        """The gang for which nodes are reserved, and the nodes."""
        return self._state.reservation

    @property
    def target(self) -> JobInfo | None:
        """The gang for which nodes are, or are to be, reserved."""
        reservation = self._state.reservation
        if reservation is None:
            return None
        job = self._state.jobs.get(reservation.gang)
        return job if reservation.is_for(job) else None

    @property
    def host_ports(self) -> Mapping[PortBlock, Mapping[str, PortUsers]]:
        """Ports in use: by block, the nodes, and how many pods there use which ports of it."""
        return MappingProxyType(self._nodes.ports)

    @property
    def leaving_ports(self) -> Mapping[PortBlock, Mapping[str, PortUsers]]:
        """Those of the ports in use that terminating pods have."""
        return MappingProxyType(self._nodes.leaving_ports)

    def row_of(self, node: str) -> int:
        """Row of a node, -1 when it is not there."""
        return self._nodes.row_of(node)

    def evicted(self) -> list[TaskInfo]:
        """Pods whose eviction was decided in earlier cycles and is not shown by the API server yet."""
        tasks = self._state.tasks
        return [tasks[key] for key in self._state.assumed.evicted if key in tasks]

    def is_spared(self, task: TaskInfo) -> bool:
        """True if the API server has refused the eviction of a pod, so that it is not chosen for some time."""
        uid, _ = self._state.pods.spared.get(task.key, (None, 0.0))
        return uid == task.uid

    def warn_queue(self, name: str, reason: str, message: str) -> None:
        """Send the owner of a queue a warning event, once, about a setting without effect."""
        warned = self._state.gangs.warned.setdefault(f"queue {name}", set())
        if message not in warned:
            warned.add(message)
            self._events.append(Event("Queue", "", name, "Warning", reason, message))

    def warn(self, job: JobInfo, reason: str, message: str) -> None:
        """Send the owner of a gang a warning event, once, about an ignored setting."""
        warned = self._state.gangs.warned.setdefault(job.key, set())
        if message in warned:
            return
        warned.add(message)
        self._events.append(Event("PodGroup", job.namespace, job.name, "Warning", reason, message))
