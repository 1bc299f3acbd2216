"""The domain of the network in which pods are placed together.

What is taken says `docs/scheduler/plugins/network-topology-aware.md`. Domains that by arithmetic lack room are not tried, and the best ones
are tried first, so that most searches need one trial. A trial is a part of the statement: what does not serve is undone.
"""

from collections.abc import Hashable, Iterator, Sequence, Set
from typing import NamedTuple

import numpy as np

from pumice.scheduler.fairness.fair_shares import DominantShare
from pumice.scheduler.model.axis import Bools, Floats
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.placing.filling import Filling, GangTurn
from pumice.scheduler.placing.pod_queue import PodQueue
from pumice.scheduler.placing.rank_order import RankOrder
from pumice.scheduler.placing.requests import DomainRequest, Placed, scores
from pumice.scheduler.session.outcomes import JobOutcome
from pumice.scheduler.topology.levels import SideBySide
from pumice.scheduler.topology.tree import Domain

Around = Sequence[SideBySide]
"""Domains in sets of one tier, in the order in which they are tried; with each domain there are those in it, the widest are last."""

_ALIKE = 8
"""Kinds of pods up to which domains are compared."""


class Trial(NamedTuple):
    """What was found out about a request in one domain.

    Attributes:
        fitting: How many of the pods got a place there.
        outcome: Why others have got nothing.
    """

    domain: Domain
    fitting: int
    outcome: JobOutcome


class DomainSearch:
    """Searches of one turn of a gang.

    Attributes:
        trials: The trials that failed.
    """

    def __init__(self, turn: GangTurn) -> None:
        """Begin with nothing tried."""
        self._turn = turn
        self._session, _, self._job, self._statement, promises, _ = turn
        self._levels = turn.session.levels
        self._tree = turn.session.levels.tree
        self._goals = (Placed.PROMISES,) if promises else (Placed.PLACES, Placed.PROMISES)
        self.trials: list[Trial] = []

    # -- domains -----------------------------------------------------------------------------

    def inside(self, domain: Domain) -> Around:
        """The domains in one, itself included."""
        return self._levels.below(domain, domain.tier)

    def domains(self, request: DomainRequest, around: Around) -> Iterator[SideBySide]:
        """The domains to try for a request, in sets of one tier, those first that are tried first; without a limit the widest domain."""
        highest = request.limit.tier
        if highest is None:
            yield from around[-1:]
        elif request.members:
            yield from self._from_anchors(request.members.around, highest, around)
        else:
            yield from (some for some in around if len(some) and some.domains[0].tier <= highest)

    def _from_anchors(
        self, inside: Set[Domain], highest: int, around: Around
    ) -> Iterator[SideBySide]:
        """Domains that hold pods that are placed, and then those around; where trees overlap, of each tree."""
        wider = {each.parent for each in inside}
        anchors = sorted(inside - wider)
        if len(anchors) == 1 and self._tree.root in around[-1].domains:
            yield from self._levels.outwards(anchors[0], highest)
            return
        left = {each for some in around for each in some.domains}
        for anchor in anchors:
            for some in self._levels.outwards(anchor, highest):
                new = [each for each in some.domains if each in left]
                left.difference_update(new)
                if new:
                    yield some if len(new) == len(some) else self._levels.side_by_side(new)

    # -- the search --------------------------------------------------------------------------

    def find(self, request: DomainRequest, around: Around) -> float | None:
        """Place the pods of a request in the best domain; how good it is. None, and nothing is placed, if there is none."""
        for domains in self.domains(request, around):
            self._session.time.check()
            found = self._best_of(request, domains)
            if found is not None:
                return found
            if self.is_refused_by_queue:
                return None
        return None

    def _best_of(self, request: DomainRequest, domains: SideBySide) -> float | None:
        """Place the pods in the best one of some domains of a tier."""
        now, later = self.rooms(request, domains)
        if not later.any():
            return None
        worth = scores(self._session, request, domains)
        order = np.argsort(-worth, kind="stable").tolist()  # of equal ones the first by name
        if rows := request.nominated_rows():  # others were evicted for them there
            masks = [self._tree.mask(each) for each in domains.domains]
            order.sort(key=lambda place: not masks[place][rows].all())
        hopeless: set[int] = set()
        for least in self._goals:
            for place in order:
                if (now if least is Placed.PLACES else later)[place] and place not in hopeless:
                    domain = domains.domains[place]
                    placed = self._try(request, domain, least)
                    if placed >= least:
                        return float(worth[place])
                    if placed is Placed.NOTHING:
                        hopeless.add(place)
                    if self.is_refused_by_queue:
                        return None
            if not self._session.touched.releases:
                return None
        return None

    @property
    def is_refused_by_queue(self) -> bool:
        """Whether the queue of the gang has refused pods for which there was room; it would do so in any domain."""
        if not self.trials:
            return False
        outcome = self.trials[-1].outcome
        return outcome.refused is not None and outcome.failed is None

    def rooms(self, request: DomainRequest, domains: SideBySide) -> tuple[Bools, Bools]:
        """Whether domains have room for a request, by arithmetic: now, and now or later."""
        now = np.ones(len(domains), dtype=np.bool_)
        later = now.copy()
        releases = self._session.touched.releases
        for demand in request.demands:
            now &= domains.sums(request.counts(demand)) >= demand.required
            if releases:
                sums = domains.sums(request.counts(demand, later=True))
                later &= sums >= demand.required
        return now, (later | now) if releases else now

    def likeness(self, request: DomainRequest, domain: Domain) -> Hashable:
        """Equal for domains in which the same becomes of a request: equal nodes with equal use, divided alike; None if that is not known."""
        firsts = {task.shape: task for task in reversed(request.pods)}
        rankings = [self._session.ranking(each, self._job.queue) for each in firsts.values()]
        if not all(ranking.counts_room_only for ranking in rankings) or len(rankings) > _ALIKE:
            return None
        rows, table = self._levels.rows(domain), self._session.view.rows
        columns = (table.allocatable, table.used, table.releasing, table.pipelined)
        inside: list[Hashable] = []
        ahead = [domain]
        while ahead:
            each = ahead.pop()
            inside.append((each.tier, np.searchsorted(rows, self._levels.rows(each)).tobytes()))
            ahead.extend(each.children)
        return (
            *(column[rows].tobytes() for column in columns),
            *(ranking.likeness(rows) for ranking in rankings),
            *inside,
        )

    def _try(self, request: DomainRequest, domain: Domain, least: Placed) -> Placed:
        """Place the pods in a domain; what they would have got, if that is less than the least and nothing is placed."""
        best = Placed.NOTHING
        before = self._statement.savepoint()
        for pods, near in self._ways(request, domain):
            outcome = JobOutcome()
            hopeful = len(request.pods)

            def goes_on_without(_: TaskInfo) -> bool:
                nonlocal hopeful
                hopeful -= 1
                return hopeful >= request.required

            def is_done() -> bool:
                count = self._statement.savepoint() - before
                return count >= request.required and request.placed() >= self._goals[0]

            Filling(self._turn, outcome).pods(pods, is_done, goes_on_without, near)
            count = self._statement.savepoint() - before
            placed = request.placed() if count else Placed.NOTHING
            if placed >= least:
                return placed
            self._statement.roll_back(before)
            self.trials.append(Trial(domain, count, outcome))
            best = max(best, placed)
            if outcome.failed is None:
                break
        return best

    def _ways(
        self, request: DomainRequest, domain: Domain
    ) -> Iterator[tuple[PodQueue, RankOrder | None]]:
        """Orders of pods and of nodes in which pods are placed in a domain, until one succeeds.

        In the domain of all nodes also those in which other gangs are placed, so that one which only should be near to each
        other is placed wherever others are.
        """

        def fullness(domains: SideBySide) -> Floats:
            return scores(self._session, request, domains)

        def near() -> RankOrder:
            last = request.members.beside(request.pods[0])
            return RankOrder(self._session, domain, request.required, fullness, last)

        session, job, pods = self._session, self._job, request.pods
        is_root, has_parts = domain.parent is None, bool(domain.children)
        if has_parts or not is_root:
            yield PodQueue(session, job, pods), near()
        if is_root:
            yield PodQueue(session, job, pods), None
        if len(request.shapes) > 1 and request.required == len(pods):
            share = DominantShare(session.view.total())

            def size(task: TaskInfo) -> float:
                return -share.of(task.shape.vector)

            yield PodQueue(session, job, pods, size), None if is_root else near()
