"""The admission view on watch caches.

HyperNodes are optional, because most clusters do not have their CRD: the view is ready without them, and `knows` is
then false for them. Owners of pods that plugins wire are optional, too: a missing one is read from the API server. Only
owners that name plugins are cached, because a cluster may have tens of thousands of Jobs.
"""

from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Any

from pumice.api.kinds import HYPER_NODE, QUEUE, Kind
from pumice.api.queues import Queue
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.plugins.native import OWNERS
from pumice.webhook.view import READ_AS, AdmissionView

__all__ = ["CachedView"]

_PARENT = "parent"
_OPTIONAL = (HYPER_NODE, *OWNERS)


class CachedView(AdmissionView):
    """A view on watch caches, which may lag behind the API server.

    Attributes:
        caches: The caches, to be run.
    """

    def __init__(self, client: Client) -> None:
        """Describe a view; nothing is read before the caches run."""
        self._by_kind: dict[Kind, WatchCache[Any]] = {
            kind: WatchCache(client, kind, type_, optional=True, keep=attrgetter("wants_plugins"))
            if kind in OWNERS
            else WatchCache(client, kind, type_)
            for kind, type_ in READ_AS.items()
        }
        self.caches = tuple(self._by_kind.values())
        self._queues: WatchCache[Queue] = self._by_kind[QUEUE]
        self._queues.index(_PARENT, lambda queue: (queue.spec.parent,))

    @property
    def problem(self) -> str | None:
        """Why the view may be out of date, or None."""
        needed = (cache for kind, cache in self._by_kind.items() if kind not in _OPTIONAL)
        waiting = [cache.kind.plural for cache in needed if not cache.synced.is_set()]
        return f"not synced yet: {', '.join(waiting)}" if waiting else None

    def get(self, kind: Kind, name: str, namespace: str = "") -> Any | None:
        """An object, or None; only owners that name plugins are cached."""
        return self._by_kind[kind].get(name, namespace)

    def list(self, kind: Kind) -> Collection[Any]:
        """All objects of a kind."""
        return [*self._by_kind[kind].values()]

    def knows(self, kind: Kind) -> bool:
        """True if an object of this kind that is missing here does not exist; the server itself looks up missing queues."""
        if kind == QUEUE:
            return True
        cache = self._by_kind.get(kind)
        # A kind whose CRD is not installed, or not any more, has no version to follow.
        return cache is not None and cache.synced.is_set() and bool(cache.resource_version)

    def children(self, name: str) -> Sequence[Queue]:
        """Queues whose `spec.parent` is this name."""
        return self._queues.indexed(_PARENT, name)
