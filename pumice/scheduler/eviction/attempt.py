"""Room in one place: of the bundles that go first as few as suffice, without those that turn out not to be needed.

Arithmetic says how many must go at least. Where more than room decides, it is tried on a statement with ever more of them gone, and
what was too much is put back.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from pumice.scheduler.eviction.bundles import VictimBundle, broken_gangs
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement, Steps

_EXTENSIONS = 6
"""Trials with ever more bundles gone, each time four times as many, for which arithmetic says that there is room."""

_TRIALS = 64
"""Trials, where they cost much, after which bundles are no longer put back to find out whether they are needed."""

Cost = tuple[float | str, ...]
"""What places are compared by: the less the better, and the name or the row last."""


class EvictionPlace(Protocol):
    """Where room is made: a node for a pod, or a domain of the network for all pods of a gang."""

    @property
    def is_tried(self) -> bool:
        """Whether more than room decides, so that it is to be tried."""

    @property
    def is_costly(self) -> bool:
        """Whether a trial costs so much that there may be few of them."""

    @property
    def is_enough(self) -> bool:
        """Whether by arithmetic there is room once the bundles that were added have gone."""

    def bundles(self) -> Iterator[VictimBundle]:
        """Those that may go, in the order in which they do."""

    def add(self, bundle: VictimBundle) -> None:
        """Let a bundle go."""

    def put_back(self, bundle: VictimBundle) -> None:
        """Undo `add`."""

    def promise(self, statement: Statement, /) -> bool:
        """Promise places on a statement on which bundles have gone; whether there are enough."""

    def cost(self, victims: Sequence[TaskInfo], broken: int, /) -> Cost:
        """What it costs to evict pods, all of which are still there, and to break so many gangs."""


class EvictionPlaces(ABC):
    """The places that come into question for what asks for room.

    Attributes:
        best: Where room costs least of those that were searched.
        last: The search in the last of them.
    """

    last: "EvictionAttempt"

    def __init__(self) -> None:
        self.best: FoundRoom | None = None

    def forget(self) -> None:
        """Let go of what was found once the search is over: it refers to the places, so that it would not be freed otherwise."""
        self.best = None
        vars(self).pop("last", None)

    @abstractmethod
    def each(self) -> Iterator[EvictionPlace]:
        """Those to search, as far as one may be better than the best; goes on once it has been searched."""


class FoundRoom(NamedTuple):
    """Room in a place.

    Attributes:
        victims: The pods that have to go, in their order.
        broken: The gangs that are broken with them.
        steps: What was decided when it was tried; None if it was not.
    """

    cost: Cost
    place: EvictionPlace
    victims: Sequence[TaskInfo]
    broken: Sequence[JobInfo]
    steps: Steps | None

    def apply(self, statement: Statement) -> None:
        """Evict the pods, and promise the places."""
        if self.steps is not None:
            statement.repeat(self.steps)
            return
        for task in self.victims:
            statement.evict(task)
        self.place.promise(statement)


class EvictionAttempt:
    """A search in one place.

    Attributes:
        chosen: The bundles that go, as far as it has come.
        found: What has to go; None if nothing suffices.
    """

    def __init__(
        self, session: Session, statement: Statement, place: EvictionPlace, *, safe_last: bool
    ) -> None:
        """Begin with nothing evicted but what the statement says; `safe_last`: bundles that break no gang are put back after all others."""
        self._session = session
        self._time = session.time
        self._statement = statement
        self._before = statement.savepoint()
        self._place = place
        self._safe_last = safe_last
        self._trials = 0
        self.chosen: list[VictimBundle] = []
        self.found: FoundRoom | None = None

    def run(self) -> None:
        """Search; the statement is then as it was before."""
        needed = self._needed()
        steps = self._statement.cut(self._before) if self._place.is_tried else None
        if needed is not None:
            victims = _victims(needed)
            broken = broken_gangs(self._session, victims)
            cost = self._place.cost(victims, len(broken))
            self.found = FoundRoom(cost, self._place, victims, broken, steps)

    def _needed(self) -> Sequence[VictimBundle] | None:
        """The bundles that have to go; if that is tried, they have gone on the statement, with the places promised."""
        place, chosen = self._place, self.chosen
        source = place.bundles()
        if not self.extend(source, 0):
            return None
        needed = self.without_spare(chosen)
        if not place.is_tried or self._fits(needed):
            return needed  # no bundle can be put back without the room becoming too little
        if len(needed) == len(chosen) or not self._fits(chosen):
            extend = self._in_leaps if place.is_costly else self._one_after_the_other
            if not extend(source):
                return None
        return self._reprieve(chosen)  # with fewer of the first ones there is no room

    def _one_after_the_other(self, source: Iterator[VictimBundle]) -> bool:
        """Let one bundle more go, until there is room; False if there is none without all of them.

        Not every length can be passed over: a pod may need one of those that go later, by affinity.
        """
        while self.extend(source, 1):
            self._time.check()
            for task in self.chosen[-1].tasks:
                self._statement.evict(task)
            if self._place.promise(self._statement):
                return True
        return False

    def _in_leaps(self, source: Iterator[VictimBundle]) -> bool:
        """Let ever more bundles go, until there is room, then find by halves the first one with which there is; False if there is none."""
        place, chosen = self._place, self.chosen
        low, step = len(chosen), max(1, len(chosen))
        while True:
            self._statement.roll_back(self._before)  # plugins are asked about pods on their nodes
            if self._trials > _EXTENSIONS or not self.extend(source, step):
                return False
            if self._fits(chosen):
                break
            low = len(chosen)
            step *= 4
        high = len(chosen)
        while low + 1 < high:
            middle = (low + high) // 2
            if self._fits(chosen[:middle]):
                high = middle
            else:
                low = middle
        for bundle in chosen[high:]:
            place.put_back(bundle)
        del chosen[high:]
        return True

    # -- arithmetic --------------------------------------------------------------------------

    def extend(self, source: Iterator[VictimBundle], count: int) -> bool:
        """Choose so many bundles more, or as many as are left, and then until the room may be enough; False if it is not."""
        place, added = self._place, 0
        while added < count or not place.is_enough:
            bundle = next(source, None)
            if bundle is None:
                return added > 0 and place.is_enough
            self.chosen.append(bundle)
            place.add(bundle)
            added += 1
        return True

    def without_spare(self, chosen: Sequence[VictimBundle]) -> Sequence[VictimBundle]:
        """The bundles without those that arithmetic can do without; the place is left as it was."""
        place, spare = self._place, set()
        if len(chosen) < 2:
            return chosen
        for bundle in self._in_order_of_return(chosen):
            self._time.check()
            place.put_back(bundle)
            if place.is_enough:
                spare.add(bundle)
            else:
                place.add(bundle)
        for bundle in spare:
            place.add(bundle)
        return [bundle for bundle in chosen if bundle not in spare] if spare else chosen

    def _in_order_of_return(self, chosen: Sequence[VictimBundle]) -> Sequence[VictimBundle]:
        """The last ones first."""
        backwards = list(reversed(chosen))
        if self._safe_last:
            backwards.sort(key=lambda bundle: not bundle.is_whole)
        return backwards

    # -- trials ------------------------------------------------------------------------------

    def would_do(self, chosen: Sequence[VictimBundle]) -> bool:
        """Whether there would be room once these bundles had gone; the statement is left as it was."""
        fits = self._fits(chosen)
        self._statement.roll_back(self._before)
        return fits

    def _fits(self, chosen: Sequence[VictimBundle]) -> bool:
        """Whether there is room once these bundles have gone, and nothing else."""
        self._time.check()
        self._trials += 1
        self._statement.roll_back(self._before)
        for task in _victims(chosen):
            self._statement.evict(task)
        return self._place.promise(self._statement)

    def _reprieve(self, chosen: Sequence[VictimBundle]) -> Sequence[VictimBundle]:
        """Put back the bundles that are not needed: many at once, and fewer where that is too much."""
        place, kept = self._place, chosen
        parts = [self._in_order_of_return(chosen)]
        while parts and not (place.is_costly and self._trials >= _TRIALS):
            part = parts.pop()
            without = set(part)
            rest = [bundle for bundle in kept if bundle not in without]
            for bundle in part:
                place.put_back(bundle)
            if place.is_enough and self._fits(rest):
                kept = rest
                continue
            for bundle in part:
                place.add(bundle)
            if len(part) > 1:
                half = len(part) // 2
                parts += [part[half:], part[:half]]
        self._fits(kept)
        return kept


def _victims(chosen: Sequence[VictimBundle]) -> list[TaskInfo]:
    """The pods of bundles, each once."""
    if len(chosen) == 1:
        return list(chosen[0].tasks)
    return list({task.key: task for bundle in chosen for task in bundle.tasks}.values())
