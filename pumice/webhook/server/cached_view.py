"""The cluster as admission sees it: watch caches of queues and namespaces."""

from collections.abc import Collection, Sequence

from pumice.api.kinds import NAMESPACE, QUEUE
from pumice.api.queues import Queue
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.webhook.view import Namespace

__all__ = ["CachedView"]

_PARENT = "parent"


class CachedView:
    """A view that is behind the API server by as much as its watches are.

    Attributes:
        complete: What is not in the caches does not exist, once they are synced.
        caches: The caches, to be run.
    """

    complete = True

    def __init__(self, client: Client, *, clock: Clock | None = None) -> None:
        """Describe a view; nothing is read before the caches run."""
        self._queues = WatchCache(client, QUEUE, Queue, clock=clock)
        self._namespaces = WatchCache(client, NAMESPACE, Namespace, clock=clock)
        self._queues.index(_PARENT, lambda queue: (queue.spec.parent,))
        self.caches: tuple[WatchCache[Queue], WatchCache[Namespace]] = (
            self._queues,
            self._namespaces,
        )

    @property
    def problem(self) -> str | None:
        """Why the view cannot be relied on, or None when it can."""
        waiting = [cache.kind.plural for cache in self.caches if not cache.synced.is_set()]
        return f"not synced yet: {', '.join(waiting)}" if waiting else None

    def queue(self, name: str) -> Queue | None:
        """A queue, or None when there is none of this name."""
        return self._queues.get(name)

    def queues(self) -> Collection[Queue]:
        """All queues."""
        return list(self._queues.values())

    def children(self, name: str) -> Sequence[Queue]:
        """Queues whose `spec.parent` is this name."""
        return self._queues.indexed(_PARENT, name)

    def namespace(self, name: str) -> Namespace | None:
        """A namespace, or None when there is none of this name."""
        return self._namespaces.get(name)
