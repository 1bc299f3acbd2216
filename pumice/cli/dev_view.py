"""The cluster as admission sees it, read straight from the store of an embedded API server."""

from collections.abc import Collection, Sequence

import msgspec

from pumice.api.kinds import HYPER_NODE, NAMESPACE, POD_GROUP, PRIORITY_CLASS, QUEUE, Kind
from pumice.api.nodes import PriorityClass
from pumice.api.queues import Queue
from pumice.embedded import Store
from pumice.plugins.native import OWNERS, Owner, OwnerKey
from pumice.webhook.sightings import GangSighting, TierSighting
from pumice.webhook.view import Namespace, default_of

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

    def knows(self, kind: Kind) -> bool:
        """Whether an object of this kind that is not here does not exist: all are looked up."""
        del kind
        return True

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

    def priority_class(self, name: str) -> PriorityClass | None:
        """A priority class, or None when there is none of this name."""
        found = self.store.get(PRIORITY_CLASS, name) if self.store is not None else None
        return msgspec.convert(found, PriorityClass) if found is not None else None

    def priority_classes(self) -> Collection[PriorityClass]:
        """All priority classes."""
        found = self.store.list(PRIORITY_CLASS) if self.store is not None else []
        return [msgspec.convert(each, PriorityClass) for each in found]

    def default_priority_class(self) -> PriorityClass | None:
        """The class of whoever names none, or None when the cluster has no such class."""
        return default_of(self.priority_classes())

    def pod_groups_in(self, queue: str) -> int:
        """How many PodGroups of a queue are not completed."""
        found = self.store.list(POD_GROUP) if self.store is not None else []
        return sum(msgspec.convert(each, GangSighting).active_in == queue for each in found)

    def tiers(self) -> Collection[int]:
        """Tiers of the network, as HyperNodes number them."""
        return {each.spec.tier for each in self._hyper_nodes()}

    def tier_names(self) -> Collection[str]:
        """Tiers of the network, as HyperNodes name them."""
        return {each.spec.tier_name for each in self._hyper_nodes() if each.spec.tier_name}

    def owner(self, key: OwnerKey) -> Owner | None:
        """An owner of pods that plugins wire, or None when there is none of this name."""
        kind, namespace, name = key
        found = self.store.get(kind, name, namespace) if self.store is not None else None
        return msgspec.convert(found, OWNERS[kind]) if found is not None else None

    def _hyper_nodes(self) -> list[TierSighting]:
        found = self.store.list(HYPER_NODE) if self.store is not None else []
        return [msgspec.convert(each, TierSighting) for each in found]
