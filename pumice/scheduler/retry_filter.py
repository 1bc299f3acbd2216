"""Selection of the gangs that a cycle tries: those for which something has changed since their last try.

A gang that found too few nodes keeps a bound that it could not reach (`Shortage`): a number of pods, the minimum
request of each, and how many places were missing. The bound is arithmetic on what nodes have free; filters and the
order of placing only make it smaller. An event about a node (a pod leaves it, it grows, it gets a label, it comes)
therefore costs one division for each changed row, for all gangs together in columns. Before a gang is tried, the
changed rows are counted again, without those that a filter refuses and without what other gangs have taken in this
cycle.

If each shape alone has places enough, but not all together, the gang is tried whenever a row that changed has room for
one of its pods. Room that nodes *lose* is never a reason to try a gang again. A gang to which other pods matter, because of
pod affinity, anti-affinity or topology spread, is then also tried after every change of pods, nodes or namespaces that such
rules depend on.

Changes of queues, priorities, claims and the configuration may help any gang. What a gang lacks is then counted
again on all nodes. A gang that cannot become ready whatever the nodes are is tried again when it changed itself,
or after such a change. Every other gang is tried in every cycle.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import compress
from operator import attrgetter

import numpy as np

from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.nodes import NodeTable
from pumice.scheduler.model.room import Needs, Shortage, least, places
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import NEEDS_ROOM, SchedulingStatus, TaskInfo
from pumice.scheduler.touched_rows import TouchedRows

__all__ = ["RetryFilter", "RoomGains"]

Suiting = Callable[[PodShape, str], Bools]
"""Nodes that the fixed filters allow for a shape and a queue."""

_ROWS = 16
"""Number of changed rows up to which they are counted separately for a single gang."""

_FEW = 8
"""Shapes up to which filters are asked when their pods are counted together."""


class RoomGains:
    """Changes since a cycle began that may help gangs which found no node.

    Attributes:
        any_gang: Whether something changed that may help any gang.
        nodes: Nodes that pods have left or are about to leave, or that changed: what was free on them before, by
            column; None if the node is new or its properties have changed.
        changes_reasons: Whether nodes changed in other ways than by pods, so that reasons of gangs must be computed
            again.
    """

    __slots__ = ("_table", "any_gang", "changes_reasons", "nodes")

    def __init__(self, table: NodeTable, *, any_gang: bool = False) -> None:
        self._table = table
        self.any_gang = any_gang
        self.nodes: dict[str, Ints | None] = {}
        self.changes_reasons = False

    def about_to_change(self, old: TaskInfo, new: TaskInfo | None, node: str) -> None:
        """Note that a pod is about to change, or to go.

        Args:
            old: The pod as it is.
            new: The pod as it will be; None when it goes.
            node: Node that it will be on.
        """
        if old.node and old.status in NEEDS_ROOM and not _stays(old, new, node):
            self.about_to_leave(old.node)

    def about_to_leave(self, node: str) -> None:
        """Record that a pod is about to leave a node."""
        row = self._table.records[node].row
        if row >= 0 and node not in self.nodes:
            self.nodes[node] = self._table.free(row)

    def evicted(self, task: TaskInfo) -> None:
        """Note that a cycle has made a pod leave its node."""
        row = self._table.records[task.node].row
        if row < 0:
            return
        before = self.nodes.get(task.node, self._table.free(row))
        if before is not None:
            self.nodes[task.node] = before - task.shape.vector

    def removed(self, node: str) -> None:
        """Record that a node was removed: it has no room for anyone."""
        self.changes_reasons = True
        self.nodes.pop(node, None)

    def changed(self, node: str, before: Ints | None) -> None:
        """Record that a node was added or changed.

        Args:
            node: Name of the node.
            before: What was free on it, by column, where nothing but its size has changed.
        """
        self.changes_reasons = True
        if before is None:
            self.nodes[node] = None
        else:
            self.nodes.setdefault(node, before)


def _stays(old: TaskInfo, new: TaskInfo | None, node: str) -> bool:
    """Whether a pod takes as much of its node as before, for as long as is known."""
    if new is None or node != old.node or new.shape is not old.shape:
        return False
    if new.status is SchedulingStatus.RELEASING:
        return old.status is SchedulingStatus.RELEASING
    return new.status in NEEDS_ROOM


class RetryFilter:
    """Leaves out gangs that nothing since their last try can have helped, by arithmetic on free room."""

    def __init__(
        self, gains: RoomGains, nodes: NodeTable, touched: TouchedRows, suiting: Suiting
    ) -> None:
        """Begin a cycle.

        Args:
            gains: What has changed since the last one.
            nodes: The nodes, settled.
            touched: Which rows the session changes.
            suiting: Asks the filters.
        """
        self._any_gang = gains.any_gang
        self._epoch = nodes.peers.epoch
        self._table = nodes
        self._touched = touched
        self._suiting = suiting
        known = {name: nodes.records[name].row for name in gains.nodes if name in nodes.records}
        changed = sorted((row, name) for name, row in known.items() if row >= 0)
        self._index: Ints = np.array([row for row, _ in changed], dtype=np.int64)
        self._before = np.zeros((len(changed), nodes.width), dtype=np.int64)
        for place, (_, name) in enumerate(changed):
            before = gains.nodes[name]
            if before is not None:
                self._before[place, : len(before)] = before
        self._now = nodes.free(self._index)
        self._free: _Free | None = None
        self._earlier: list[list[int]] = self._before.tolist()
        self._lists: list[list[int]] = self._now.tolist()
        self._seen = len(touched.log)
        self._fits: dict[Needs, tuple[list[int], list[int]]] = {}
        self._gains: dict[Needs, tuple[int, bool]] = {}
        self._known: dict[str, int] = {}
        self._counts: dict[tuple[tuple[PodShape, ...], str], tuple[int, int, int]] = {}

    # -- before and after the session ----------------------------------------------------------

    def to_try(self, waiting: Iterable[JobInfo], again: Collection[str]) -> list[JobInfo]:
        """The gangs that a session has to look at, in the order of their keys.

        Args:
            waiting: Gangs that wait.
            again: Keys of gangs to be tried without being filtered.
        """
        jobs = list(waiting)
        if not self._any_gang:
            gained = self._gained(jobs)
            jobs = [
                job
                for job in jobs
                if (shortage := job.shortage) is None
                or _is_enough(shortage, gained)
                or job.key in again
                or self._is_outdated(shortage)
            ]
        return sorted(jobs, key=attrgetter("key"))

    def keep(self, passed_over: Iterable[JobInfo]) -> None:
        """Remember what nodes have gained for gangs that were not tried."""
        jobs = list(passed_over)
        gained = self._gained([job for job in jobs if job.key not in self._known])
        for job in jobs:
            shortage = job.shortage
            if shortage is None or not shortage.lacking:
                continue
            known = self._known.get(job.key)
            if known is None:
                known, _ = gained.get(shortage.needs, (0, False))
            shortage.gained += known

    def _gained(self, jobs: Iterable[JobInfo]) -> Mapping[Needs, tuple[int, bool]]:
        """How many more pods fit than before, and whether any fits, by what they need."""
        if not len(self._index):
            return {}
        self._follow()
        shortages = [each for job in jobs if (each := job.shortage) is not None and each.shapes]
        missing = {each.needs: None for each in shortages if each.needs not in self._gains}
        needs = list(missing)
        if not needs:
            return self._gains
        both = places(needs, np.concatenate((self._now, self._before)))
        now, before = both[:, : len(self._index)], both[:, len(self._index) :]
        more = np.maximum(now - before, 0)
        if len(self._index) <= _ROWS:
            rows = zip(now.tolist(), more.tolist(), strict=True)
            self._fits.update(zip(needs, rows, strict=True))
        sums: list[int] = more.sum(axis=1).tolist()
        any_fits: list[bool] = (now.max(axis=1, initial=0) > 0).tolist()
        self._gains.update(zip(needs, zip(sums, any_fits, strict=True), strict=True))
        return self._gains

    # -- in the session --------------------------------------------------------------------------

    def are_too_few(self, job: JobInfo, shortage: Shortage) -> bool:
        """Whether there are still fewer places for a gang than it requires.

        Args:
            job: The gang.
            shortage: What it lacked.
        """
        if not shortage.shapes or self._is_outdated(shortage):
            return False
        if not self._any_gang and len(self._index) <= _ROWS:
            lacking = max(shortage.lacking, 1) - shortage.gained
            gained = self._gain(shortage, job.queue, lacking)
            if gained < lacking:
                self._known[job.key] = gained
                return True
        if not shortage.required:
            return False
        found = self._count(shortage.shapes, shortage.needs, job.queue, shortage.required)
        if found >= shortage.required:
            return False
        shortage.lacking, shortage.gained = shortage.required - found, 0
        self._known[job.key] = 0
        return True

    def shortage(
        self, job: JobInfo, failed: PodShape, counts: Mapping[PodShape, int], least_ready: int
    ) -> Shortage:
        """What a gang lacks that has just been tried.

        Args:
            job: The gang, nothing of which is placed tentatively.
            failed: Shape of the first pod for which there was no node.
            counts: Pods that wait by shape.
            least_ready: Pods that must find a place for the gang to become ready; 0 when that is not known.
        """
        shapes = tuple(counts)
        alone = least_ready - sum(counts.values()) + counts[failed]
        for required, kinds in ((alone, (failed,)), (least_ready, shapes)):
            if required <= 0:
                continue
            needs = least(kinds)
            found = self._count(kinds, needs, job.queue, required)
            if found < required:
                return Shortage(kinds, needs, required, required - found)
        return Shortage(shapes, least(shapes))

    def _is_outdated(self, shortage: Shortage) -> bool:
        """Whether something has changed about other pods that matter to a gang."""
        return shortage.epoch is not None and shortage.epoch != self._epoch

    def _gain(self, shortage: Shortage, queue: str, lacking: int) -> int:
        """Places on the nodes that changed, as far as they are free now; without unsuitable nodes where that matters."""
        self._follow()
        now, more = self._fitting(shortage.needs)
        places = more if shortage.lacking else now
        if sum(places) < lacking:
            return sum(places)
        allowed = self._suit(shortage.shapes, queue)[self._index].tolist()
        return sum(compress(places, allowed))

    def _fitting(self, needs: Needs) -> tuple[list[int], list[int]]:
        """Pods that fit on each node that changed, and how many more than before."""
        known = self._fits.get(needs)
        if known is None:
            now = [_fitting(needs, row) for row in self._lists]
            before = [_fitting(needs, row) for row in self._earlier]
            more = [max(one - other, 0) for one, other in zip(now, before, strict=True)]
            known = self._fits[needs] = now, more
        return known

    def _count(self, shapes: tuple[PodShape, ...], needs: Needs, queue: str, required: int) -> int:
        """How many such pods all suitable nodes have room for, once terminating pods are gone.

        What was counted before in the session is answered again where it is too small: room only gets less, except by
        evictions.
        """
        key = (shapes, queue)
        moment = len(self._touched.log)
        counted, evictions, found = self._counts.get(key, (-1, 0, 0))
        if counted == moment or (
            counted >= 0 and evictions == self._touched.evictions and found < required
        ):
            return found
        free = self._all_free()
        fits: Bools | None = None
        if all(amount <= free.most[column] for column, amount in needs):
            fits = self._suit(shapes, queue)
            for column, amount in needs:
                fits = fits & (free.amounts[:, column] >= amount)
        found = int(places([needs], free.amounts[fits]).sum()) if fits is not None else 0
        self._counts[key] = (moment, self._touched.evictions, found)
        return found

    def _all_free(self) -> "_Free":
        """What is free on all nodes now."""
        moment = len(self._touched.log)
        if self._free is None or self._free.moment != moment:
            self._free = _Free(self._table.rows(), moment)
        return self._free

    def _suit(self, shapes: tuple[PodShape, ...], queue: str) -> Bools:
        """Rows that suit one of the shapes; all of them when there are many."""
        if len(shapes) > _FEW:
            return np.ones(len(self._table), dtype=np.bool_)
        masks = [self._suiting(shape, queue) for shape in shapes]
        found: Bools = np.logical_or.reduce(masks) if len(masks) > 1 else masks[0]
        return found

    def _follow(self) -> None:
        """Look again at the rows that changed, if the session has touched any."""
        if self._seen != len(self._touched.log):
            self._seen = len(self._touched.log)
            now = self._table.free(self._index)
            if not np.array_equal(now, self._now):
                self._now = now
                self._lists = now.tolist()
                self._fits.clear()
                self._gains.clear()


class _Free:
    """What was free on all nodes at a moment, once terminating pods are gone.

    Attributes:
        moment: How many rows the session had touched.
        amounts: By row and column.
        most: The most that any node had free, by column.
    """

    __slots__ = ("amounts", "moment", "most")

    def __init__(self, rows: Rows, moment: int) -> None:
        self.moment = moment
        self.amounts: Ints = rows.allocatable - rows.used + rows.releasing
        self.most: list[int] = self.amounts.max(axis=0, initial=0).tolist()


def _fitting(needs: Needs, free: Sequence[int]) -> int:
    """Pods that fit into what is free on one node."""
    return min([max(free[column], 0) // amount for column, amount in needs])


def _is_enough(shortage: Shortage, gained: Mapping[Needs, tuple[int, bool]]) -> bool:
    more, any_fits = gained.get(shortage.needs, (0, False))
    if not shortage.lacking:
        return any_fits
    return shortage.gained + more >= shortage.lacking
