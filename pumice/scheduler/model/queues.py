"""What queues take, ask for and reserve, in columns: a row a queue, kept by every event and every decision.

The sums of jobs are kept by the jobs (`Job.allocated`, `Job.pending`); these are the sums over the jobs of a queue. They
follow each pod that is placed, promised a place or evicted, also tentatively. What follows from a job as a whole, what it
reserves and what of it is elastic, is brought up to date for the jobs that changed when it is asked for.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from pumice.api import keys
from pumice.api.quantities import parse_milli
from pumice.api.queues import Queue
from pumice.scheduler.model.axis import Axis, Ints, in_units
from pumice.scheduler.model.jobs import Job

__all__ = ["MAX_DEPTH", "UNSAID", "QueueTable", "check_amounts"]

UNSAID = -1
"""Stands in `QueueTable.stated` for an amount that a queue does not state."""

Field = Literal["capability", "deserved", "guarantee"]
"""Fields of a Queue's spec that hold amounts."""

MAX_DEPTH = 64
"""Levels of queues that count; admission allows fewer."""

_RUNNING = "Running"
_INQUEUE = "Inqueue"


class QueueTable:
    """All queues, in the order of their names.

    Attributes:
        names: Names by row.
        rows: Rows by name.
        queues: Queues by row.
        parents: Row of the queue above, by row; -1 for a queue without one.
        paths: Rows of a queue and of those above it, by row.
        levels: Rows by depth, the roots first.
        jobs: Jobs that a queue has itself, by row.
        allocated: What pods of its own jobs hold, by row and column.
        pending: What waiting pods of its own jobs ask for.
        tree: What pods of its own jobs hold, and of those of the queues below it.
    """

    __slots__ = (
        "_axis",
        "_elastic",
        "_is_settled",
        "_late",
        "_reserved",
        "_stated",
        "allocated",
        "jobs",
        "levels",
        "names",
        "parents",
        "paths",
        "pending",
        "queues",
        "rows",
        "tree",
    )

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        self._is_settled = True
        self._late: dict[str, Job] = {}
        self._clear({})

    def _clear(self, queues: Mapping[str, Queue]) -> None:
        self.names = tuple(sorted(queues))
        self.rows = {name: row for row, name in enumerate(self.names)}
        self.queues = [queues[name] for name in self.names]
        self.parents = [self._above(queue) for queue in self.queues]
        self._untangle()
        self.paths = [self._path(row) for row in range(len(self.names))]
        by_depth: dict[int, list[int]] = {}
        for row, path in enumerate(self.paths):
            by_depth.setdefault(len(path), []).append(row)
        self.levels = [np.array(by_depth[depth], dtype=np.int64) for depth in sorted(by_depth)]
        self._stated: dict[Field, Ints] = {}
        shape = (len(self.names), len(self._axis))
        self.jobs: Ints = np.zeros(len(self.names), dtype=np.int64)
        self.allocated: Ints = np.zeros(shape, dtype=np.int64)
        self.pending: Ints = np.zeros(shape, dtype=np.int64)
        self.tree: Ints = np.zeros(shape, dtype=np.int64)
        self._reserved: Ints = np.zeros(shape, dtype=np.int64)
        self._elastic: Ints = np.zeros(shape, dtype=np.int64)

    def _above(self, queue: Queue) -> int:
        name = queue.metadata.name
        if name == keys.ROOT_QUEUE:
            return -1
        return self.rows.get(queue.spec.parent or keys.ROOT_QUEUE, -1)

    def _untangle(self) -> None:
        """Make queues roots that would be their own ancestors, or more than `MAX_DEPTH` levels deep."""
        depths: dict[int, int] = {}
        for start in range(len(self.names)):
            above: dict[int, None] = {}
            row = start
            while row >= 0 and row not in depths and row not in above:
                above[row] = None
                row = self.parents[row]
            depth = depths.get(row, 0)
            for each in reversed(above):
                depth += 1
                if self.parents[each] in above and self.parents[each] not in depths:
                    depth = MAX_DEPTH + 1  # a circle
                if depth > MAX_DEPTH:
                    self.parents[each], depth = -1, 1
                depths[each] = depth

    def _path(self, row: int) -> Ints:
        """A queue and those above it."""
        path: list[int] = []
        while row >= 0:
            path.append(row)
            row = self.parents[row]
        return np.array(path, dtype=np.int64)

    # -- events ------------------------------------------------------------------------------

    def unsettle(self) -> None:
        """Note that a queue came, went, or changed; `settle` looks at them anew."""
        self._is_settled = False

    def settle(self, queues: Mapping[str, Queue], jobs: Mapping[str, Job]) -> None:
        """Take in queues that changed, and count all jobs anew if any did."""
        if self._is_settled:
            return
        self._clear(queues)
        self._is_settled = True
        for job in jobs.values():
            job.row = -1
            job.reserved = job.elastic = None
            self.place(job)

    def place(self, job: Job) -> None:
        """Count a job to the queue that its PodGroup names now; a job without a PodGroup counts to none."""
        row = self.rows.get(job.queue, -1) if job.group is not None else -1
        self._late[job.key] = job
        if row == job.row:
            return
        if job.row >= 0:
            self._count(job, -1)
        job.row = row
        if row >= 0:
            self._count(job, 1)

    def _count(self, job: Job, sign: int) -> None:
        row = job.row
        self.jobs[row] += sign
        self.allocated[row] += sign * job.allocated
        self.pending[row] += sign * job.pending
        self.tree[self.paths[row]] += sign * job.allocated
        if job.reserved is not None and job.elastic is not None:
            self._reserved[row] += sign * job.reserved
            self._elastic[row] += sign * job.elastic

    def hold(self, job: Job, vector: Ints) -> None:
        """Count what a pod of a job has come to hold; negative for what it holds no more."""
        self._late[job.key] = job
        row = job.row
        if row >= 0:
            self.allocated[row] += vector
            self.tree[self.paths[row]] += vector

    def wait(self, job: Job, vector: Ints) -> None:
        """Count what a waiting pod of a job asks for; negative for one that waits no more."""
        if job.row >= 0:
            self.pending[job.row] += vector

    def forget(self, job: Job) -> None:
        """Count a job no more."""
        if job.row >= 0:
            self._count(job, -1)
            job.row = -1
        self._late.pop(job.key, None)

    def widen(self) -> None:
        """Open the columns that the axis has gained."""
        missing = len(self._axis) - self.allocated.shape[1]
        if missing > 0:
            self._stated.clear()
            for name in ("allocated", "pending", "tree", "_reserved", "_elastic"):
                setattr(self, name, np.pad(getattr(self, name), ((0, 0), (0, missing))))

    # -- questions ---------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Columns that the table has; the axis may be ahead of it."""
        return int(self.allocated.shape[1])

    @property
    def reserved(self) -> Ints:
        """What jobs that were let into a queue may still take up to their `minResources`, by row and column.

        Jobs that are Inqueue, and those that run with their minimum of pods placed.
        """
        self._catch_up()
        return self._reserved

    @property
    def elastic(self) -> Ints:
        """What pods hold beyond the `minResources` of their job, by row and column."""
        self._catch_up()
        return self._elastic

    def resource(self, column: int) -> str:
        """Name of the resource of a column."""
        return self._axis.names[column]

    def stated(self, field: Field) -> Ints:
        """Amounts that queues state in their spec, by row and column; `UNSAID` where they do not."""
        found = self._stated.get(field)
        if found is None:
            found = np.full((len(self.names), self.width), UNSAID, dtype=np.int64)
            for row, queue in enumerate(self.queues):
                for name, amount in _amounts(queue, field).items():
                    column = self._axis.find(name)
                    if column is not None and column < self.width:
                        found[row, column] = in_units(column, amount, has=True)
            self._stated[field] = found
        return found

    def below(self, amounts: Ints) -> Ints:
        """Sums over each queue and those below it, of amounts by row and column."""
        sums = amounts.copy()
        parents = np.array(self.parents, dtype=np.int64)
        for level in reversed(self.levels):
            inner = level[parents[level] >= 0]
            np.add.at(sums, parents[inner], sums[inner])
        return sums

    def _catch_up(self) -> None:
        late, self._late = self._late, {}
        for job in late.values():
            reserved, elastic = _reserved(job), np.maximum(job.allocated - job.minimum, 0)
            if job.row >= 0:
                self._reserved[job.row] += _less(reserved, job.reserved)
                self._elastic[job.row] += _less(elastic, job.elastic)
            job.reserved, job.elastic = reserved, elastic


def check_amounts(queue: Queue) -> None:
    """Make sure that all amounts of a queue can be read.

    Raises:
        QuantityError: One cannot.
    """
    for field in ("capability", "deserved", "guarantee"):
        _amounts(queue, field)


def _amounts(queue: Queue, field: Field) -> Mapping[str, int]:
    """Milli-units by resource name; what is below 0 counts as nothing."""
    spec = queue.spec
    if field == "guarantee":
        stated = spec.guarantee.resource if spec.guarantee is not None else None
    else:
        stated = spec.capability if field == "capability" else spec.deserved
    return {name: max(parse_milli(value), 0) for name, value in (stated or {}).items()}


def _reserved(job: Job) -> Ints:
    holds = job.min_resources and (
        job.status.phase == _INQUEUE
        or (job.status.phase == _RUNNING and job.holding >= job.min_member)
    )
    if not holds:
        return np.zeros_like(job.minimum)
    rest: Ints = np.maximum(job.minimum - job.allocated, 0)
    return rest


def _less(new: Ints, old: Ints | None) -> Ints:
    return new if old is None else new - old
