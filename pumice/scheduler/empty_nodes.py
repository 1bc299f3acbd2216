"""Gangs that the nodes could not hold even if they were empty.

Such a gang waits until the cluster grows, so the gate of queues keeps no room for it. What is said here is a bound by arithmetic:
a gang about which nothing is said may still fit nowhere.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

import numpy as np

from pumice.api.messages import listed
from pumice.scheduler.model.axis import PODS, SCORED_CPU, SCORED_MEMORY, Axis, Bools, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.room import least, places
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo
from pumice.scheduler.nearest import amount

__all__ = ["EmptyNodes"]

_FEW = 8
"""Shapes of a gang up to which filters are asked for each; for more, all ready nodes count."""

_WAITING = (SchedulingStatus.PENDING, SchedulingStatus.PIPELINED)


class _Nodes(NamedTuple):
    """Nodes that pods of a kind may use.

    Attributes:
        places: Pods of the kind that they hold when empty.
        largest: The most that one of them has, by column.
        are_all: Whether they are all ready nodes.
    """

    places: int
    largest: Ints
    are_all: bool


class EmptyNodes:
    """What the ready nodes of a session hold without the pods on them."""

    def __init__(
        self,
        axis: Axis,
        allocatable: Ints,
        ready: Bools,
        suiting: Callable[[TaskInfo, str], Bools],
        *,
        exclude_for_good: bool,
    ) -> None:
        """Begin a session.

        Args:
            axis: Names of the columns.
            allocatable: What nodes have, by row and column.
            ready: Nodes that are ready, by row.
            suiting: Nodes that the filters leave to a pod of a queue.
            exclude_for_good: Whether filters exclude no node only for some time, because it is cordoned or reserved.
        """
        self._axis = axis
        self._allocatable = allocatable
        self._ready = ready
        self._has_ready = bool(ready.any())
        self._suiting = suiting
        self._exclude_for_good = exclude_for_good
        self._said: dict[Hashable, str | None] = {}
        self._limits: tuple[Ints, Ints] | None = None
        self._smallest: list[int] | None = None

    def why_too_large(self, job: JobInfo, *, has_reserved: bool = False) -> str | None:
        """Why the nodes could not hold what a gang lacks, if they were empty; None if they may, or if no node is ready.

        Empty if its rules exclude all nodes, which the answers of the filters explain.

        Args:
            job: The gang.
            has_reserved: Whether it may use nodes that others may not.
        """
        lacking = job.min_member - job.ready
        if lacking <= 0 or not self._has_ready:
            return None
        if not job.tasks:
            key: Hashable = (job.minimum.tobytes(), lacking)
            if key not in self._said:
                self._said[key] = self._of_minimum(job.minimum, lacking)
            return self._said[key]
        waiting = [task for task in job.tasks.values() if task.status in _WAITING]
        counts: dict[PodShape, int] = {}
        for task in waiting:
            counts[task.shape] = counts.get(task.shape, 0) + 1
        key = (lacking, job.queue, job.key if has_reserved else "", *counts.items())
        if key not in self._said:
            self._said[key] = self._of_pods(job, lacking, waiting, counts)
        return self._said[key]

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
            usable = int(np.count_nonzero(suiting & self._ready))
            if not usable and self._exclude_for_good:
                return ""
            if not usable or self._have_places(shape, needed, usable):
                continue
            nodes = self._nodes(shape, suiting)
            if nodes.places < needed:
                return self._of_shape(shape, needed, nodes)
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

    def _have_places(self, shape: PodShape, needed: int, nodes: int) -> bool:
        """Whether even so many of the smallest nodes hold the pods that are needed."""
        if self._smallest is None:
            self._smallest = self._allocatable[self._ready].min(axis=0).tolist()
        each = min([self._smallest[need.column] // need.amount for need in shape.needs])
        return each * nodes >= needed

    def _nodes(self, shape: PodShape, suiting: Bools) -> _Nodes:
        """What nodes hold of pods of a shape, or lack for it."""
        usable = suiting & self._ready
        rows = self._allocatable[usable]
        count = int(places([least([shape])], rows).sum())
        return _Nodes(count, rows.max(axis=0), bool((usable == self._ready).all()))

    def _of_shape(self, shape: PodShape, needed: int, nodes: _Nodes) -> str:
        named = [need for need in shape.needs if need.name != "pods"]
        for need in named:
            has = int(nodes.largest[need.column])
            if need.amount > has:
                text = f"needs {amount(need.column, need.amount)} {need.name} on one node"
                which = "the largest" if nodes.are_all else "the largest that it may use"
                return f"{text}; {which} has {amount(need.column, has)}"
        if not nodes.places:
            asked = listed([f"{amount(need.column, need.amount)} {need.name}" for need in named])
            return f"needs {asked} on one node; no node has all of it, even when empty"
        return f"nodes have room for {nodes.places} of {needed} such pods, even when empty"
