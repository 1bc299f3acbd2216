"""What plugins see of a session: everything, and none of it to be changed."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from pumice.api.queues import Queue
from pumice.scheduler.model.axis import Axis, Ints, in_units
from pumice.scheduler.model.budgets import BudgetTable
from pumice.scheduler.model.claims import ClaimTable
from pumice.scheduler.model.facts import NodeFacts
from pumice.scheduler.model.jobs import Job
from pumice.scheduler.model.nodes import NodeTable, Rows
from pumice.scheduler.model.queues import QueueTable
from pumice.scheduler.model.running import RunningTable
from pumice.scheduler.model.selectors import NodeMatcher
from pumice.scheduler.model.tasks import Task
from pumice.scheduler.reservation import Reservation
from pumice.scheduler.results import Event
from pumice.scheduler.retries import to_try
from pumice.scheduler.state import ClusterState

__all__ = ["SessionView"]


class SessionView:
    """A read-only view of the cluster for one session.

    Attributes:
        now: The moment, UNIX seconds.
        rows: All nodes; their columns cannot be written to and follow every placement.
        node_names: Names of the nodes by row.
        facts: Labels and taints in columns.
        matcher: Selectors as masks.
        shares: Queues in columns: what they hold, ask for and reserve.
        running: Pods of gangs that run or are bound, in columns.
        budgets: PodDisruptionBudgets.
        claims: Claims, and where their volumes can be used.
        jobs: Gangs by key.
        queues: Queues by name.
        waiting: Gangs that this session may do something for, in the order of their keys; without those in
            quarantine.
        actions: Names of the configured actions.
    """

    __slots__ = (
        "_axis",
        "_events",
        "_nodes",
        "_spared",
        "_state",
        "_wakes",
        "_warned",
        "actions",
        "budgets",
        "claims",
        "facts",
        "jobs",
        "matcher",
        "node_names",
        "now",
        "queues",
        "rows",
        "running",
        "shares",
        "waiting",
    )

    def __init__(
        self,
        state: ClusterState,
        now: float,
        actions: frozenset[str],
        events: list[Event],
    ) -> None:
        self._axis: Axis = state.axis
        self._state = state
        self._nodes: NodeTable = state.nodes
        self._events = events
        self._warned = state.warned
        self._spared = state.spared
        self._wakes: list[float] = state.wakes
        self.now = now
        self.rows: Rows = state.nodes.rows()
        self.node_names: Sequence[str] = state.nodes.names
        self.facts: NodeFacts = state.facts
        self.matcher: NodeMatcher = state.matcher
        self.budgets: BudgetTable = state.budgets
        self.claims: ClaimTable = state.claims
        self.shares: QueueTable = state.shares
        self.running: RunningTable = state.nodes.running
        self.jobs: Mapping[str, Job] = MappingProxyType(state.jobs)
        self.queues: Mapping[str, Queue] = MappingProxyType(state.queues)
        self.waiting: Sequence[Job] = to_try(
            (job for key, job in state.waiting.items() if key not in state.quarantined),
            state.gains,
            state.nodes,
        )
        self.actions = actions

    def column(self, resource: str) -> int | None:
        """Column of a resource; None when no node and no pod has ever named it."""
        return self._axis.find(resource)

    def total(self) -> Ints:
        """What all ready nodes have, by column."""
        ready = ~self.facts.unready
        total: Ints = self.rows.allocatable[ready].sum(axis=0)
        return total

    def vector(self, amounts: Mapping[str, int], missing: int = 0) -> Ints:
        """Milli-units by resource name as columns; resources that no node and no pod has named are left out.

        Args:
            amounts: Milli-units by resource name.
            missing: What stands in columns of resources that are not among them.
        """
        vector = np.full(len(self._axis), missing, dtype=np.int64)
        for name, milli in amounts.items():
            column = self._axis.find(name)
            if column is not None:
                vector[column] = in_units(column, milli, has=True)
        return vector

    def wake_at(self, moment: float) -> None:
        """Have a cycle run at a moment, UNIX seconds, even if nothing changes until then."""
        self._wakes.append(moment)

    @property
    def reservation(self) -> Reservation | None:
        """The gang for which nodes are reserved, and the nodes."""
        return self._state.reservation

    @property
    def host_ports(self) -> Mapping[tuple[str, int], Mapping[tuple[str, str], int]]:
        """Ports in use: protocol and port to the pods on each node and address."""
        return MappingProxyType(self._nodes.ports)

    @property
    def leaving_ports(self) -> Mapping[tuple[str, int], Mapping[tuple[str, str], int]]:
        """Those of the ports in use that terminating pods have."""
        return MappingProxyType(self._nodes.leaving_ports)

    def row_of(self, node: str) -> int:
        """Row of a node, -1 when it is not there."""
        record = self._nodes.records.get(node)
        return record.row if record is not None else -1

    def evicted(self) -> list[Task]:
        """Pods whose eviction was decided in earlier cycles and is not shown by the API server yet."""
        tasks = self._state.tasks
        return [tasks[key] for key in self._state.assumed.evicted if key in tasks]

    def is_spared(self, task: Task) -> bool:
        """Whether the API server has refused the eviction of a pod, so that it is no victim for a while."""
        uid, _ = self._spared.get(task.key, (None, 0.0))
        return uid == task.uid

    def warn(self, job: Job, reason: str, message: str) -> None:
        """Tell the owner of a gang, once, that something in it is ignored."""
        warned = self._warned.setdefault(job.key, set())
        if message in warned:
            return
        warned.add(message)
        self._events.append(Event("PodGroup", job.namespace, job.name, "Warning", reason, message))
