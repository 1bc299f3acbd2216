"""Gangs that the nodes could not hold even if they were empty.

Such a gang waits until the cluster grows, so the gate of queues keeps no room for it. What is said here is a bound by arithmetic:
a gang about which nothing is said may still fit nowhere.
"""

from collections.abc import Callable, Hashable, Mapping

import numpy as np

from pumice.api.messages import listed
from pumice.scheduler.explain.nearest import amount
from pumice.scheduler.model.axis import PODS, SCORED_CPU, SCORED_MEMORY, Bools, Ints
from pumice.scheduler.model.free_room import least, places
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.state.reserved_nodes import WAITING, lack
from pumice.scheduler.state.watched_cluster import ClusterState

__all__ = ["EmptyNodes", "ReadyNodes"]

_FEW = 8
"""Shapes of a gang up to which filters are asked for each; for more, all ready nodes count."""

_MASKS = 64
"""Maximum number of masks whose nodes are kept; one for each set of rules about nodes is enough."""


class ReadyNodes:
    """The ready nodes of a mask.

    Attributes:
        count: How many they are.
        largest: The most that one of them has when empty, by column; empty if there is none.
        smallest: The least.
        are_all: Whether they are all ready nodes.
    """

    __slots__ = ("_mask", "are_all", "count", "largest", "smallest")

    def __init__(self, mask: Bools, ready: Bools, allocatable: Ints) -> None:
        self._mask = mask & ready
        self.count = int(np.count_nonzero(self._mask))
        self.are_all = self.count == np.count_nonzero(ready)
        rows = allocatable[self._mask]
        self.largest: list[int] = rows.max(axis=0).tolist() if self.count else []
        self.smallest: list[int] = rows.min(axis=0).tolist() if self.count else []

    def places(self, shape: PodShape, allocatable: Ints, needed: int) -> int:
        """How many pods of a shape they hold when empty; if even the smallest nodes hold what is needed, at least that."""
        each = min([self.smallest[need.column] // need.amount for need in shape.needs])
        if each * self.count >= needed:
            return needed
        if any(need.amount > self.largest[need.column] for need in shape.needs):
            return 0
        return int(places([least([shape])], allocatable[self._mask]).sum())


class EmptyNodes:
    """What the ready nodes of a session hold without the pods on them."""

    def __init__(
        self, state: ClusterState, rows: Rows, suiting: Callable[[TaskInfo, str], Bools]
    ) -> None:
        """Begin a session.

        Args:
            state: The cluster, settled.
            rows: All nodes.
            suiting: Nodes that the filters leave to a pod of a queue.
        """
        facts = state.facts
        self._state = state
        self._axis = state.axis
        self._allocatable = rows.allocatable
        self._ready: Bools = ~facts.unready
        self._open: Bools = self._ready & ~facts.unschedulable
        self._has_ready = bool(self._ready.any())
        self._suiting = suiting
        # Otherwise filters exclude nodes only for some time, because they are cordoned or reserved.
        is_open = not (self._ready & facts.unschedulable).any()
        self._exclude_for_good = state.reservation is None and is_open
        self._said: dict[Hashable, str | None] = {}
        self._limits: tuple[Ints, Ints] | None = None
        self._masks: dict[int, tuple[Bools, ReadyNodes]] = {}

    def why_too_large(self, job: JobInfo, *, has_reserved: bool = False) -> str | None:
        """Why the nodes could not hold what a gang lacks, if they were empty; None if they may, or if no node is ready.

        Empty if its rules exclude all nodes, which the answers of the filters explain.

        Args:
            job: The gang.
            has_reserved: Whether it may use nodes that others may not.
        """
        lacking = job.lacking if job.tasks else job.min_member - job.ready
        if lacking <= 0 or not self._has_ready:
            return None
        if not job.tasks:
            key: Hashable = (job.minimum.tobytes(), lacking)
            if key not in self._said:
                self._said[key] = self._of_minimum(job.minimum, lacking)
            return self._said[key]
        waiting = [task for task in job.tasks.values() if task.status in WAITING]
        counts: dict[PodShape, int] = {}
        for task in waiting:
            counts[task.shape] = counts.get(task.shape, 0) + 1
        key = (lacking, job.queue, job.key if has_reserved else "", *counts.items())
        if key not in self._said:
            self._said[key] = self._of_pods(job, lacking, waiting, counts)
        return self._said[key]

    def candidates(self, job: JobInfo) -> Bools:
        """Nodes that may hold a gang; of which its pods may use, `usable` decides once they are there."""
        return np.ones(len(self._allocatable), dtype=np.bool_) if job.tasks else self._open

    def usable(self, task: TaskInfo) -> Bools:
        """Nodes that a pod may use, and that could hold it if nothing else were there."""
        usable = self._suiting(task, self._state.jobs[task.job].queue).copy()
        for need in task.shape.needs:
            usable &= self._allocatable[:, need.column] >= need.amount
        return usable

    def could_hold(self, job: JobInfo) -> bool:
        """Whether the nodes could hold a gang, by what `lack` says of them."""
        if not self._axis.has_all(job.min_resources.keys()):
            return False
        return not lack(job, self._allocatable, self.candidates(job), self.usable)

    def _of_pods(
        self, job: JobInfo, lacking: int, waiting: list[TaskInfo], counts: Mapping[PodShape, int]
    ) -> str | None:
        """The same of a gang with pods, of which so many of each shape wait; the same of all such gangs of a queue."""
        firsts = {task.shape: task for task in reversed(waiting)}
        for shape, task in firsts.items():
            needed = min(lacking - len(waiting) + counts[shape], counts[shape])
            if needed <= 0:
                continue
            suiting = self._suiting(task, job.queue) if len(firsts) <= _FEW else self._ready
            usable = self._ready_nodes(suiting)
            if not usable.count:
                if self._exclude_for_good:
                    return ""
                continue
            found = usable.places(shape, self._allocatable, needed)
            if found < needed:
                return _why(shape, needed, found, usable)
        return None

    def _of_minimum(self, minimum: Ints, members: int) -> str | None:
        """The same of a gang without pods, one of which asks for at least its part of the minimum."""
        if self._limits is None:
            rows = self._allocatable[self._ready]
            self._limits = rows.max(axis=0), rows.sum(axis=0)
        largest, total = self._limits
        minimum = minimum[: len(total)]
        part = -(-minimum // members)
        for limits, needs, text in (
            (largest, part, "needs {} on one node; the largest has {}"),
            (total, minimum, "needs {}; all nodes together have {}"),
        ):
            exceeds = needs > limits
            exceeds[[PODS, SCORED_CPU, SCORED_MEMORY]] = False
            if exceeds.any():
                at = int(exceeds.argmax())
                has = amount(at, int(limits[at]))
                return text.format(f"{amount(at, int(needs[at]))} {self._axis.names[at]}", has)
        return None

    def _ready_nodes(self, mask: Bools) -> ReadyNodes:
        """The ready nodes of a mask; it is kept with the answer, so that no other one has its identity meanwhile."""
        known = self._masks.get(id(mask))
        if known is None:
            if len(self._masks) >= _MASKS:
                self._masks.clear()
            known = self._masks[id(mask)] = mask, ReadyNodes(mask, self._ready, self._allocatable)
        return known[1]


def _why(shape: PodShape, needed: int, found: int, nodes: ReadyNodes) -> str:
    """Why nodes do not hold so many pods of a shape, but only those found."""
    named = [need for need in shape.needs if need.name != "pods"]
    for need in named:
        has = nodes.largest[need.column]
        if need.amount > has:
            text = f"needs {amount(need.column, need.amount)} {need.name} on one node"
            which = "the largest" if nodes.are_all else "the largest that it may use"
            return f"{text}; {which} has {amount(need.column, has)}"
    if not found:
        asked = listed([f"{amount(need.column, need.amount)} {need.name}" for need in named])
        return f"needs {asked} on one node; no node has all of it, even when empty"
    return f"nodes have room for {found} of {needed} such pods, even when empty"
