"""Resources that queues hold, request and reserve, in columns: one row for each queue, updated by events and decisions.

The sums of jobs are kept by the jobs (`JobInfo.allocated`, `JobInfo.pending`); these are the sums over the jobs of a
queue. They are updated with each pod that is placed, pipelined or evicted, also tentatively. The reserved and the
elastic amounts of jobs are computed when they are needed, for the jobs that changed.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from pumice.api import keys
from pumice.api.queues import Queue
from pumice.scheduler.model.axis import Axis, Ints, read_only
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.queue_specs import QueueAmounts, QueueLimits
from pumice.scheduler.model.tasks import PENDING, SUCCEEDED, TaskInfo

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
        amounts: What the specs of queues say about resources, by name; kept by `ClusterState.set_queue`.
        allocated: What pods of its own jobs hold or are promised, by row and column.
        pending: What waiting pods of its own jobs ask for.
        tree: What pods of its own jobs hold, and of those of the queues below it.
        width: Columns that the table has; the axis may be ahead of it.
    """

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        self._is_settled = False
        self._late: dict[str, JobInfo] = {}
        self._broken: dict[str, JobInfo] = {}
        self._reserving: dict[str, JobInfo] = {}
        self.amounts: dict[str, QueueAmounts] = {}
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
        shape = (len(self.names), len(self._axis))
        self.jobs: Ints = np.zeros(len(self.names), dtype=np.int64)
        self.allocated: Ints = np.zeros(shape, dtype=np.int64)
        self.pending: Ints = np.zeros(shape, dtype=np.int64)
        self.tree: Ints = np.zeros(shape, dtype=np.int64)
        self._reserved: Ints = np.zeros(shape, dtype=np.int64)
        self._elastic: Ints = np.zeros(shape, dtype=np.int64)
        self._limits: QueueLimits | None = None
        self._link()

    def _link(self) -> None:
        """Find again, by row, the rows of tables that follow what pods hold and wait for."""
        self.width = int(self.allocated.shape[1])
        self._nothing: Ints = np.zeros(self.width, dtype=np.int64)
        read_only(self._nothing)
        self._asking = list(self.pending)
        allocated, tree = list(self.allocated), list(self.tree)
        self._holding = [
            [allocated[row], *[tree[each] for each in path.tolist()]]
            for row, path in enumerate(self.paths)
        ]

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
        """Note that a queue came, went, or changed; `settle` looks at them again."""
        self._is_settled = False

    def settle(self, queues: Mapping[str, Queue], jobs: Mapping[str, JobInfo]) -> None:
        """Take in queues that changed, and count all jobs again if any did."""
        if self._is_settled:
            return
        self._is_settled = True
        if self._is_same_tree(queues):
            self.queues = [queues[name] for name in self.names]
            self._limits = None
            return
        self._clear(queues)
        counted = []
        for job in jobs.values():
            job.row = self.rows.get(job.queue, -1) if job.has_queue else -1
            job.reserved = job.elastic = None
            self._late[job.key] = job
            if job.row >= 0:
                counted.append(job)
        if counted:
            rows = [job.row for job in counted]
            np.add.at(self.jobs, rows, 1)
            np.add.at(self.allocated, rows, np.array([job.allocated for job in counted]))
            np.add.at(self.pending, rows, np.array([job.pending for job in counted]))
            self.tree = self.below(self.allocated)
            self._link()

    def _is_same_tree(self, queues: Mapping[str, Queue]) -> bool:
        """Whether there are the same queues as before, each below the same one."""
        return self.rows.keys() == queues.keys() and all(
            queue.spec.parent == queues[name].spec.parent
            for name, queue in zip(self.names, self.queues, strict=True)
        )

    def place(self, job: JobInfo) -> None:
        """Count a job to the queue that its PodGroup names now; a job without a PodGroup counts to none."""
        row = self.rows.get(job.queue, -1) if job.has_queue else -1
        self._late[job.key] = job
        if row == job.row:
            return
        if job.row >= 0:
            self._count(job, -1)
        job.row = row
        if row >= 0:
            self._count(job, 1)

    def _count(self, job: JobInfo, sign: int) -> None:
        row = job.row
        self.jobs[row] += sign
        if job.counted:
            self.allocated[row] += sign * job.allocated
            self.tree[self.paths[row]] += sign * job.allocated
        if job.has_pending:
            self.pending[row] += sign * job.pending
        if job.reserved is not None and job.elastic is not None:
            self._reserved[row] += sign * job.reserved
            self._elastic[row] += sign * job.elastic

    def hold(self, job: JobInfo, vector: Ints, step: int) -> None:
        """Count what a pod of a job has come to hold (1), or holds no more (-1)."""
        self._late[job.key] = job
        row = job.row
        if row >= 0:
            change = np.add if step > 0 else np.subtract
            for held in self._holding[row]:
                change(held, vector, held)

    def wait(self, job: JobInfo, vector: Ints, step: int) -> None:
        """Count what a waiting pod of a job asks for (1), or asks for no more (-1)."""
        self._late[job.key] = job
        if job.row >= 0:
            asked = self._asking[job.row]
            (np.add if step > 0 else np.subtract)(asked, vector, asked)

    def outdate(self, job: JobInfo) -> None:
        """Note that what a job reserves, or has beyond its minimum, is to be counted again."""
        self._late[job.key] = job

    def forget(self, job: JobInfo) -> None:
        """Count a job no more."""
        if job.row >= 0:
            self._count(job, -1)
            job.row = -1
        self._late.pop(job.key, None)
        self._broken.pop(job.key, None)
        self._reserving.pop(job.key, None)

    def widen(self) -> None:
        """Open the columns that the axis has gained."""
        missing = len(self._axis) - self.allocated.shape[1]
        if missing > 0:
            for name in ("allocated", "pending", "tree", "_reserved", "_elastic"):
                setattr(self, name, np.pad(getattr(self, name), ((0, 0), (0, missing))))
            self._limits = None
            self._link()

    # -- queries ---------------------------------------------------------------------------

    @property
    def reserved(self) -> Ints:
        """What jobs that were let into a queue may still take up to their `minResources`, by row and column.

        Jobs that are Inqueue, that run with their minimum of pods placed, and that are broken; see `remainder`.
        """
        self._catch_up()
        return self._reserved

    @property
    def reserving(self) -> Iterable[JobInfo]:
        """Jobs that reserve anything in any queue."""
        self._catch_up()
        return self._reserving.values()

    @property
    def lacking(self) -> Ints:
        """The part of `reserved` that broken jobs reserve, of all queues together, by column."""
        self._catch_up()
        found: Ints = np.zeros(self.width, dtype=np.int64)
        for job in self._broken.values():
            if job.row >= 0 and job.reserved is not None:
                found += job.reserved
        return found

    @property
    def elastic(self) -> Ints:
        """What pods hold beyond the `minResources` of their job, by row and column."""
        self._catch_up()
        return self._elastic

    @property
    def limits(self) -> QueueLimits:
        """What the specs of the queues say, by row and column."""
        if self._limits is None:
            self._limits = QueueLimits.of(self.queues, self.amounts, self._axis)
        return self._limits

    def sums(self, tasks: Iterable[TaskInfo], jobs: Mapping[str, JobInfo]) -> Ints:
        """What pods ask for, by row of the queue to which they are charged and column."""
        found = np.zeros_like(self.allocated)
        for task in tasks:
            row = jobs[task.job].holder(task).row if task.job else -1
            if row >= 0:
                found[row] += task.shape.vector
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
        if not self._late:
            return
        late, self._late = self._late, {}
        nothing = self._nothing
        for job in late.values():
            reserved = remainder(job) if _reserves(job) else nothing
            elastic = np.maximum(job.allocated - job.minimum, 0) if _has_own(job) else nothing
            if job.row >= 0:
                if reserved is not job.reserved:
                    self._reserved[job.row] += _less(reserved, job.reserved)
                if elastic is not job.elastic:
                    self._elastic[job.row] += _less(elastic, job.elastic)
            job.reserved, job.elastic = reserved, elastic
            _note(self._broken, job, is_among=job.is_broken)
            _note(self._reserving, job, is_among=bool(np.count_nonzero(reserved)))


def _note(jobs: dict[str, JobInfo], job: JobInfo, *, is_among: bool) -> None:
    if is_among:
        jobs[job.key] = job
    else:
        jobs.pop(job.key, None)


def _reserves(job: JobInfo) -> bool:
    return bool(job.min_resources) and (
        job.status.phase == _INQUEUE
        or (job.status.phase == _RUNNING and job.holding >= job.min_member)
        or job.is_broken
    )


def _has_own(job: JobInfo) -> bool:
    """Whether it holds anything; not pods of a gang that has its minimum elsewhere."""
    return job.counted > 0 and job.gang is job


def remainder(job: JobInfo) -> Ints:
    """What a job may still take up to its `minResources`, without its pods that have scheduling gates or have succeeded.

    Nothing if no nodes could hold it, or while it is left without pods.
    """
    if job.is_too_large or (job.is_left and not job.tasks):
        return np.zeros(len(job.minimum), dtype=np.int64)
    rest = job.minimum - job.allocated
    if job.counts[PENDING] or job.counts[SUCCEEDED]:
        for task in job.tasks.values():
            if task.status is SUCCEEDED or (task.gates and task.status is PENDING):
                rest -= task.shape.vector
    found: Ints = np.maximum(rest, 0)
    return found


def _less(new: Ints, old: Ints | None) -> Ints:
    return new if old is None else new - old
