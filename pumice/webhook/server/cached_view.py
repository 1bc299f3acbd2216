"""The cluster as admission sees it: watch caches of what rules look at.

HyperNodes are optional, because most clusters do not have their CRD: the view is ready without them,
and says that it does not know them. So are owners of pods that plugins wire: one that is not here is
asked for. Of those, only the ones that name plugins are here: a cluster has Jobs by the ten thousand.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from pumice.api.kinds import HYPER_NODE, NAMESPACE, POD_GROUP, PRIORITY_CLASS, QUEUE, Kind
from pumice.api.nodes import PriorityClass
from pumice.api.queues import Queue
from pumice.cluster.cache import Change, WatchCache
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.plugins.native import OWNERS, Owner, OwnerKey
from pumice.webhook.sightings import GangSighting, TierSighting
from pumice.webhook.view import Namespace, default_of

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
        self._classes = WatchCache(client, PRIORITY_CLASS, PriorityClass, clock=clock)
        self._gangs = WatchCache(client, POD_GROUP, GangSighting, clock=clock)
        self._queues.index(_PARENT, lambda queue: (queue.spec.parent,))
        self._active = Counter[str]()
        self._gangs.subscribe(self._count)
        self._tiers = WatchCache(client, HYPER_NODE, TierSighting, clock=clock)
        self._needed: tuple[WatchCache[Any], ...] = (
            self._queues,
            self._namespaces,
            self._classes,
            self._gangs,
        )
        self._owners: dict[Kind, WatchCache[Any]] = {
            kind: WatchCache(client, kind, type_, clock=clock, optional=True, keep=_wants_plugins)
            for kind, type_ in OWNERS.items()
        }
        self.caches: tuple[WatchCache[Any], ...] = (
            *self._needed,
            self._tiers,
            *self._owners.values(),
        )
        self._by_kind = {cache.kind: cache for cache in self.caches}

    @property
    def problem(self) -> str | None:
        """Why the view cannot be relied on, or None when it can."""
        waiting = [cache.kind.plural for cache in self._needed if not cache.synced.is_set()]
        return f"not synced yet: {', '.join(waiting)}" if waiting else None

    def knows(self, kind: Kind) -> bool:
        """Whether an object of this kind that is not here does not exist."""
        cache = self._by_kind.get(kind)
        # A kind whose CRD is not installed, or not any more, has no version to follow.
        return cache is not None and cache.synced.is_set() and bool(cache.resource_version)

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

    def priority_class(self, name: str) -> PriorityClass | None:
        """A priority class, or None when there is none of this name."""
        return self._classes.get(name)

    def priority_classes(self) -> Collection[PriorityClass]:
        """All priority classes."""
        return list(self._classes.values())

    def default_priority_class(self) -> PriorityClass | None:
        """The class of whoever names none, or None when the cluster has no such class."""
        return default_of(self._classes.values())

    def pod_groups_in(self, queue: str) -> int:
        """How many PodGroups of a queue are not completed."""
        return self._active[queue]

    def tiers(self) -> Collection[int]:
        """Tiers of the network, as HyperNodes number them."""
        return {each.spec.tier for each in self._tiers.values()}

    def tier_names(self) -> Collection[str]:
        """Tiers of the network, as HyperNodes name them."""
        return {each.spec.tier_name for each in self._tiers.values() if each.spec.tier_name}

    def owner(self, key: OwnerKey) -> Owner | None:
        """An owner of pods that plugins wire, or None when there is none of this name that names plugins."""
        kind, namespace, name = key
        found: Owner | None = self._owners[kind].get(name, namespace)
        return found

    def _count(self, change: Change, old: GangSighting | None, new: GangSighting | None) -> None:
        del change
        before = old.active_in if old is not None else None
        after = new.active_in if new is not None else None
        if before == after:
            return
        if after is not None:
            self._active[after] += 1
        if before is not None:
            self._active[before] -= 1
            if not self._active[before]:
                del self._active[before]


def _wants_plugins(owner: Owner) -> bool:
    return owner.wants_plugins
