"""Own writes that the caches do not show yet.

A cache shows a write after a short time; until then a pass would see an outdated state. So the next pass over an object
waits until the caches show its writes, or until a few seconds have passed. This only saves work: names, uids and
resourceVersions prevent harm from an outdated state.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pumice.api.kinds import Kind
from pumice.api.meta import version_number
from pumice.cluster.cache import WatchCache
from pumice.cluster.store import identity_of
from pumice.controller.loop.steps import OwnWrite

__all__ = ["CacheOf", "OwnWrites"]

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


def _shows(written: OwnWrite, cache_of: CacheOf) -> bool:
    cache = cache_of(written.kind)
    version = written.version
    if cache is None or version_number(cache.resource_version) >= version_number(version) > 0:
        return True
    stored = cache.get(written.name, written.namespace)
    if stored is None:
        return not version
    uid, stored_version, leaving = identity_of(stored)
    if uid != written.uid:
        return not version or version_number(stored_version) > version_number(version)
    return version_number(stored_version) >= version_number(version) if version else leaving
