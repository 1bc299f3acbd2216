"""The exact set of pods to evict on a node for a pod.

Candidates are evicted in the order of `VictimOrder` until the pod fits: the free resources after terminating pods are
gone cover the request, the filters allow the node, and the queue can take the pod. Then victims that are not needed are
reprieved, the last one first.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from pumice.scheduler.eviction.bounds import Bounds, Cost
from pumice.scheduler.eviction.settings import EvictionRules
from pumice.scheduler.eviction.survey import may_go
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.shapes import Need
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.points import SortKey
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement

__all__ = ["NodeVictims", "VictimSets"]


class NodeVictims(msgspec.Struct, frozen=True):
    """A node and its victims.

    Attributes:
        cost: What it costs, to compare nodes by.
        row: The node's row.
        victims: The pods, in the order in which they go.
        broken: Gangs that have their minimum and would not any more.
    """

    cost: Cost
    row: int
    victims: tuple[TaskInfo, ...]
    broken: int


class _Order:
    """Candidates of a node in the order in which they would go; keys of gangs and queues are taken once, so before a decision."""

    def __init__(self, session: Session, rules: EvictionRules) -> None:
        self._state = session.state
        self._answers = session.answers
        self._rules = rules
        self._jobs: dict[str, SortKey] = {}
        self._queues: dict[str, SortKey] = {}

    def sort(self, tasks: list[TaskInfo]) -> None:
        """Put the candidates of one node into order."""
        tasks.sort(key=self._key, reverse=True)
        if self._rules.queue_key is not None:
            tasks.sort(key=self._queue_key)

    def _key(self, task: TaskInfo) -> SortKey:
        holder = self._state.jobs[task.job].holder(task)
        key = self._jobs.get(holder.key)
        if key is None:
            key = self._jobs[holder.key] = self._answers.job_rank(holder)
        return key, self._answers.task_key(task), task.key

    def _queue_key(self, task: TaskInfo) -> SortKey:
        name = self._state.jobs[task.job].holder(task).queue
        key = self._queues.get(name)
        if key is None:
            assert self._rules.queue_key is not None
            key = self._queues[name] = self._rules.queue_key(self._state.queues[name])
        return key


class VictimSets:
    """Finds victims on nodes for the pods of one class."""

    __slots__ = ("_bounds", "_order", "_rules", "_session")

    def __init__(self, session: Session, rules: EvictionRules, bounds: Bounds) -> None:
        self._session = session
        self._rules = rules
        self._bounds = bounds
        self._order = _Order(session, rules)

    def begin(self, preemptor: Preemptor) -> bool:
        """A search for a pod begins; whether each eviction must be tried, because more than room decides."""
        self._order = _Order(self._session, self._rules)
        if not self._bounds.ranking.counts_room_only:
            return True
        answers = self._session.answers
        return answers.why_not_allocatable(preemptor.queue, preemptor.task) is not None

    def on_nodes(
        self, preemptor: Preemptor, rows: Sequence[int], statement: Statement, *, tries: bool
    ) -> Iterator[NodeVictims]:
        """What is to be evicted on those of the nodes on which the pod can fit."""
        bounds = self._bounds
        for row, candidates in self._allowed(preemptor, rows):
            if tries:
                victims = self._tried(preemptor, row, candidates, statement)
            else:
                needs = bounds.ranking.pods.shape.needs
                victims = _fewest(candidates, bounds.missing(row), needs)
            if victims is not None:
                broken = self._broken(victims)
                yield NodeVictims(bounds.cost(row, victims, broken), row, tuple(victims), broken)

    def _allowed(
        self, preemptor: Preemptor, rows: Sequence[int]
    ) -> Iterator[tuple[int, list[TaskInfo]]]:
        """What plugins allow on each node, in order; where they refuse any, this is noted."""
        tasks: list[TaskInfo] = []
        ends = []
        for row in rows:
            found = self._bounds.candidates(row)
            self._order.sort(found)
            tasks += found
            ends.append(len(tasks))
        may = may_go(self._session, self._rules, preemptor, tasks)
        refuses = not may.all()
        start = 0
        for row, end in zip(rows, ends, strict=True):
            chosen = tasks[start:end]
            if refuses:
                self._bounds.refused.add(row)
                chosen = [task for task, yes in zip(chosen, may[start:end], strict=True) if yes]
            yield row, chosen
            start = end

    def _tried(
        self, preemptor: Preemptor, row: int, candidates: Sequence[TaskInfo], statement: Statement
    ) -> list[TaskInfo] | None:
        """The same by evicting one after the other, and undoing it."""
        if not candidates and not self._bounds.ranking.fits_later()[row]:
            return None
        savepoint = statement.savepoint()
        chosen: list[TaskInfo] = []
        if not self._fits(preemptor, row):
            for task in candidates:
                statement.evict(task)
                chosen.append(task)
                if self._fits(preemptor, row):
                    break
            else:
                statement.roll_back(savepoint)
                return None
        for task in reversed(chosen[:-1]):
            statement.roll_back(savepoint)
            rest = [other for other in chosen if other is not task]
            for other in rest:
                statement.evict(other)
            if self._fits(preemptor, row):
                chosen = rest
        statement.roll_back(savepoint)
        return chosen

    def _fits(self, preemptor: Preemptor, row: int) -> bool:
        session = self._session
        if session.answers.why_not_allocatable(preemptor.queue, preemptor.task) is not None:
            return False
        return self._bounds.ranking.only(row, later=True) == row

    def _broken(self, victims: Iterable[TaskInfo]) -> int:
        """Gangs that have their minimum and would not any more."""
        lost: dict[str, int] = {}
        for task in victims:
            lost[task.job] = lost.get(task.job, 0) + 1
        jobs = self._session.state.jobs
        return sum(_breaks(jobs[key], count) for key, count in lost.items())


def _breaks(job: JobInfo, lost: int) -> bool:
    return job.ready - lost < job.min_member <= job.ready


def _fewest(
    candidates: Iterable[TaskInfo], missing: Sequence[int], needs: Sequence[Need]
) -> list[TaskInfo] | None:
    """Candidates that make up for what is missing, without those that are not needed; None if all do not.

    Args:
        candidates: In the order in which they go.
        missing: What the node lacks, by need; not positive for what it has.
        needs: Resources.
    """
    lacks = list(missing)
    if max(lacks) <= 0:
        return []
    chosen: list[tuple[TaskInfo, list[int]]] = []
    for task in candidates:
        vector = task.shape.vector
        gives = [vector.item(need.column) for need in needs]
        chosen.append((task, gives))
        lacks = [lack - gain for lack, gain in zip(lacks, gives, strict=True)]
        if max(lacks) <= 0:
            break
    else:
        return None
    kept = [chosen[-1][0]]
    for task, gives in reversed(chosen[:-1]):
        without = [lack + gain for lack, gain in zip(lacks, gives, strict=True)]
        if max(without) <= 0:
            lacks = without
        else:
            kept.append(task)
    return kept[::-1]
