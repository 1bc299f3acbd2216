"""The cluster as admission sees it, read straight from the store of an embedded API server."""

from collections.abc import Collection, Sequence

import msgspec

from pumice.api.kinds import NAMESPACE, QUEUE
from pumice.api.queues import Queue
from pumice.cluster.embedded import Store
from pumice.webhook.view import Namespace

__all__ = ["StoreView"]


class StoreView:
    """An admission view that is never behind: it looks when it is asked.

    Attributes:
        complete: What is not in the store does not exist.
        store: Where to look; set once the server exists, which needs admission to be made.
    """

    complete = True

    def __init__(self, store: Store | None = None) -> None:
        """Look into a store; without one the cluster is empty."""
        self.store = store

    def queue(self, name: str) -> Queue | None:
        """A queue, or None when there is none of this name."""
        found = self.store.get(QUEUE, name) if self.store is not None else None
        return msgspec.convert(found, Queue) if found is not None else None

    def queues(self) -> Collection[Queue]:
        """All queues."""
        found = self.store.list(QUEUE) if self.store is not None else []
        return [msgspec.convert(each, Queue) for each in found]

    def children(self, name: str) -> Sequence[Queue]:
        """Queues whose `spec.parent` is this name."""
        return [queue for queue in self.queues() if queue.spec.parent == name]

    def namespace(self, name: str) -> Namespace | None:
        """A namespace, or None when there is none of this name."""
        found = self.store.get(NAMESPACE, name) if self.store is not None else None
        return msgspec.convert(found, Namespace) if found is not None else None
