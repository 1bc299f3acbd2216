"""The search for a gang in one domain: which bundles have to go so that it gets its places.

Bundles are added in their order until the gang gets its places, and those that turn out not to be needed are put back. Arithmetic says
from which number of bundles on that may be (`Room`); whether it is, is found out by placing the gang as action `allocate` does.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from msgspec.structs import replace

from pumice.scheduler.eviction.bundles import VictimBundle, bundles
from pumice.scheduler.eviction.room import Room
from pumice.scheduler.eviction.settings import EvictionRules
from pumice.scheduler.eviction.survey import Survey, may_go
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.placing.domain_queue import DomainQueue, to_try
from pumice.scheduler.placing.filling import Filling, Promising
from pumice.scheduler.placing.requests import Demand, DomainRequest
from pumice.scheduler.session.outcomes import JobOutcome
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement
from pumice.scheduler.topology.tree import Domain

__all__ = ["DomainAttempt"]

_ASKED = 32
"""Bundles about which plugins are asked first; the number doubles each time."""

_ROUNDS = 8
"""Refused bundles of a batch after each of which plugins are asked about the rest again."""

_EXTENSIONS = 6
"""Placements of a gang with ever more bundles gone, each time four times as many, for which arithmetic says that there is room."""

_TRIALS = 64
"""Placements of a gang after which bundles are no longer put back to find out whether they are needed."""


class DomainAttempt:
    """A search.

    Attributes:
        lacks: What the gang would still lack there, if nothing was found.
    """

    def __init__(
        self,
        session: Session,
        preemptor: Preemptor,
        rules: EvictionRules,
        seen: Survey,
        request: DomainRequest,
        domain: Domain,
    ) -> None:
        self._session = session
        self._preemptor = preemptor
        self._rules = rules
        self._seen = seen
        self._pods = request.pods
        self._domain = domain
        is_part = domain.parent is not None
        self._inside: Bools | None = session.levels.tree.mask(domain) if is_part else None
        self._room = Room(session.view.rows, session.view.row_of, self._here(request.demands))
        self._chosen: list[VictimBundle] = []
        self._asked: deque[VictimBundle] = deque()
        self._asks = _ASKED
        self._trials = 0
        self.lacks = ""

    def plan(self, statement: Statement) -> bool:
        """Evict the bundles that have to go, and promise the gang its places; if that is not possible, the statement has anything."""
        if not self._may_suffice():
            return False
        source = self._source(self._rules)
        if not self._extend(source, 0):
            self._explain()
            return False
        needed = self._without_spare(self._chosen)
        if self._fits(statement, needed):
            return True  # no bundle can be put back without the places becoming too few
        low, step = 0, max(1, len(self._chosen))
        is_tried = len(needed) == len(self._chosen)
        while is_tried or not self._fits(statement, self._chosen):
            is_tried = False
            low = len(self._chosen)
            statement.discard()  # plugins are asked about pods on their nodes
            if self._trials > _EXTENSIONS or not self._extend(source, step):
                return False
            step *= 4
        high = len(self._chosen)
        while low + 1 < high:
            self._session.time.check()
            middle = (low + high) // 2
            if self._fits(statement, self._chosen[:middle]):
                high = middle
            else:
                low = middle
        self._reprieve(statement, self._chosen[:high])
        return True

    # -- arithmetic --------------------------------------------------------------------------

    def _here(self, demands: Sequence[Demand]) -> Sequence[Demand]:
        """The places that the gang needs at least, in the domain."""
        if self._inside is None:
            return demands
        return [each._replace(nodes=each.nodes & self._inside) for each in demands]

    def _may_suffice(self) -> bool:
        """Whether the places would be there if all went that may go; a quick answer for gangs that nothing helps."""
        rules, seen, room = self._rules, self._seen, self._room
        rows = seen.victims(room.nodes, rules)
        lacks = room.shortage(room.most(seen.running.node[rows], seen.running.vectors[rows]))
        if lacks is None:
            return True
        if len(rows):
            gone = "the pod that may go" if len(rows) == 1 else f"the {len(rows)} pods that may go"
            found, needed = lacks
            name = self._domain.name
            where = f"{name} would hold" if name else "nodes would hold"
            self.lacks = f"even without {gone}, {where} {found} of {needed} pods"
        return False

    def _source(self, rules: EvictionRules) -> Iterator[VictimBundle]:
        needs = self._preemptor.vector
        return bundles(self._session, rules, self._seen, self._room.nodes, self._inside, needs)

    def _extend(self, source: Iterator[VictimBundle], count: int) -> bool:
        """Choose so many bundles more, or as many as are left, and then until the room may be enough; False if it is not."""
        added = 0
        while added < count or not self._room.is_enough:
            self._session.time.check()
            if not self._asked:
                batch = list(islice(source, self._asks))
                if not batch:
                    return added > 0 and self._room.is_enough
                self._asks *= 2
                self._asked.extend(self._allowed(batch))
                continue
            bundle = self._asked.popleft()
            self._chosen.append(bundle)
            self._room.add(bundle)
            added += 1
        return True

    def _without_spare(self, chosen: Sequence[VictimBundle]) -> list[VictimBundle]:
        """The bundles without those that arithmetic can do without; the room is left as it was."""
        room = self._room
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
        if not self._rules.setting.priority_first:
            backwards.sort(key=lambda bundle: not bundle.is_whole)
        return backwards

    # -- plugins -----------------------------------------------------------------------------

    def _allowed(self, batch: Sequence[VictimBundle]) -> list[VictimBundle]:
        """Those bundles of which all pods may go after what was chosen before.

        A refused bundle takes nothing from those behind it, so plugins are asked again without it. After some rounds those that seem
        to be refused, because of what others take or for a pod that they share, are left out together.
        """
        kept: list[VictimBundle] = []
        left = list(batch)
        for _ in range(_ROUNDS):
            self._session.time.check()
            refused = self._refused([*self._chosen, *kept], left)
            first = next((place for place, each in enumerate(left) if each.has(refused)), None)
            if first is None:
                return kept + left
            kept += left[:first]
            left = left[first + 1 :]
        refused = self._refused([*self._chosen, *kept], left)
        return kept + [each for each in left if not each.has(refused)]

    def _refused(self, gone: Sequence[VictimBundle], batch: Sequence[VictimBundle]) -> set[str]:
        """Keys of the pods of a batch that may not go after others, each asked about with the first bundle that it is in."""
        listed: dict[str, tuple[TaskInfo, int]] = {}
        for number, bundle in enumerate([*gone, *batch]):
            for task in bundle.tasks:
                listed.setdefault(task.key, (task, number))
        tasks = [task for task, _ in listed.values()]
        numbers: Ints = np.array([number for _, number in listed.values()], dtype=np.int64)
        may = may_go(self._session, self._rules, self._preemptor, tasks, numbers)
        return {
            tasks[place].key for place in np.flatnonzero(~may & (numbers >= len(gone))).tolist()
        }

    # -- placing -----------------------------------------------------------------------------

    def _fits(self, statement: Statement, chosen: Sequence[VictimBundle]) -> bool:
        """Whether the gang gets its places once bundles have gone, and nothing else."""
        self._session.time.check()
        self._trials += 1
        statement.discard()
        for task in _victims(chosen):
            statement.evict(task)
        session, queue, job = self._session, self._preemptor.queue, self._preemptor.job
        promising = Promising(self._rules.setting.reclaims)
        tasks = to_try(session, job, self._pods)
        if isinstance(tasks, DomainQueue):
            tasks.promise(queue, statement, self._domain, promising)
            return session.answers.is_pipelined(job) and not session.answers.is_starving(job)
        return Filling(session, queue, job, statement, JobOutcome(), promising).fill(tasks)

    def _reprieve(self, statement: Statement, chosen: list[VictimBundle]) -> None:
        """Put back the bundles that are not needed: many at once, and fewer where that is too much."""
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

    # -- explaining --------------------------------------------------------------------------

    def _explain(self) -> None:
        """Say which gang would have to be broken, if none may be."""
        setting = self._rules.setting
        if setting.breaks or not setting.by_gang:
            return
        source = self._source(replace(self._rules, setting=replace(setting, breaks=True)))
        whole = (bundle for bundle in source if bundle.is_whole)
        before = len(self._chosen)
        if self._extend(whole, 1):
            needed = self._without_spare(self._chosen[before:])
            job = (needed or self._chosen[before:])[0].job
            self.lacks = f"would have to break {job.key} (priority {job.order_priority})"


def _victims(chosen: Sequence[VictimBundle]) -> list[TaskInfo]:
    """The pods of bundles, each once."""
    return list({task.key: task for bundle in chosen for task in bundle.tasks}.values())
