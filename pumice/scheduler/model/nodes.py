"""The node table: one row for each node, one column for each resource, amounts in the units of `axis`.

Rows are sorted by node name, so that ties are broken in the same way for any order of events.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter

import numpy as np

from pumice.api.nodes import Node
from pumice.api.quantities import MILLI, parse_milli
from pumice.scheduler.model.axis import (
    CPU,
    MEMORY,
    PODS,
    SCORED_CPU,
    SCORED_MEMORY,
    Axis,
    Bools,
    Ints,
)
from pumice.scheduler.model.host_ports import PortBlock
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.peers import PeerTable
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.running_pods import VICTIMS, RunningTable
from pumice.scheduler.model.tasks import NEEDS_ROOM, PIPELINED, RELEASING, TaskInfo

DEFAULT_PODS = 110 * MILLI
"""Milli-pods that fit on a node which reports no limit; kubelet's default."""

_FIRST_CAPACITY = 64
_LONGEST_CHANGES = 1 << 16
_FEW = 16
"""New nodes up to which their places among the others are looked up; more are sorted with all."""
_BY_NAME = attrgetter("name")
_COUNTED = NEEDS_ROOM | {PIPELINED}

Ports = dict[PortBlock, dict[str, dict[int, int]]]
"""Host ports in use: by block, the nodes, and how many pods there use which ports of it."""


class NodeRecord:
    """A node, or the name of one that pods are on but that has not been seen yet.

    Attributes:
        row: Row in the table; -1 while the node is not there.
        is_ready: Whether it takes pods.
        is_marked: Whether `NodeFacts` has to note anything about it: it has taints, is cordoned or is not ready.
        tasks: Pods on it, those of other schedulers included.
    """

    __slots__ = ("is_marked", "is_ready", "name", "node", "row", "tasks")

    def __init__(self, name: str) -> None:
        self.name = name
        self.row = -1
        self.node: Node | None = None
        self.is_ready = self.is_marked = False
        self.tasks: dict[str, TaskInfo] = {}


class NodeTable:
    """All nodes.

    Attributes:
        records: Nodes by name, unseen ones included.
        order: Records by row.
        names: Names by row, as of the last `settle`.
        layout: Grows when rows move, come or go; whatever is kept by row is worthless then.
        changes: Rows on which a pod, or room for one, has come or gone since `rows` has given others, in order.
        ports: Host ports in use: by block, the nodes, and how many pods there use which ports of it.
        leaving_ports: Those of them that terminating pods have.
        on_change: Called with row, old node (None for a new one) and new node.
        on_claims: Called with a pod that mounts claims: when it has been put on a node, and when it has left it.
    """

    def __init__(self, axis: Axis, jobs: Mapping[str, JobInfo]) -> None:
        """An empty table; jobs are to have all gangs whose pods are put on nodes."""
        self._axis = axis
        self.peers = PeerTable()
        self.records: dict[str, NodeRecord] = {}
        self.order: list[NodeRecord] = []
        self.names: tuple[str, ...] = ()
        self.running = RunningTable(axis, jobs)
        self.layout = 0
        self._is_settled = True
        self._has_removed = False
        self.ports: Ports = {}
        self.leaving_ports: Ports = {}
        self.on_change: list[Callable[[int, Node | None, Node], None]] = []
        self.on_claims: tuple[Callable[[TaskInfo], None], Callable[[TaskInfo], None]] | None = None
        shape = (_FIRST_CAPACITY, len(axis))
        self._allocatable = np.zeros(shape, np.int64, order="F")
        self._used = np.zeros(shape, np.int64, order="F")
        self._releasing = np.zeros(shape, np.int64, order="F")
        self._pipelined = np.zeros(shape, np.int64, order="F")
        self._rows: Rows | None = None
        self.changes: list[int] = []

    def __len__(self) -> int:
        return len(self.order)

    @property
    def are_all_there(self) -> bool:
        """Whether all nodes are there that pods name; to be asked of a settled table."""
        return len(self.records) == len(self.order)

    # -- events ------------------------------------------------------------------------------

    def record(self, name: str) -> NodeRecord:
        """The record of a name; a new one for a new name."""
        record = self.records.get(name)
        if record is None:
            record = self.records[name] = NodeRecord(name)
        return record

    def read(self, node: Node) -> Ints:
        """What a node has to give, in column order; opens columns for new names.

        Raises:
            QuantityError: An amount cannot be read.
        """
        reported = node.status.allocatable
        if reported is None:
            reported = node.status.capacity
        amounts = {
            name: parse_milli(value)
            for name, value in (reported or {}).items()
            if not name.startswith("count/")
        }
        amounts.setdefault("pods", DEFAULT_PODS)
        vector = self._axis.vector(amounts, has=True)
        vector[SCORED_CPU] = vector[CPU]
        vector[SCORED_MEMORY] = vector[MEMORY]
        return vector

    def set(self, node: Node, allocatable: Ints) -> bool:
        """Add or update a node with the result of `read`; True if a relevant field changed."""
        record = self.record(node.metadata.name)
        old = record.node
        is_new = record.row < 0
        if is_new:
            self._append(record)
            for task in record.tasks.values():
                if task.status in _COUNTED:
                    self._count_amounts(task, record.row, 1)
                if task.row >= 0:
                    self.running.move(task, record.row)
        row = record.row
        changed = is_new or not np.array_equal(self._allocatable[row], allocatable)
        self._allocatable[row] = allocatable
        if old is not None and not says_the_same(old, node):
            changed = True
        record.node = node
        record.is_ready = node.is_ready
        record.is_marked = bool(node.spec.taints) or node.spec.unschedulable or not record.is_ready
        if changed:
            self._rows = None
            for listener in self.on_change:
                listener(row, None if is_new else old, node)
        return changed

    def remove(self, name: str) -> bool:
        """Remove a node; pods that are still on it keep its record. True if it existed."""
        record = self.records.get(name)
        if record is None or record.row < 0:
            return False
        record.row = -1
        record.node = None
        for task in record.tasks.values():
            if task.row >= 0:
                self.running.move(task, -1)
        self._is_settled = False
        self._has_removed = True
        self.drop_if_unused(record)
        return True

    def drop_if_unused(self, record: NodeRecord) -> None:
        """Forget the record of a node that is neither there nor named by a pod."""
        if record.row < 0 and not record.tasks:
            self.records.pop(record.name, None)

    def widen(self) -> None:
        """Open the columns that the axis has gained."""
        missing = len(self._axis) - self._used.shape[1]
        if missing > 0:
            self._resize(lambda array: np.pad(array, ((0, 0), (0, missing))))
            self.running.widen()

    def settle(self) -> None:
        """Bring the rows into the order of names, without those of removed nodes."""
        if len(self.changes) > _LONGEST_CHANGES:
            self._rows = None
        if self._is_settled:
            return
        known = len(self.names)
        came = self.order[known:]
        if not self._has_removed and len(came) <= _FEW:
            present, rows, first = self._with_few(known, came)
        else:
            present = [record for row, record in enumerate(self.order) if record.row == row]
            present.sort(key=_BY_NAME)
            rows = np.array([record.row for record in present], dtype=np.int64)
            first = 0
        moved = np.full(len(self.order), -1, dtype=np.int64)
        moved[rows] = np.arange(len(rows))
        self.running.reorder(moved)
        self.peers.reorder(moved)
        capacity = max(_FIRST_CAPACITY, 2 * len(present))

        def reorder(array: Ints) -> Ints:
            sorted_array = np.zeros((capacity, array.shape[1]), np.int64, order="F")
            sorted_array[: len(rows)] = array[rows]
            return sorted_array

        self._resize(reorder)
        for row, record in enumerate(present[first:], first):
            record.row = row
        self.order = present
        self.names = (*self.names[:first], *[record.name for record in present[first:]])
        self.layout += 1
        self._is_settled = True
        self._has_removed = False

    def _with_few(
        self, known: int, came: Sequence[NodeRecord]
    ) -> tuple[list[NodeRecord], Ints, int]:
        """Insert a few records into the settled ones: all records, their rows so far, and the first place that changes."""
        present, rows = self.order[:known], list(range(known))
        first = known
        for record in came:
            place = bisect_left(present, record.name, key=_BY_NAME)
            present.insert(place, record)
            rows.insert(place, record.row)
            first = min(first, place)
        return present, np.array(rows, dtype=np.int64), first

    # -- pods --------------------------------------------------------------------------------

    def add(self, task: TaskInfo, record: NodeRecord) -> None:
        """Put a pod on a node and count it by its status."""
        task.node = record.name
        record.tasks[task.key] = task
        self._count(task, record, 1)
        if task.status in VICTIMS and task.job:
            self.running.add(task, record.row)
        if task.shape.claims and self.on_claims is not None:
            self.on_claims[0](task)

    def discard(self, task: TaskInfo) -> None:
        """Undo `add`; the pod must have the status it had then."""
        if not task.node:
            return
        record = self.records[task.node]
        self._count(task, record, -1)
        if task.row >= 0:
            self.running.discard(task)
        task.node = ""
        record.tasks.pop(task.key, None)
        if task.shape.claims and self.on_claims is not None:
            self.on_claims[1](task)

    def _count(self, task: TaskInfo, record: NodeRecord, sign: int) -> None:
        status = task.status
        if status not in _COUNTED:
            return
        if self._rows is not None:
            self.changes.append(record.row)
        for block, ports in task.shape.ports.taken:
            _count_ports(self.ports, block, record.name, ports, sign)
            if status is RELEASING:
                _count_ports(self.leaving_ports, block, record.name, ports, sign)
        if record.row >= 0:
            self._count_amounts(task, record.row, sign)

    def _count_amounts(self, task: TaskInfo, row: int, sign: int) -> None:
        if self.peers.is_live:
            self.peers.count(task, row, sign)
        status = task.status
        vector, change = task.shape.vector, np.add if sign > 0 else np.subtract
        taken = (self._pipelined if status is PIPELINED else self._used)[row]
        change(taken, vector, out=taken)
        if status is RELEASING:
            taken = self._releasing[row]
            change(taken, vector, out=taken)

    def row_of(self, node: str) -> int:
        """Row of a node; -1 when it is not there."""
        record = self.records.get(node)
        return record.row if record is not None else -1

    def rows(self) -> Rows:
        """All rows as they are, without a copy; they cannot be written to and follow every change of pods. Others once a node has changed."""
        if self._rows is None:
            count = slice(0, len(self.order))
            own = (self._allocatable, self._used, self._releasing, self._pipelined)
            views = [array[count] for array in own]
            for view in views:
                view.flags.writeable = False
            self._rows = Rows(count, *views)
            self.changes.clear()
        return self._rows

    def are_any_leaving(self) -> bool:
        """Whether any pod terminates on a node; each has a slot there."""
        return bool(self._releasing[: len(self.order), PODS].any())

    def terminating(self, unready: Bools) -> list[TaskInfo]:
        """Pods that terminate on nodes that are ready; the end of others may never be reported."""
        rows = np.flatnonzero((self._releasing[: len(self.order), PODS] > 0) & ~unready)
        tasks = [task for row in rows.tolist() for task in self.order[row].tasks.values()]
        return [task for task in tasks if task.status is RELEASING]

    def free(self, rows: int | slice | Ints) -> Ints:
        """What is free on a node, or on several, once terminating pods are gone, by column; a copy."""
        found: Ints = self._allocatable[rows] - self._used[rows] + self._releasing[rows]
        return found

    def future_idle(self, row: int) -> Ints:
        """What is free on a node once terminating pods are gone and promised places are taken; a copy."""
        found: Ints = self.free(row) - self._pipelined[row]
        return found

    def promise(self, vector: Ints, row: int, sign: int) -> None:
        """Hold room on a node for a pod that is not there, or release it (-1)."""
        self.changes.append(row)
        self._pipelined[row] += sign * vector

    # -- internals ------------------------------------------------------------------------------

    def _append(self, record: NodeRecord) -> None:
        row = len(self.order)
        capacity = len(self._used)
        if row == capacity:
            self._resize(lambda array: np.pad(array, ((0, capacity), (0, 0))))
        record.row = row
        self.order.append(record)
        self._rows = None
        self.peers.forget_views()
        self._used[row] = self._releasing[row] = self._pipelined[row] = 0
        self._is_settled = False

    def _resize(self, change: Callable[[Ints], Ints]) -> None:
        self._rows = None
        self._allocatable = np.asfortranarray(change(self._allocatable))
        self._used = np.asfortranarray(change(self._used))
        self._releasing = np.asfortranarray(change(self._releasing))
        self._pipelined = np.asfortranarray(change(self._pipelined))


def _count_ports(table: Ports, block: PortBlock, node: str, ports: int, sign: int) -> None:
    nodes = table.get(block)
    if nodes is None:
        nodes = table[block] = {}
    users = nodes.get(node)
    if users is None:
        users = nodes[node] = {}
    count = users.get(ports, 0) + sign
    if count:
        users[ports] = count
        return
    del users[ports]
    if not users:
        del nodes[node]
    if not nodes:
        del table[block]


def says_the_same(old: Node, new: Node) -> bool:
    """True if two versions of a node are equal apart from resources and annotations."""
    return (
        old.metadata.labels == new.metadata.labels
        and old.spec == new.spec
        and old.is_ready == new.is_ready
    )
