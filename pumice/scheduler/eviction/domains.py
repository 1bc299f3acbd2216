"""The domains of the network in which room can be made for all pods of a gang at once; the whole cluster for a gang without a limit."""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from pumice.scheduler.eviction.attempt import Cost, EvictionAttempt, EvictionPlaces
from pumice.scheduler.eviction.bounds import highest_importance
from pumice.scheduler.eviction.bundles import VictimBundle, bundles, wanted_columns
from pumice.scheduler.eviction.room import Room
from pumice.scheduler.eviction.settings import EvictionRules
from pumice.scheduler.eviction.starving_jobs import lacking, waits
from pumice.scheduler.eviction.survey import Survey, may_go
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.placing.domain_queue import DomainQueue, gets_domain, to_try
from pumice.scheduler.placing.domain_search import DomainSearch
from pumice.scheduler.placing.filling import Filling, GangTurn
from pumice.scheduler.placing.requests import DomainRequest, Members, Placed, scores
from pumice.scheduler.session.empty_nodes import shortfalls
from pumice.scheduler.session.outcomes import JobOutcome
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement
from pumice.scheduler.topology.limits import NO_LIMIT
from pumice.scheduler.topology.tree import Domain

_ASKED = 32
"""Pods about which plugins are asked first; the number doubles each time."""

_ROUNDS = 8
"""Refused bundles of a batch after each of which plugins are asked about the rest again."""


class _DomainPlace(Room):
    """A domain in which room is made for a gang; see `attempt.EvictionPlace`."""

    is_tried = is_costly = True

    def __init__(self, domains: "DomainPlaces", domain: Domain) -> None:
        session = self._session = domains.turn.session
        self._domains = domains
        self._rules = domains.rules
        self._given: list[VictimBundle] = []
        self.domain = domain
        inside: Bools = np.ones(len(session.view.rows), dtype=np.bool_)
        if domain.parent is not None:
            inside = session.levels.tree.mask(domain)
        self._inside = inside
        demands = [each._replace(nodes=each.nodes & inside) for each in domains.request.demands]
        super().__init__(session.view.rows, session.view.row_of, demands)

    def promise(self, _: Statement, /) -> bool:
        turn = self._domains.turn
        tasks = to_try(turn.session, turn.job, self._domains.request.pods)
        if not isinstance(tasks, DomainQueue):
            return Filling(turn, JobOutcome()).fill(tasks)
        tasks.promise(turn, self.domain)
        return turn.has_enough

    def cost(self, victims: Sequence[TaskInfo], broken: int, /) -> Cost:
        """Gangs broken, the highest priority, pods, tier, how full it is afterwards; where pods go for themselves, the priority first."""
        setting = self._rules.setting
        highest = highest_importance(self._session, victims)
        is_first = setting.priority_first or not setting.by_gang
        first = (highest, broken) if is_first else (broken, highest)
        fullness = self._fullness(victims) if self._domains.are_several else 0.0
        return (*first, len(victims), self.domain.tier, -fullness, self.domain.name)

    def _fullness(self, victims: Sequence[TaskInfo]) -> float:
        """How good the domain is for the gang once victims have gone, as plugins say it."""
        session = self._session
        nodes, row_of = session.levels.tree.mask(self.domain), session.state.nodes.row_of
        gone = np.zeros(session.view.rows.used.shape[1], dtype=np.int64)
        for task in victims:
            if nodes[row_of(task.node)]:
                gone += task.shape.vector
        domains = session.levels.side_by_side([self.domain])
        return float(scores(session, self._domains.request, domains, gone)[0])

    # -- bundles -----------------------------------------------------------------------------

    def bundles(self) -> Iterator[VictimBundle]:
        return self._allowed(self._source(self._rules))

    def _source(self, rules: EvictionRules) -> Iterator[VictimBundle]:
        needs = self._domains.preemptor.vector
        return bundles(self._session, rules, self._domains.seen, self.nodes, self._inside, needs)

    def _allowed(self, source: Iterator[VictimBundle]) -> Iterator[VictimBundle]:
        """Those that may go after all those before them; plugins are asked about ever more at once."""
        asked = _ASKED
        while batch := _of_so_many_pods(source, asked):
            asked *= 2
            for bundle in self._allowed_of(batch):
                self._given.append(bundle)
                yield bundle

    def _allowed_of(self, batch: Sequence[VictimBundle]) -> list[VictimBundle]:
        """Those bundles of which all pods may go after what has gone before.

        A refused bundle takes nothing from those behind it, so plugins are asked again without it. After some rounds those that seem
        to be refused, because of what others take or for a pod that they share, are left out together.
        """
        kept: list[VictimBundle] = []
        left = list(batch)
        for _ in range(_ROUNDS):
            self._session.time.check()
            refused = self._refused([*self._given, *kept], left)
            first = next((place for place, each in enumerate(left) if each.has(refused)), None)
            if first is None:
                return kept + left
            kept += left[:first]
            left = left[first + 1 :]
        refused = self._refused([*self._given, *kept], left)
        return kept + [each for each in left if not each.has(refused)]

    def _refused(self, gone: Sequence[VictimBundle], batch: Sequence[VictimBundle]) -> set[str]:
        """Keys of the pods of a batch that may not go after others, each asked about with the first bundle that it is in."""
        listed: dict[str, tuple[TaskInfo, int]] = {}
        for number, bundle in enumerate([*gone, *batch]):
            for task in bundle.tasks:
                listed.setdefault(task.key, (task, number))
        tasks = [task for task, _ in listed.values()]
        numbers: Ints = np.array([number for _, number in listed.values()], dtype=np.int64)
        may = may_go(self._session, self._rules, self._domains.preemptor, tasks, numbers)
        return {
            tasks[place].key for place in np.flatnonzero(~may & (numbers >= len(gone))).tolist()
        }

    # -- explaining --------------------------------------------------------------------------

    def what_lacks(self) -> str | None:
        """What the gang would lack even if all went that may go, empty if nothing may; None if that may be enough."""
        seen = self._domains.seen
        rows = seen.victims(self.nodes, self._rules)
        lacks = self.shortage(self.most(seen.running.node[rows], seen.running.vectors[rows]))
        if lacks is None or not len(rows):
            return None if lacks is None else ""
        gone = "the pod that may go" if len(rows) == 1 else f"the {len(rows)} pods that may go"
        found, needed = lacks
        name = self.domain.name
        where = f"{name} would hold" if name else "nodes would hold"
        return f"even without {gone}, {where} {found} of {needed} pods"

    def what_would_break(self, attempt: EvictionAttempt) -> str:
        """Which gang would have to be broken for an attempt to succeed, if none may be and that may help; it is tried if room is no matter."""
        setting = self._rules.setting
        if setting.breaks or not setting.by_gang:
            return ""
        breaking = replace(self._rules, setting=replace(setting, breaks=True))
        whole = (bundle for bundle in self._source(breaking) if bundle.is_whole)
        before, is_enough = len(attempt.chosen), self.is_enough
        if not attempt.extend(self._allowed(whole), 1):
            return ""
        if is_enough and not attempt.would_do(attempt.chosen):
            return ""
        needed = attempt.without_spare(attempt.chosen[before:])
        job = (needed or attempt.chosen[before:])[0].job
        return f"would have to break {job.key} (priority {job.order_priority})"


class DomainPlaces(EvictionPlaces):
    """The domains that are looked at for one gang: of those that could hold what it needs if they were empty, those that lack least.

    Attributes:
        are_several: Whether there are more domains than one.
        lacks: What the gang would still lack in the first one, as far as that is known.
    """

    def __init__(
        self,
        turn: GangTurn,
        rules: EvictionRules,
        preemptor: Preemptor,
        request: DomainRequest,
        seen: Survey,
    ) -> None:
        super().__init__()
        self.turn = turn._replace(promises=True, reclaims=rules.setting.reclaims)
        self.rules = rules
        self.preemptor = preemptor
        self.request = request
        self.seen = seen
        self.lacks = ""
        self._domains = self._nearest()
        self.are_several = len(self._domains) > 1

    def _nearest(self) -> Sequence[Domain]:
        """The domains, the whole cluster if the gang has no limit."""
        request, session = self.request, self.turn.session
        root = session.levels.tree.root
        if request.limit.tier is None:
            return (root,)
        needs = self.preemptor.vector
        asked = [(column, int(needs[column])) for column in wanted_columns(needs).tolist()]
        wants = [
            (session.places.empty(each.needs) * each.nodes, each.required)
            for each in request.demands
        ]
        found: list[tuple[float, str, Domain]] = []
        search = DomainSearch(self.turn)
        for domains in search.domains(request, search.inside(root)):
            lacks = shortfalls(domains, session.view.rows, wants, asked).tolist()
            found += [
                (lack, domain.name, domain)
                for lack, domain in zip(lacks, domains.domains, strict=True)
                if lack < np.inf
            ]
        found.sort(key=lambda each: each[:2])
        most = self.rules.setting.most_domains
        most = min(most, session.extensions.most_domains or most)
        return [domain for _, _, domain in found[:most]]

    def each(self) -> Iterator[_DomainPlace]:
        """All of them in which room may be enough; it is noted what the others lack."""
        for domain in self._domains:
            place = _DomainPlace(self, domain)
            lacks = place.what_lacks()
            if lacks is None:
                yield place
                lacks = "" if self.last.found or self.lacks else place.what_would_break(self.last)
            self.lacks = self.lacks or lacks


def request_of(session: Session, job: JobInfo) -> DomainRequest:
    """The pods of a gang that wait, and how many of them need a place at least."""
    needed = max(lacking(job), 1) if session.extensions.needs_minimum else 1
    is_sought = session.levels.tree.has_hyper_nodes and gets_domain(session, job)
    limit = session.view.network_limit(job) if is_sought else NO_LIMIT
    members = Members(session, job.tasks.values())
    pods = [task for task in job.tasks.values() if waits(task)]
    return DomainRequest(session, job.queue, pods, members, needed, limit, lambda: Placed.NOTHING)


def _of_so_many_pods(source: Iterator[VictimBundle], count: int) -> list[VictimBundle]:
    """The next bundles that have so many pods together, or what is left."""
    found: list[VictimBundle] = []
    while count > 0 and (bundle := next(source, None)) is not None:
        found.append(bundle)
        count -= len(bundle.tasks)
    return found
