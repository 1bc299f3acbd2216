"""Updates of the scheduler's state from watch caches."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Protocol, TypeVar

from pumice.api import kinds
from pumice.api.budgets import PodDisruptionBudget, ResourceQuota
from pumice.api.hypernodes import HyperNode
from pumice.api.meta import ObjectMeta
from pumice.api.nodes import Namespace, Node, PriorityClass
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.quantities import QuantityError
from pumice.api.queues import Queue
from pumice.api.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.cluster.cache import WatchCache, is_from_backup, wait_settled
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.subscribers import Subscriber
from pumice.scheduler import ClusterState


class _WatchedObject(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=_WatchedObject)


class SchedulerCaches:
    """The scheduler's watches.

    Attributes:
        hyper_nodes: The HyperNodes; most clusters do not have their CRD.
        namespaces: The namespaces; terms of pod affinity may select them by their labels.
        pods: All pods: ours wait for a place, others take room.
        csi_nodes: How many volumes nodes can attach.
    """

    def __init__(self, client: Client, clock: Clock | None = None) -> None:
        """Create the caches; each must `run`."""
        self.nodes = WatchCache(client, kinds.NODE, Node, clock=clock)
        self.hyper_nodes = WatchCache(
            client, kinds.HYPER_NODE, HyperNode, clock=clock, optional=True
        )
        self.namespaces = WatchCache(client, kinds.NAMESPACE, Namespace, clock=clock)
        self.pods = WatchCache(client, kinds.POD, Pod, clock=clock, trim=Pod.drop_unread)
        self.pod_groups = WatchCache(client, kinds.POD_GROUP, PodGroup, clock=clock)
        self.queues = WatchCache(client, kinds.QUEUE, Queue, clock=clock)
        self.priority_classes = WatchCache(client, kinds.PRIORITY_CLASS, PriorityClass, clock=clock)
        self.claims = WatchCache(
            client, kinds.PERSISTENT_VOLUME_CLAIM, PersistentVolumeClaim, clock=clock
        )
        self.volumes = WatchCache(client, kinds.PERSISTENT_VOLUME, PersistentVolume, clock=clock)
        self.storage_classes = WatchCache(client, kinds.STORAGE_CLASS, StorageClass, clock=clock)
        self.csi_nodes = WatchCache(client, kinds.CSI_NODE, CsiNode, clock=clock)
        self.quotas = WatchCache(client, kinds.RESOURCE_QUOTA, ResourceQuota, clock=clock)
        self.budgets = WatchCache(
            client, kinds.POD_DISRUPTION_BUDGET, PodDisruptionBudget, clock=clock
        )

    @property
    def all(self) -> tuple[WatchCache[Any], ...]:
        """Every cache."""
        return tuple(vars(self).values())

    @property
    def required(self) -> tuple[WatchCache[Any], ...]:
        """Caches of kinds that every cluster has."""
        return tuple(each for each in self.all if each is not self.hyper_nodes)

    async def settled(self) -> None:
        """Wait until no cache is taking in a list, so that a cycle does not see half of the changes."""
        await wait_settled(*self.all)

    @asynccontextmanager
    async def feeding(
        self, state: ClusterState, news: asyncio.Event, clock: Clock
    ) -> AsyncIterator[None]:
        """Report all known objects and every change to a state, inside the block.

        The block begins when all known objects have been reported.

        Args:
            state: What to feed.
            news: Set whenever something that matters changed.
            clock: Says when changes are reported.
        """

        def by_name(remove: Callable[[str], bool]) -> Callable[[ObjectMeta], bool]:
            return lambda meta: remove(meta.name)

        def by_both(remove: Callable[[str, str], bool]) -> Callable[[ObjectMeta], bool]:
            return lambda meta: remove(meta.namespace, meta.name)

        with ExitStack() as stack:

            async def feed(
                cache: WatchCache[T], put: Callable[[T], bool], drop: Callable[[ObjectMeta], bool]
            ) -> None:
                stack.callback(await cache.replay(_told(put, drop, news)))

            await feed(
                self.priority_classes,
                state.set_priority_class,
                by_name(state.remove_priority_class),
            )
            await feed(self.queues, state.set_queue, by_name(state.remove_queue))
            await feed(
                self.storage_classes, state.set_storage_class, by_name(state.remove_storage_class)
            )
            await feed(self.csi_nodes, state.set_csi_node, by_name(state.remove_csi_node))
            await feed(self.claims, state.set_claim, by_both(state.remove_claim))
            await feed(self.volumes, state.set_volume, by_name(state.remove_volume))
            await feed(self.quotas, state.set_quota, by_both(state.remove_quota))
            await feed(self.budgets, state.set_budget, by_both(state.remove_budget))
            await feed(self.namespaces, state.set_namespace, by_name(state.remove_namespace))
            await feed(self.hyper_nodes, state.set_hyper_node, by_name(state.remove_hyper_node))
            await feed(self.nodes, state.set_node, by_name(state.remove_node))
            await feed(self.pod_groups, state.set_pod_group, by_both(state.remove_pod_group))

            def set_pod(pod: Pod) -> bool:
                state.usage.moment = clock.wall()
                return state.set_pod(pod)

            def remove_pod(meta: ObjectMeta) -> bool:
                state.usage.moment = clock.wall()
                return state.remove_pod(meta.namespace, meta.name)

            await feed(self.pods, set_pod, remove_pod)
            yield


def _told(
    put: Callable[[T], bool], drop: Callable[[ObjectMeta], bool], news: asyncio.Event
) -> Subscriber[T]:
    def told(old: T | None, new: T | None) -> None:
        ends = old is not None and (
            new is None or new.metadata.uid != old.metadata.uid or is_from_backup(old, new)
        )
        # A later object of the same name, or an earlier state, starts without what was assumed.
        if old is not None and ends and drop(old.metadata):
            news.set()
        if new is None:
            return
        try:
            if put(new):
                news.set()
        except QuantityError:
            raise  # the state is as before
        except Exception:
            # Nothing is left of what was taken in half-way: the next try begins without it.
            news.set()
            drop(new.metadata)
            raise

    return told
