"""Search for the bundles whose eviction makes room for a whole gang at the least cost.

In each domain that comes into question, bundles are added in their order until the gang gets its places, and those that turn
out not to be needed are put back. Arithmetic says from which number of bundles on that may be (`Room`); whether it is,
is found out by placing the gang as action `allocate` does. Of all domains the cheapest one is taken.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec
import numpy as np

from pumice.scheduler.eviction.allowed import EvictionRules, importance
from pumice.scheduler.eviction.bundles import BundleChoice, VictimBundle, bundles
from pumice.scheduler.eviction.domains import domains_of, waits, wanted_places
from pumice.scheduler.eviction.room import Room, WantedPlaces
from pumice.scheduler.eviction.survey import Survey
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.candidates import Candidates, Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.placing.domain_queue import DomainQueue, to_try
from pumice.scheduler.placing.filling import Filling, Promising
from pumice.scheduler.session.outcomes import JobOutcome
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement
from pumice.scheduler.session.victims import judge
from pumice.scheduler.topology.tree import Domain

__all__ = ["GangSearch", "lost_minimum"]

_ASKED = 32
"""Bundles about which plugins are asked first; the number doubles each time."""

_EXTENSIONS = 6
"""Placements of a gang with ever more bundles gone, each time four times as many, for which arithmetic says that there is room."""

_TRIALS = 64
"""Placements of a gang after which bundles are no longer put back to find out whether they are needed."""


class GangSearch:
    """Looks for bundles in one session, and evicts them in a statement."""

    def __init__(self, session: Session, choice: BundleChoice, most: int) -> None:
        """Prepare.

        Args:
            session: The session.
            choice: What the configuration says about bundles.
            most: Domains that are looked at for a gang at most.
        """
        self._session = session
        self._choice = choice
        self._most = most

    def seek(
        self, preemptor: Preemptor, rules: EvictionRules, seen: Survey, statement: Statement
    ) -> str:
        """Evict for a gang, and promise it its places; what it would still lack if that is not possible, or an empty string.

        Args:
            preemptor: A pod of the gang.
            rules: What may be evicted.
            seen: Running pods, and which of them may go if no others do.
            statement: An empty statement.
        """
        lacks = ""
        best: tuple[tuple[float, ...], str, list[VictimBundle], Domain] | None = None
        is_made = False
        wanted = wanted_places(self._session, preemptor.job)
        for domain in domains_of(self._session, preemptor, wanted, self._most):
            statement.discard()
            attempt = _Attempt(self._session, self._choice, preemptor, rules, seen, wanted)
            found = attempt.plan(domain, statement)
            lacks = lacks or attempt.lacks
            is_made = False
            if found is not None:
                plan = (self._cost(statement, domain), domain.name, found, domain)
                if best is None or plan[:2] < best[:2]:
                    best, is_made = plan, True
        if not is_made:
            statement.discard()
            if best is not None:
                _decide(self._session, preemptor, rules, best[2], statement, best[3])
        return lacks if best is None else ""

    def _cost(self, statement: Statement, domain: Domain) -> tuple[float, ...]:
        """What decisions cost: gangs broken, the highest priority of a victim, pods, tier."""
        tasks = statement.victims
        jobs = self._session.state.jobs
        highest = max((importance(jobs[task.job], task) for task in tasks), default=-(1 << 63))
        broken = len(lost_minimum(self._session, tasks))
        first = (highest, broken) if self._choice.priority_first else (broken, highest)
        return (*first, len(tasks), domain.tier)


def lost_minimum(session: Session, victims: Sequence[TaskInfo]) -> dict[str, int]:
    """Gangs that have lost their minimum by evictions, by key, and how many pods they have lost."""
    lost = Counter(task.job for task in victims)
    jobs = session.state.jobs
    return {key: count for key, count in lost.items() if _is_broken_by(jobs[key], count)}


def _is_broken_by(job: JobInfo, count: int) -> bool:
    if job.ready < job.min_member <= job.ready + count:
        return True
    return job.sub_groups is not None and not job.sub_groups.is_ready()


def _victims(chosen: Sequence[VictimBundle]) -> list[TaskInfo]:
    """The pods of bundles, each once."""
    return list({task.key: task for bundle in chosen for task in bundle.tasks}.values())


def _decide(
    session: Session,
    preemptor: Preemptor,
    rules: EvictionRules,
    chosen: Sequence[VictimBundle],
    statement: Statement,
    domain: Domain,
) -> bool:
    """Evict bundles, and promise the gang the places that its minimum lacks; whether there are enough."""
    for task in _victims(chosen):
        statement.evict(task)
    queue, job = preemptor.queue, preemptor.job
    waiting = (task for task in job.tasks.values() if waits(task))
    promising = Promising(rules.reclaims)
    tasks = to_try(session, job, waiting)
    if isinstance(tasks, DomainQueue):
        tasks.promise(queue, statement, domain, promising)
        return session.answers.is_pipelined(job) and not session.answers.is_starving(job)
    return Filling(session, queue, job, statement, JobOutcome(), promising).fill(tasks)


class _Attempt:
    """The search for a gang in one domain.

    Attributes:
        lacks: What the gang would still lack there, if nothing was found.
    """

    def __init__(
        self,
        session: Session,
        choice: BundleChoice,
        preemptor: Preemptor,
        rules: EvictionRules,
        seen: Survey,
        wanted: Sequence[WantedPlaces],
    ) -> None:
        self._session = session
        self._wanted = wanted
        self._domain = session.levels.tree.root
        self._choice = choice
        self._preemptor = preemptor
        self._rules = rules
        self._seen = seen
        self._chosen: list[VictimBundle] = []
        self._asked: deque[VictimBundle] = deque()
        self._asks = _ASKED
        self._trials = 0
        self.lacks = ""

    def plan(self, domain: Domain, statement: Statement) -> list[VictimBundle] | None:
        """The bundles that have to go, and in the statement the decisions; None if that is not possible, and then anything."""
        self._domain = domain
        room = self._room(domain)
        if not self._may_suffice(room, domain):
            return None
        source = self._source(room, domain, self._choice)
        if not self._extend(source, room, 0):
            self._explain(room, domain)
            return None
        needed = self._without_spare(room, self._chosen)
        if self._fits(statement, needed):
            return needed  # no bundle can be put back without the places becoming too few
        low, step = 0, max(1, len(self._chosen))
        is_tried = len(needed) == len(self._chosen)
        while is_tried or not self._fits(statement, self._chosen):
            is_tried = False
            low = len(self._chosen)
            if self._trials > _EXTENSIONS or not self._extend(source, room, step):
                return None
            step *= 4
        high = len(self._chosen)
        while low + 1 < high:
            self._session.time.check()
            middle = (low + high) // 2
            if self._fits(statement, self._chosen[:middle]):
                high = middle
            else:
                low = middle
        return self._reprieved(statement, self._chosen[:high])

    # -- arithmetic --------------------------------------------------------------------------

    def _room(self, domain: Domain) -> Room:
        """Places for what the gang needs at least, in a domain."""
        view, wanted = self._session.view, self._wanted
        if domain.parent is not None:
            mask = self._session.levels.tree.mask(domain)
            wanted = [msgspec.structs.replace(each, nodes=each.nodes & mask) for each in wanted]
        return Room(view.rows, view.row_of, wanted)

    def _may_suffice(self, room: Room, domain: Domain) -> bool:
        """Whether the places would be there if all went that may go; a quick answer for gangs that nothing helps."""
        rules, seen = self._rules, self._seen
        rows = seen.victims(self._usable(room), rules)
        nodes = seen.running.node[rows]
        lacks = room.shortage(room.most(nodes, seen.running.vectors[rows]))
        if lacks is None:
            return True
        if len(rows):
            gone = "the pod that may go" if len(rows) == 1 else f"the {len(rows)} pods that may go"
            found, needed = lacks
            where = f"{domain.name} would hold" if domain.name else "nodes would hold"
            self.lacks = f"even without {gone}, {where} {found} of {needed} pods"
        return False

    def _usable(self, room: Room) -> Bools:
        found: Bools = np.logical_or.reduce([each.nodes for each in room.wanted])
        return found

    def _source(self, room: Room, domain: Domain, choice: BundleChoice) -> Iterator[VictimBundle]:
        usable, needs = self._usable(room), self._preemptor.vector
        inside = None if domain.parent is None else self._session.levels.tree.mask(domain)
        return bundles(self._session, self._rules, self._seen, usable, inside, needs, choice)

    def _extend(self, source: Iterator[VictimBundle], room: Room, count: int) -> bool:
        """Choose so many bundles more, or as many as are left, and then until the room may be enough; False if it is not."""
        added = 0
        while added < count or not room.is_enough:
            self._session.time.check()
            if not self._asked:
                batch = list(islice(source, self._asks))
                if not batch:
                    return added > 0 and room.is_enough
                self._asks *= 2
                self._asked.extend(self._allowed(batch))
                continue
            bundle = self._asked.popleft()
            self._chosen.append(bundle)
            room.add(bundle)
            added += 1
        return True

    def _without_spare(self, room: Room, chosen: Sequence[VictimBundle]) -> list[VictimBundle]:
        """The bundles without those that arithmetic can do without; the room is left as it was."""
        spare = set()
        for bundle in self._in_order_of_return(chosen):
            self._session.time.check()
            room.put_back(bundle)
            if room.is_enough:
                spare.add(bundle)
            else:
                room.add(bundle)
        for bundle in spare:
            room.add(bundle)
        return [bundle for bundle in chosen if bundle not in spare]

    def _in_order_of_return(self, chosen: Sequence[VictimBundle]) -> list[VictimBundle]:
        """Broken gangs before pods that their gang can do without, the last ones first."""
        backwards = list(reversed(chosen))
        if not self._choice.priority_first:
            backwards.sort(key=lambda bundle: not bundle.is_whole)
        return backwards

    # -- plugins -----------------------------------------------------------------------------

    def _allowed(self, batch: Sequence[VictimBundle]) -> list[VictimBundle]:
        """Those bundles of which all pods may go after what was chosen before."""
        listed = [*self._chosen, *batch]
        gone: set[str] = set()
        tasks: list[TaskInfo] = []
        numbers: list[int] = []
        for number, bundle in enumerate(listed):
            for task in bundle.tasks:
                if task.key not in gone:
                    gone.add(task.key)
                    tasks.append(task)
                    numbers.append(number)
        running, known = self._session.view.running, self._session.state.jobs
        places: dict[str, int] = {}
        holders = [known[task.job].holder(task) for task in tasks]
        job = [places.setdefault(holder.key, len(places)) for holder in holders]
        jobs = list({holder.key: holder for holder in holders}.values())
        rows: Ints = np.array([task.row for task in tasks], dtype=np.int64)
        bundle_of: Ints = np.array(numbers, dtype=np.int64)
        candidates = Candidates(
            running, rows, jobs, np.array(job, dtype=np.int64), running.node[rows], bundle=bundle_of
        )
        may = judge(self._rules.checks, self._preemptor, candidates, every=True).may
        refused = set(bundle_of[~may].tolist())
        before = len(self._chosen)
        return [each for place, each in enumerate(batch, before) if place not in refused]

    # -- placing -----------------------------------------------------------------------------

    def _fits(self, statement: Statement, chosen: Sequence[VictimBundle]) -> bool:
        """Whether the gang gets its places once bundles have gone, and nothing else."""
        self._session.time.check()
        self._trials += 1
        statement.discard()
        return _decide(self._session, self._preemptor, self._rules, chosen, statement, self._domain)

    def _reprieved(self, statement: Statement, chosen: list[VictimBundle]) -> list[VictimBundle]:
        """The bundles without those that are not needed: many at once are put back, and fewer where that is too much."""
        parts = [self._in_order_of_return(chosen)]
        kept = chosen
        while parts and self._trials < _TRIALS:
            part = parts.pop()
            without = set(part)
            rest = [bundle for bundle in kept if bundle not in without]
            if self._fits(statement, rest):
                kept = rest
            elif len(part) > 1:
                half = len(part) // 2
                parts += [part[half:], part[:half]]
        self._fits(statement, kept)
        return kept

    # -- explaining --------------------------------------------------------------------------

    def _explain(self, room: Room, domain: Domain) -> None:
        """Say which gang would have to be broken, if none may be."""
        if self._choice.breaks:
            return
        source = self._source(room, domain, msgspec.structs.replace(self._choice, breaks=True))
        whole = (bundle for bundle in source if bundle.is_whole)
        before = len(self._chosen)
        if self._extend(whole, room, 1):
            needed = self._without_spare(room, self._chosen[before:])
            job = (needed or self._chosen[before:])[0].job
            self.lacks = f"would have to break {job.key} (priority {job.order_priority})"
