"""State that a pass over an object leaves for the next one. All of it may be lost at any time.

*Own writes.* A cache shows a write after a short time; until then a pass would see an outdated state. So the next pass
over an object waits until the caches show its writes, or until a few seconds have passed. This only saves work: names,
uids and resourceVersions prevent harm from an outdated state.

*Finds.* Existing objects whose name a creation needed. The caches do not show them because they have another owner or
are very new.

*Trouble.* What the API server refused, to report it, and failures in a row, to wait longer.
"""

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pumice.api.kinds import Kind
from pumice.api.meta import Raw, version_number
from pumice.cluster.cache import WatchCache, identity_of
from pumice.controller.jobs.situation import PlanFailure
from pumice.controller.loop.steps import OwnWrite, PlanOutcome
from pumice.controller.plan import RecordEvent

__all__ = ["CacheOf", "Memories", "ObjectMemory", "OwnWrites"]

K = TypeVar("K", bound=Hashable)
M = TypeVar("M", bound="ObjectMemory")

WRITE_SECONDS = 5.0
"""How long to wait until the caches show a write."""

CacheOf = Callable[[Kind], WatchCache[Any] | None]
"""The cache of a kind; None for kinds that are not watched."""


@dataclass(slots=True)
class OwnWrites:
    """Writes for one object, in their order."""

    _writes: deque[tuple[OwnWrite, float]] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self._writes)

    def add(self, written: OwnWrite, now: float) -> None:
        """Add a write to wait for.

        Args:
            written: The write.
            now: This moment (monotonic).
        """
        self._writes.append((written, now + WRITE_SECONDS))

    def unseen(self, cache_of: CacheOf, now: float) -> float | None:
        """Seconds for which a write may still be waited for; None if the caches show all of them."""
        writes = self._writes
        while writes and (writes[0][1] <= now or _shows(writes[0][0], cache_of)):
            writes.popleft()  # a write that is visible is not checked again
        return writes[-1][1] - now if writes else None


@dataclass(slots=True)
class ObjectMemory:
    """State of one object.

    Attributes:
        uid: Which incarnation of the object.
        writes: Own writes that the caches may not show yet.
        finds: Objects with a name that was needed, by kind and name, and when (monotonic) they were found.
        recorded: Events of the last plan that was carried out; these are not recorded again by the next.
        trouble: What the API server refused, until a plan is carried out completely.
        failures: Passes in a row whose plan was not carried out completely.
        creates_pods: Whether the last pass created pods and nothing was refused.
    """

    uid: str = ""
    writes: OwnWrites = field(default_factory=OwnWrites)
    finds: dict[tuple[Kind, str], tuple[Raw, float]] = field(default_factory=dict)
    recorded: frozenset[RecordEvent] = frozenset()
    trouble: PlanFailure | None = None
    failures: int = 0
    creates_pods: bool = False

    def found(self, now: float, seconds: float) -> list[Raw]:
        """Finds that are still valid.

        Args:
            now: This moment (monotonic).
            seconds: How long a find is valid.
        """
        self.finds = {key: (obj, at) for key, (obj, at) in self.finds.items() if now - at < seconds}
        return [obj for obj, _ in self.finds.values()]

    def learn(self, outcome: PlanOutcome, now: float) -> None:
        """Take in what a pass wrote and found, and what was refused.

        Args:
            outcome: The outcome of its plan.
            now: This moment (monotonic).
        """
        for kind, obj in outcome.finds:
            self.finds[kind, obj["metadata"]["name"]] = obj, now
        for each in outcome.written:
            self.finds.pop((each.kind, each.name), None)
            self.writes.add(each, now)
        self.trouble = outcome.trouble or self.trouble


class Memories(Generic[K, M]):
    """State of all objects of a controller."""

    def __init__(self, empty: Callable[[], M]) -> None:
        """Know nothing.

        Args:
            empty: Makes the state of an object.
        """
        self._empty = empty
        self._known: dict[K, M] = {}

    def get(self, key: K) -> M | None:
        """State of an object; None if there is none."""
        return self._known.get(key)

    def of(self, key: K, uid: str) -> M:
        """State of an object; empty if it is about an earlier object of the same name."""
        found = self._known.get(key)
        if found is None or found.uid not in ("", uid):
            found = self._known[key] = self._empty()
        found.uid = uid
        return found

    def refused(self) -> list[K]:
        """Objects for which the API server refused something at the last pass."""
        return [key for key, found in self._known.items() if found.trouble is not None]

    def forget(self, key: K) -> None:
        """Drop the state of a deleted object."""
        self._known.pop(key, None)


def _shows(written: OwnWrite, cache_of: CacheOf) -> bool:
    cache = cache_of(written.kind)
    version = written.version
    if (
        cache is None
        or version_number(cache.reflector.resource_version) >= version_number(version) > 0
    ):
        return True
    stored = cache.get(written.name, written.namespace)
    if stored is None:
        return not version
    uid, stored_version, leaving = identity_of(stored)
    if uid != written.uid:
        return not version or version_number(stored_version) > version_number(version)
    return version_number(stored_version) >= version_number(version) if version else leaving
