"""Room for a gang pod by pod: for each the node on which making room costs least.

Nodes are examined in the order of their lower bounds, in growing batches, until none can be better than the best
result. Bounds and results are cached for all pods of a class, also in different gangs.
"""

from collections.abc import Hashable, Sequence

from pumice.api.queues import Queue
from pumice.scheduler.eviction.bounds import Bounds
from pumice.scheduler.eviction.settings import EvictionRules
from pumice.scheduler.eviction.starving_jobs import lacking, may_help
from pumice.scheduler.eviction.survey import Surveys
from pumice.scheduler.eviction.victim_sets import NodeVictims, VictimSets
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement

__all__ = ["PodSearch"]

_GROWTH = 8


class PodSearch:
    """Looks for victims in one session, and evicts them in a statement."""

    def __init__(self, session: Session, surveys: Surveys) -> None:
        self._session = session
        self._surveys = surveys
        self._classes: dict[Hashable, tuple[Bounds, VictimSets]] = {}
        self._tentative: list[Hashable] = []
        self._places: dict[Hashable, int] = {}
        self._gangs: dict[Hashable, str] = {}

    # -- statements --------------------------------------------------------------------------

    def committed(self) -> None:
        """The decisions of a statement were committed."""
        self._tentative.clear()

    def discarded(self) -> None:
        """The decisions of a statement were undone: so are the cached results that depend on them."""
        for key in self._tentative:
            del self._classes[key]
        self._tentative.clear()
        self._reset()

    def clear(self) -> None:
        """What was computed is not valid, because a plugin has failed."""
        self._classes.clear()
        self._tentative.clear()

    # -- gangs -------------------------------------------------------------------------------

    def seek(
        self,
        rules: EvictionRules,
        queue: Queue,
        job: JobInfo,
        tasks: Sequence[TaskInfo],
        statement: Statement,
    ) -> None:
        """Evict for one pod of a gang after the other, and promise them their places, until it has enough."""
        session = self._session
        if not may_help(session, self._surveys, rules, queue, job):
            return
        kinds = {session.alike(task) for task in tasks}
        counted = None
        if len(kinds) == 1 and not session.nominations and tasks[0].shape.peers is None:
            counted = rules.preemptor_class(session, Preemptor(tasks[0], job, queue))
            if counted in self._places and self._places[counted] < lacking(job):
                return  # an earlier gang with such pods found fewer places, and decisions only make them fewer
        while tasks:
            placed = len(statement)
            left = self._try(rules, queue, job, tasks, statement)
            if counted is not None and left:
                self._places[counted] = len(statement.promises)
            # A pod that others of its gang may give a node, by pod affinity or topology spread, is tried again after them.
            tasks = [task for task in left if task.shape.peers and task.shape.peers.may_be_helped]
            if len(statement) == placed:
                break

    def _try(
        self,
        rules: EvictionRules,
        queue: Queue,
        job: JobInfo,
        tasks: Sequence[TaskInfo],
        statement: Statement,
    ) -> list[TaskInfo]:
        """Evict for one pod after the other; those that found no place."""
        answers = self._session.answers
        failed: set[Hashable] = set()
        left: list[TaskInfo] = []
        for task in tasks:
            self._session.time.check()
            if not answers.is_starving(job):
                break
            kind = self._session.alike(task)
            if kind in failed:
                left.append(task)
                continue
            if rules.setting.reclaims and answers.why_not_preemptive(queue, task) is not None:
                continue
            if self.place(Preemptor(task, job, queue), rules, statement) is None:
                failed.add(kind)
                left.append(task)
        return left

    # -- pods --------------------------------------------------------------------------------

    def place(
        self, preemptor: Preemptor, rules: EvictionRules, statement: Statement
    ) -> NodeVictims | None:
        """Evict pods for a pod and pipeline it; None if that is not possible."""
        found = self.find(preemptor, rules, statement)
        if found is not None:
            self.apply(found, preemptor, statement)
        return found

    def apply(self, found: NodeVictims, preemptor: Preemptor, statement: Statement) -> None:
        """Evict the victims on a node, and promise their place to the one that asked."""
        for victim in found.victims:
            statement.evict(victim)
        statement.pipeline(preemptor.task, self._session.state.nodes.order[found.row])
        if found.broken:
            self._reset()  # these gangs do not count as broken again on another node

    def find(
        self, preemptor: Preemptor, rules: EvictionRules, statement: Statement
    ) -> NodeVictims | None:
        """The best node for a pod, with its victims."""
        bounds, sets = self._class(preemptor, rules, statement)
        tries = sets.begin(preemptor)
        examined: dict[int, NodeVictims | None] = {}
        best: NodeVictims | None = None
        size = 1
        while True:
            rows: list[int] = []
            while len(rows) < size:
                bound = bounds.first(examined)
                if bound is None or (best is not None and best.cost <= bound):
                    break
                row = int(bound[-1])
                examined[row] = None
                rows.append(row)
            if not rows:
                break
            for each in sets.on_nodes(preemptor, rows, statement, tries=tries):
                examined[each.row] = each
                if best is None or each.cost < best.cost:
                    best = each
            size *= _GROWTH
        for row, found in examined.items():
            if tries:
                bounds.put_back(row)
            else:
                bounds.settle(row, found.cost if found is not None else None)
        return best

    def _class(
        self, preemptor: Preemptor, rules: EvictionRules, statement: Statement
    ) -> tuple[Bounds, VictimSets]:
        key = rules.preemptor_class(self._session, preemptor)
        known = self._classes.get(key)
        gang = self._gangs.get(key)
        self._gangs[key] = preemptor.job.key
        if known is not None:
            if gang != preemptor.job.key:
                known[0].let_another_ask()
        else:
            usable = self._session.suiting(preemptor.task, preemptor.queue.metadata.name)
            seen = self._surveys.of(preemptor, rules, tentative=bool(len(statement)))
            victims = seen.victims(usable, rules)
            bounds = Bounds(self._session, preemptor, victims)
            known = bounds, VictimSets(self._session, rules, bounds)
            self._classes[key] = known
            if len(statement):
                self._tentative.append(key)
        return known

    def _reset(self) -> None:
        for bounds, _ in self._classes.values():
            bounds.reset()
