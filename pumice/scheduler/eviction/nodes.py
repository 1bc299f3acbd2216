"""The nodes on which room can be made for a pod, those first on which it costs least.

How little could be evicted on a node is a lower bound: in columns first, and then in a heap. The possible victims give, for each node,
whether the pod can fit at all, the lowest priority of a victim, and the minimum number of victims. Nodes are examined in this order,
in growing batches, until none can be better than the best result; what a node costs then replaces its bound, for all pods of a class,
also of other gangs.
"""

import heapq
from collections.abc import Container, Iterator, Sequence

import numpy as np

from pumice.scheduler.eviction.attempt import Cost, EvictionPlaces
from pumice.scheduler.eviction.bundles import VictimBundle, VictimOrder
from pumice.scheduler.eviction.settings import EvictionRules
from pumice.scheduler.eviction.survey import may_go
from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.shapes import Need
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.session.node_ranking import NodeRanking
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement

NO_VICTIM = -(1 << 63)
"""Highest priority of no victims."""

_HALF = 1 << 31
"""Priorities of pods lie between -_HALF and _HALF - 1."""

_GROWTH = 8


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
        self._gang = preemptor.job.key
        columns = [(-column).tolist() for column in self.ranking.scores()]
        self._scores: list[tuple[float, ...]] = list(zip(*columns, strict=True))
        node = session.view.running.node[victims]
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
        least = np.ones(len(there), dtype=np.int64)
        vectors = running.vectors[rows]
        for place, need in enumerate(needs):
            given = vectors[:, need.column]
            lacks = missing[place, there]
            possible &= np.add.reduceat(given, starts) >= lacks
            largest = np.maximum(np.maximum.reduceat(given, starts), 1)
            least = np.maximum(least, -(-lacks // largest))
        lowest = np.minimum.reduceat(self._importances(rows), starts)
        columns = [column[possible].tolist() for column in (there, lowest, least)]
        for row, highest, count in zip(*columns, strict=True):
            self._costs[row] = (highest, 0, count, *self._scores[row], row)

    def _importances(self, rows: Ints) -> Ints:
        """`_importance` in columns."""
        running = self._session.view.running
        gangs = [gang.order_priority if gang else 0 for gang in running.gangs]
        own = np.clip(running.priority[rows], -_HALF, _HALF - 1)
        found: Ints = (np.array(gangs, dtype=np.int64)[running.gang[rows]] << 32) + own
        return found

    # -- one by one --------------------------------------------------------------------------

    def candidates(self, row: int) -> list[TaskInfo]:
        """Pods of a node that may still go, in no order."""
        return [task for task in self._by_node.get(row, ()) if task.row >= 0]

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
        """Decisions were undone, or others are asked for: what was computed since may be too high."""
        raised, self._raised = self._raised, set()
        for row in sorted(raised):
            self._refresh(row)

    def let_ask(self, gang: str) -> None:
        """A gang asks: for another one than before plugins may refuse fewer pods."""
        if gang != self._gang:
            self._gang = gang
            self.reset()

    def _sync(self) -> None:
        log = self._session.touched.log
        if self._seen == len(log):
            return
        touched, self._seen = sorted(set(log[self._seen :])), len(log)
        for row in touched:
            self._refresh(row)

    def _refresh(self, row: int) -> None:
        if not self.ranking.pods.allowed[row]:
            return
        missing = self.missing(row)
        cost = self._bound(row, missing)
        if cost is None:
            self._costs.pop(row, None)
        elif self._costs.get(row) != cost:
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
        return (lowest, 0, 1, *self._scores[row], row)


class _NodePlace:
    """A node on which room is made for one pod; see `attempt.EvictionPlace`."""

    is_costly = False

    def __init__(self, nodes: "NodePlaces", row: int, tasks: Sequence[TaskInfo]) -> None:
        self._nodes = nodes
        self._tasks = tasks
        self._needs: Sequence[Need] = nodes.bounds.ranking.pods.shape.needs
        self._lacks = nodes.bounds.missing(row)
        self.is_tried = nodes.are_tried
        self.row = row

    @property
    def is_enough(self) -> bool:
        return max(self._lacks) <= 0

    def bundles(self) -> Iterator[VictimBundle]:
        jobs = self._nodes.session.state.jobs
        return (VictimBundle(jobs[task.job], (task,), False) for task in self._tasks)

    def add(self, bundle: VictimBundle) -> None:
        self._change(bundle, -1)

    def put_back(self, bundle: VictimBundle) -> None:
        self._change(bundle, 1)

    def _change(self, bundle: VictimBundle, step: int) -> None:
        vector, lacks = bundle.tasks[0].shape.vector, self._lacks
        for place, need in enumerate(self._needs):
            lacks[place] += step * vector.item(need.column)

    def promise(self, statement: Statement) -> bool:
        nodes, row = self._nodes, self.row
        asked, session = nodes.preemptor, nodes.session
        if self.is_tried:
            if session.answers.why_not_allocatable(asked.queue, asked.task) is not None:
                return False
            if nodes.bounds.ranking.only(row, later=True) != row:
                return False
        statement.pipeline(asked.task, session.state.nodes.order[row])
        return True

    def cost(self, victims: Sequence[TaskInfo], broken: int, /) -> Cost:
        return self._nodes.bounds.cost(self.row, victims, broken)


class NodePlaces(EvictionPlaces):
    """The nodes in the order in which they are examined for one pod.

    Attributes:
        are_tried: Whether more than room decides, so that evictions must be tried.
    """

    def __init__(
        self, session: Session, rules: EvictionRules, preemptor: Preemptor, bounds: NodeBounds
    ) -> None:
        super().__init__()
        self.session = session
        self.preemptor = preemptor
        self.bounds = bounds
        self.are_tried = (
            not bounds.ranking.counts_room_only
            or session.answers.why_not_allocatable(preemptor.queue, preemptor.task) is not None
        )
        self._rules = rules
        self._order = VictimOrder(session, rules)

    def each(self) -> Iterator[_NodePlace]:
        """Those whose bound is lower than what the best one costs; then the costs of all take the place of their bounds."""
        examined: dict[int, Cost | None] = {}
        size = 1
        while rows := self._next(size, examined):
            size *= _GROWTH
            for place in self._places(rows):
                yield place
                if self.last.found is not None:
                    examined[place.row] = self.last.found.cost
        for row, cost in examined.items():
            if self.are_tried:  # what it costs is so for this pod alone
                self.bounds.put_back(row)
            else:
                self.bounds.settle(row, cost)

    def _next(self, count: int, examined: dict[int, Cost | None]) -> Sequence[int]:
        """Take so many nodes, or as many as may be better than the best that was found."""
        rows: list[int] = []
        least = self.best.cost if self.best is not None else None
        while len(rows) < count and (row := self.bounds.take(examined, least)) is not None:
            examined[row] = None
            rows.append(row)
        return rows

    def _places(self, rows: Sequence[int]) -> Sequence[_NodePlace]:
        """Nodes with the pods that plugins let go, in order."""
        tasks: list[TaskInfo] = []
        ends = []
        for row in rows:
            tasks += self._order.of(self.bounds.candidates(row))
            ends.append(len(tasks))
        may = may_go(self.session, self._rules, self.preemptor, tasks)
        refuses, start = not may.all(), 0
        found = []
        for row, end in zip(rows, ends, strict=True):
            chosen = tasks[start:end]
            if refuses:
                chosen = [task for task, yes in zip(chosen, may[start:end], strict=True) if yes]
            start = end
            if chosen or not self.are_tried or self.bounds.ranking.fits_later()[row]:
                found.append(_NodePlace(self, row, chosen))
        return found


def highest_importance(session: Session, victims: Sequence[TaskInfo]) -> int:
    """Priority of the most important one of some victims."""
    jobs = session.state.jobs
    return max([_importance(jobs[task.job], task) for task in victims], default=NO_VICTIM)


def _importance(job: JobInfo, task: TaskInfo) -> int:
    """Priority of a victim: that of its gang, then its own, as one number."""
    own = min(max(task.priority, -_HALF), _HALF - 1)
    return (job.order_priority << 32) + own
