"""Search for the node on which making room for a pod costs least.

Nodes are examined in the order of their lower bounds, in growing batches, until none can be better than the best
result. Bounds and results are cached for all pods of a class, also in different gangs.
"""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from pumice.scheduler.eviction.allowed import EvictionRules, VictimOrder
from pumice.scheduler.eviction.bounds import Bounds
from pumice.scheduler.eviction.survey import Survey, survey
from pumice.scheduler.eviction.victim_sets import NodeVictims, VictimSets
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement
from pumice.scheduler.session.victims import EvictionFailure

__all__ = ["Search"]

_GROWTH = 8


class Search:
    """Looks for victims in one session, and evicts them in a statement.

    Attributes:
        told: Keys of gangs about which the session reports why evictions did not help.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.told = session.explained
        self._classes: dict[Hashable, tuple[Bounds, VictimSets]] = {}
        self._tentative: list[Hashable] = []
        self._orders: list[VictimOrder] = []
        self._places: dict[Hashable, int] = {}
        self._spared: dict[Hashable, EvictionFailure] = {}
        self._surveys: dict[Hashable, Survey] = {}
        self._surveyed = 0
        self._gangs: dict[Hashable, str] = {}

    # -- statements --------------------------------------------------------------------------

    def commit(self, statement: Statement) -> None:
        """Let the decisions of a statement leave the session."""
        self._session.commit(statement)
        self._tentative.clear()

    def discard(self, statement: Statement) -> None:
        """Undo the decisions of a statement, and the cached results that depend on them."""
        if not len(statement):
            return
        statement.discard()
        for key in self._tentative:
            del self._classes[key]
        self._tentative.clear()
        self._reset()
        self._forget_orders()

    @contextmanager
    def turn(self, job: JobInfo) -> Iterator[None]:
        """The part of an action that concerns one gang; see `Session.turn`. What is held for it is free for it."""
        session = self._session
        with session.turn(job), session.nominations.lifted(job):
            yield
        if job.key in session.errors:  # results computed from its decisions are invalid
            self._classes.clear()
            self._tentative.clear()
            self._orders.clear()

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
        self._forget_orders()
        if found.broken:
            self._reset()  # these gangs do not count as broken again on another node

    def lacks_places(self, preemptor_class: Hashable, needed: int) -> bool:
        """True if an earlier gang with pods of a class found fewer places than the given number."""
        places = self._places.get(preemptor_class)
        return places is not None and places < needed

    def note_places(self, preemptor_class: Hashable, places: int) -> None:
        """Note how many places there were for pods of a class; decisions only make them fewer."""
        self._places[preemptor_class] = places

    def note_spared(
        self, action: str, preemptor: Preemptor, rules: EvictionRules, lacks: str = ""
    ) -> None:
        """Note why evictions did not help a gang, and what it would lack with them; gangs with such pods share the first."""
        usable = self._session.suiting(preemptor.task, preemptor.queue.metadata.name)
        own = rules.without if rules.own_job else ""
        key = (rules.survey_class(preemptor), own, usable.tobytes())
        if key not in self._spared:
            seen = self.survey(preemptor, rules)
            words = self._session.extensions.why_spared
            self._spared[key] = seen.spared(action, usable, rules, words)
        found = self._spared[key]
        if preemptor.job.never_preempts or preemptor.task.never_preempts:
            found = replace(found, never=True)
        if lacks:
            found = replace(found, lacks=lacks)
        if found.candidates:
            self._session.spared.setdefault(preemptor.job.key, {})[action] = found

    # -- searching -----------------------------------------------------------------------------

    def may_help(self, preemptor: Preemptor, rules: EvictionRules) -> bool:
        """True if any pod may be evicted from a node that a pod may use; not computed again for a class that was searched before.

        All of them may have been evicted since. A node without victims is then undone like a search without a result.
        """
        if self._classes and rules.preemptor_class(self._session, preemptor) in self._classes:
            return True
        seen = self.survey(preemptor, rules)
        if not seen.has_victims:
            return False
        usable = self._session.suiting(preemptor.task, preemptor.queue.metadata.name)
        return seen.reaches(usable, rules)

    def survey(self, preemptor: Preemptor, rules: EvictionRules) -> Survey:
        """Running pods as they are now, and which of them may go if no others do."""
        moment = len(self._session.touched.log)
        if self._surveyed != moment:
            self._surveys.clear()
            self._surveyed = moment
        key = rules.survey_class(preemptor)
        found = self._surveys.get(key)
        if found is None:
            found = self._surveys[key] = survey(self._session, preemptor, rules)
        return found

    def find(
        self, preemptor: Preemptor, rules: EvictionRules, statement: Statement
    ) -> NodeVictims | None:
        """The best node for a pod, with its victims."""
        bounds, sets = self._class(preemptor, rules, statement)
        tries = sets.tries(preemptor)
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
            victims = self.survey(preemptor, rules).victims(usable, rules)
            bounds = Bounds(self._session, preemptor, victims)
            order = VictimOrder(self._session, rules)
            self._orders.append(order)
            known = bounds, VictimSets(self._session, rules, bounds, order)
            self._classes[key] = known
            if len(statement):
                self._tentative.append(key)
        return known

    def _reset(self) -> None:
        for bounds, _ in self._classes.values():
            bounds.reset()

    def _forget_orders(self) -> None:
        for order in self._orders:
            order.forget()
