"""Lower bounds for what it costs to make room for a pod on a node.

How little could be evicted on a node is a lower bound: in columns first, and then in a heap. The possible victims give, for each node,
whether the pod can fit at all, the lowest priority of a victim, whether a gang is broken at least, and the minimum number of victims.
What a node costs replaces its bound, for all pods of a class, also of other gangs.
"""

import heapq
from collections.abc import Container, Iterable, Sequence

import numpy as np

from pumice.scheduler.eviction.attempt import Cost
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.session.node_ranking import NodeRanking
from pumice.scheduler.session.session import Session

NO_VICTIM = -(1 << 63)
"""Highest priority of no victims."""

_HALF = 1 << 31
"""Priorities of pods lie between -_HALF and _HALF - 1."""


class NodeBounds:
    """Lower bounds for all nodes and one class of preemptors.

    Attributes:
        ranking: Filters and scores of the class.
    """

    def __init__(self, session: Session, preemptor: Preemptor, victims: Ints) -> None:
        """Look at all nodes as they are now; victims are rows of running pods that may go, each if it is the only one of its node."""
        self._session = session
        self.ranking: NodeRanking = session.ranking(preemptor.task, preemptor.queue.metadata.name)
        self._seen = len(session.touched.log)
        self._by_node: dict[int, list[TaskInfo]] = {}
        self._costs: dict[int, Cost] = {}
        self._raised: set[int] = set()
        self._outdated: set[int] = set()
        self._breaking: set[int] = set()
        self._by_gang: dict[str, set[int]] = {}
        self._gang = preemptor.job.key
        columns = [(-column).tolist() for column in self.ranking.scores()]
        self._scores: list[tuple[float, ...]] = list(zip(*columns, strict=True))
        node = session.view.running.node[victims]
        self._given = self.given(victims)
        self._set_bounds(victims[np.argsort(node, kind="stable")])
        self._heap = list(self._costs.values())
        heapq.heapify(self._heap)

    # -- in columns --------------------------------------------------------------------------

    def _set_bounds(self, rows: Ints) -> None:
        session = self._session
        running, nodes = session.view.running, session.view.rows
        needs = self.ranking.pods.shape.needs
        missing = np.empty((len(needs), len(nodes)), dtype=np.int64)
        for place, need in enumerate(needs):
            missing[place] = need.amount - nodes.future_idle(need.column)
        no_victims = self.ranking.pods.allowed & (missing <= 0).all(axis=0)
        for row in np.flatnonzero(no_victims).tolist():
            self._costs[row] = (NO_VICTIM, 0, 0, *self._scores[row], row)
        node = running.node[rows]
        starts = np.flatnonzero(np.diff(node, prepend=-1))
        there = node[starts]
        tasks = [task for task in map(running.tasks.__getitem__, rows.tolist()) if task]
        ends = [*starts.tolist()[1:], len(rows)]
        for row, start, end in zip(there.tolist(), starts.tolist(), ends, strict=False):
            self._by_node[row] = tasks[start:end]
        possible = ~no_victims[there]
        possible &= (self._given[:, there] >= missing[:, there]).all(axis=0)
        if not possible.any():
            return
        least = np.ones(len(there), dtype=np.int64)
        for place, need in enumerate(needs):
            largest = np.maximum.reduceat(running.vectors[rows, need.column], starts)
            least = np.maximum(least, -(-missing[place, there] // np.maximum(largest, 1)))
        importance, breaks = self._by_victim(rows)
        lowest = np.minimum.reduceat(importance, starts)
        broken = np.minimum.reduceat(breaks, starts)
        columns = [column[possible].tolist() for column in (there, lowest, broken, least)]
        for row, *cost in zip(*columns, strict=True):
            self._costs[row] = (*cost, *self._scores[row], row)

    def _by_victim(self, rows: Ints) -> tuple[Ints, Ints]:
        """By victim its priority, and 1 if its gang is broken without it, whichever of its pods it is."""
        running = self._session.view.running
        gang = running.gang[rows]
        values = np.zeros((2, len(running.gangs)), dtype=np.int64)
        for number in np.flatnonzero(np.bincount(gang)).tolist():
            job = running.gangs[number]
            if job is not None:
                values[:, number] = job.order_priority, _is_rigid(job.gang)
        priority, breaks = values[:, gang]
        return (priority << 32) + np.clip(running.priority[rows], -_HALF, _HALF - 1), breaks

    def given(self, victims: Ints) -> Ints:
        """What pods, given by their rows, leave on the nodes, by need of the class and row of the node."""
        running, needs = self._session.view.running, self.ranking.pods.shape.needs
        found = np.zeros((len(needs), len(self._scores)), dtype=np.int64)
        for place, need in enumerate(needs):
            np.add.at(found[place], running.node[victims], running.vectors[victims, need.column])
        return found

    def lack(self, given: Ints | None, room: Ints | None = None) -> Bools:
        """Nodes on which a pod lacks something even with what pods leave, by default all that may go; or its queue does, with `room`."""
        nodes = self._session.view.rows
        given = self._given if given is None else given
        found = np.zeros(len(nodes), dtype=np.bool_)
        for need, leave in zip(self.ranking.pods.shape.needs, given, strict=True):
            found |= nodes.future_idle(need.column) + leave < need.amount
            if room is not None:
                found |= room.item(need.column) + leave < need.amount
        return found

    def any_beside(self, hopeless: Bools) -> bool:
        """Whether any node comes into question besides some."""
        return not all(map(hopeless.__getitem__, self._costs))

    # -- one by one --------------------------------------------------------------------------

    def candidates(self, row: int) -> list[TaskInfo]:
        """Pods of a node that may still go, in no order."""
        return [task for task in self._by_node.get(row, ()) if task.row >= 0]

    def victims(self) -> Ints:
        """Rows of all pods that may still go."""
        rows = [task.row for tasks in self._by_node.values() for task in tasks if task.row >= 0]
        return np.array(rows, dtype=np.int64)

    def missing(self, row: int) -> list[int]:
        """What a node lacks for a pod of the class, by need; not positive for what it has."""
        nodes = self._session.view.rows
        allocatable, used = nodes.allocatable[row], nodes.used[row]
        free = (allocatable - used + nodes.releasing[row] - nodes.pipelined[row]).tolist()
        return [need.amount - free[need.column] for need in self.ranking.pods.shape.needs]

    def cost(self, row: int, victims: Sequence[TaskInfo], broken: int) -> Cost:
        """The highest priority of victims, gangs broken, victims, the node's scores (the better the smaller), and its row."""
        highest = highest_importance(self._session, victims)
        return (highest, broken, len(victims), *self._scores[row], row)

    def take(self, examined: Container[int], best: Cost | None) -> int | None:
        """Take the node with the lowest bound, until `settle` or `put_back`; None if none that was not examined can be better than the best."""
        self._sync()
        heap, costs = self._heap, self._costs
        while heap:
            cost = heap[0]
            row = int(cost[-1])
            is_current = row not in examined and costs.get(row) == cost
            if is_current and best is not None and best <= cost:
                return None
            heapq.heappop(heap)
            if is_current:
                return row
        return None

    def free(self) -> int | None:
        """The best node with room from which no pod has to go; None if there is none."""
        self._sync()
        heap = self._heap
        while heap and heap[0][0] == NO_VICTIM:
            if self._costs.get(int(heap[0][-1])) == heap[0]:
                return int(heap[0][-1])
            heapq.heappop(heap)
        return None

    def settle(self, row: int, cost: Cost | None) -> None:
        """Replace the bound of an examined node by what it costs; None where the pod cannot fit."""
        self._raised.add(row)
        if cost is None:
            self._costs.pop(row, None)
        else:
            self._costs[row] = cost
            heapq.heappush(self._heap, cost)

    def put_back(self, row: int) -> None:
        """Let an examined node keep the bound that it had."""
        cost = self._costs.get(row)
        if cost is not None:
            heapq.heappush(self._heap, cost)

    def reset(self) -> None:
        """Others are asked for than before: what was computed since may be too high."""
        self._outdated |= self._raised
        self._raised.clear()

    def undone(self) -> None:
        """Decisions were undone: gangs may have more again than their minimum."""
        self._outdated |= self._breaking
        self._breaking.clear()
        self.reset()

    def broke(self, gangs: Iterable[JobInfo]) -> None:
        """Gangs have been broken: they do not count as broken again on another node."""
        if not self._by_gang:
            for row, tasks in self._by_node.items():
                for task in tasks:
                    self._by_gang.setdefault(task.job, set()).add(row)
        self._outdated.update(*[self._by_gang.get(gang.key, ()) for gang in gangs])
        self.reset()

    def let_ask(self, gang: str) -> None:
        """A gang asks: for another one than before plugins may refuse fewer pods."""
        if gang != self._gang:
            self._gang = gang
            self.reset()

    def _sync(self) -> None:
        log = self._session.touched.log
        if self._seen < len(log) or self._outdated:
            rows = self._outdated.union(log[self._seen :])
            self._seen = len(log)
            self._outdated.clear()
            for row in rows:
                self._refresh(row)

    def _refresh(self, row: int) -> None:
        if not self.ranking.pods.allowed[row]:
            return
        missing = self.missing(row)
        cost = self._bound(row, missing)
        if cost is None:
            self._costs.pop(row, None)
        elif self._costs.get(row) != cost:
            if cost[1]:
                self._breaking.add(row)
            self._costs[row] = cost
            heapq.heappush(self._heap, cost)

    def _bound(self, row: int, missing: list[int]) -> Cost | None:
        if max(missing) <= 0:
            return (NO_VICTIM, 0, 0, *self._scores[row], row)
        tasks = self.candidates(row)
        if not tasks:
            return None
        for need, lacks in zip(self.ranking.pods.shape.needs, missing, strict=True):
            if lacks > 0 and sum([task.shape.vector.item(need.column) for task in tasks]) < lacks:
                return None
        jobs = self._session.state.jobs
        lowest = min([_importance(jobs[task.job], task) for task in tasks])
        broken = int(all(_is_rigid(jobs[task.job]) for task in tasks))
        return (lowest, broken, 1, *self._scores[row], row)


def highest_importance(session: Session, victims: Sequence[TaskInfo]) -> int:
    """Priority of the most important one of some victims."""
    jobs = session.state.jobs
    return max([_importance(jobs[task.job], task) for task in victims], default=NO_VICTIM)


def _is_rigid(job: JobInfo) -> bool:
    """Whether a gang has its minimum, and no pod more."""
    return job.ready == job.min_member and not job.is_short


def _importance(job: JobInfo, task: TaskInfo) -> int:
    """Priority of a victim: that of its gang, then its own, as one number."""
    own = min(max(task.priority, -_HALF), _HALF - 1)
    return (job.order_priority << 32) + own
