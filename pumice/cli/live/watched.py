"""The objects that a user may read, kept current by watches, for `pumice web`: what `observed` reads once for `pumice explain`."""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from pumice.api import kinds
from pumice.api.hypernodes import HyperNode
from pumice.api.jobs import Job
from pumice.api.kinds import Kind
from pumice.api.nodes import Namespace, Node, PriorityClass
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.api.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.cli.live.observed import ReadableCluster, has_claims, implied_queues, saved_usage
from pumice.cli.live.simulated import MOST_CHANGES, Change
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError, Forbidden, NotFound
from pumice.scheduler.plugins.fairshare import UsageStorage

_TYPES: dict[Kind, type[Any]] = {
    kinds.NODE: Node,
    kinds.POD_GROUP: PodGroup,
    kinds.POD: Pod,
    kinds.JOB: Job,
    kinds.QUEUE: Queue,
    kinds.PRIORITY_CLASS: PriorityClass,
    kinds.HYPER_NODE: HyperNode,
    kinds.NAMESPACE: Namespace,
    kinds.PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaim,
    kinds.PERSISTENT_VOLUME: PersistentVolume,
    kinds.STORAGE_CLASS: StorageClass,
    kinds.CSI_NODE: CsiNode,
}
_OF_NAMESPACE = (kinds.POD_GROUP, kinds.POD, kinds.JOB)
"""What a user of a namespace needs."""

_FOLLOWED = (kinds.NODE, kinds.POD_GROUP, kinds.POD, kinds.QUEUE)
"""What a simulation follows; after a change of anything else a new one begins."""

_VOLUMES = {
    kinds.PERSISTENT_VOLUME_CLAIM,
    kinds.PERSISTENT_VOLUME,
    kinds.STORAGE_CLASS,
    kinds.CSI_NODE,
}

_BEAT_SECONDS = 2.0
_ANSWER_SECONDS = 5.0
_CATCH_UP_SECONDS = 20.0

logger = logging.getLogger(__name__)


class WatchedCluster:
    """Watch caches of what a user may read.

    Attributes:
        namespace: The only namespace that is shown; None for all.
        lost: Since when the API server does not answer, UNIX seconds; None while it does.
    """

    def __init__(
        self,
        client: Client,
        namespace: str | None,
        usage: UsageStorage | None,
        changed: Callable[[], None],
    ) -> None:
        """Begin with nothing.

        Args:
            client: The connection.
            namespace: The only namespace to show; None for all that may be read, which may be that of the kubeconfig alone.
            usage: Where the scheduler saves what namespaces have used; None for nowhere.
            changed: Called after each change.
        """
        self.namespace = namespace
        self.lost: float | None = None
        self._client = client
        self._changed = changed
        self._usage = usage
        self._caches: dict[Kind, WatchCache[Any]] = {}
        self._forbidden: dict[Kind, str] = {}
        self._is_open = False
        self._changes: list[Change] | None = None

    async def open(self) -> None:
        """Find out what may be read.

        Raises:
            ApiError: The API server does not answer, or nothing can have the namespace of the kubeconfig.
        """
        for kind in _TYPES:
            self._take(kind, await self._readable(kind))
        if self._usage is not None:
            self._take(kinds.CONFIG_MAP, await self._readable_usage(self._usage))
        self._is_open = True

    async def run(self) -> None:
        """Keep what may be read current until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for cache in self._caches.values():
                tasks.create_task(cache.run())
                tasks.create_task(self._report_answer(cache))
            tasks.create_task(self._beat())

    async def _readable(self, kind: Kind) -> WatchCache[Any] | None:
        """A cache of all objects of a kind, or of those of the namespace; None if the user may read neither."""
        where = None
        try:
            await self._client.collection(kind).version()
        except NotFound:
            pass  # the cache waits until the kind is installed
        except Forbidden:
            self._forbidden[kind] = (
                f"{kind.plural}{' of all namespaces' if kind.namespaced else ''}"
            )
            if kind not in _OF_NAMESPACE:
                return None
            where = self.namespace = self.namespace or self._client.connection.namespace
            try:
                await self._client.collection(kind, where).version()
            except Forbidden:
                self._forbidden[kind] = f"{kind.plural} of namespace {where}"
                return None
        return WatchCache(self._client, kind, _TYPES[kind], namespace=where, optional=True)

    async def _readable_usage(self, where: UsageStorage) -> WatchCache[Any] | None:
        """A cache of the ConfigMap with what namespaces have used; None if the user may not read it."""
        options: Any = {
            "namespace": where.namespace or None,
            "field_selector": f"metadata.name={where.name}",
        }
        try:
            await self._client.collection(kinds.CONFIG_MAP, **options).version()
        except Forbidden:
            self._forbidden[kinds.CONFIG_MAP] = f"configmap {where.name}"
            return None
        return WatchCache(self._client, kinds.CONFIG_MAP, dict, **options)

    def _take(self, kind: Kind, cache: WatchCache[Any] | None) -> None:
        if cache is not None:
            cache.subscribe(partial(self._note, kind))
            self._caches[kind] = cache

    async def _report_answer(self, cache: WatchCache[Any]) -> None:
        await cache.reflector.answered.wait()
        self._changed()

    async def _beat(self) -> None:
        """Find out that the API server does not answer, and that it answers again, which the caches then need not wait for."""
        answered = time.time()
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await self._client.version()
            except Forbidden:
                pass  # which is an answer
            except (ApiError, TimeoutError, OSError) as error:
                if self.lost is None:
                    logger.info("the API server does not answer: %s", error)
                    self.lost = answered
                    self._changed()
                continue
            answered = time.time()
            if self.lost is not None and await self._catch_up():
                self.lost = None
                self._changed()

    async def _catch_up(self) -> bool:
        try:
            async with asyncio.timeout(_CATCH_UP_SECONDS):
                synced = [each for each in self._caches.values() if each.synced.is_set()]
                await asyncio.gather(*(each.reflector.catch_up() for each in synced))
        except (ApiError, TimeoutError, OSError):
            return False
        return True

    def _note(self, kind: Kind, old: Any, new: Any) -> None:
        if kind is not kinds.JOB and self._changes is not None:
            if kind in _FOLLOWED and len(self._changes) < MOST_CHANGES:
                self._changes.append((old, new))
            else:
                self._changes = None
        if not self.waiting_for:
            self._changed()

    # -- reading -----------------------------------------------------------------------------

    @property
    def waiting_for(self) -> list[str]:
        """What is not read yet: kinds, with the number of objects that are there."""
        if not self._is_open:
            return ["what may be read"]
        return [
            f"{kind.plural} ({len(cache)})"
            for kind, cache in self._caches.items()
            if not cache.reflector.answered.is_set()
        ]

    def taken(self) -> list[Change] | None:
        """The changes since the last call that a simulation follows; None if others have changed, too."""
        found, self._changes = self._changes, []
        return found

    def get(self, kind: Kind, name: str, namespace: str = "") -> Any:
        """One object; None if it does not exist, or may not be read."""
        cache = self._caches.get(kind)
        return cache.get(name, namespace) if cache is not None else None

    def all(self, kind: Kind) -> list[Any]:
        """The objects of a kind, without those that the user has no right to read."""
        cache = self._caches.get(kind)
        return list(cache.values()) if cache is not None else []

    def seen(self) -> ReadableCluster:
        """What `observed.observe` would read now, but for events."""
        whole = {kinds.POD_GROUP, kinds.POD, kinds.NODE}
        found = ReadableCluster(self.namespace, sees_cluster=not whole & self._forbidden.keys())
        objects = found.objects
        objects.nodes, objects.pod_groups = self.all(kinds.NODE), self.all(kinds.POD_GROUP)
        objects.pods, objects.hyper_nodes = self.all(kinds.POD), self.all(kinds.HYPER_NODE)
        objects.priority_classes = self.all(kinds.PRIORITY_CLASS)
        found.sees_queues = kinds.QUEUE not in self._forbidden
        objects.queues = self.all(kinds.QUEUE) if found.sees_queues else implied_queues(objects)
        needed = {*_FOLLOWED, kinds.PRIORITY_CLASS, kinds.JOB}
        if found.sees_cluster:
            objects.namespaces = self.all(kinds.NAMESPACE)
            objects.claims = self.all(kinds.PERSISTENT_VOLUME_CLAIM)
            objects.volumes = self.all(kinds.PERSISTENT_VOLUME)
            objects.storage_classes = self.all(kinds.STORAGE_CLASS)
            objects.csi_nodes = self.all(kinds.CSI_NODE)
            if kinds.NAMESPACE in self._forbidden and any(p.spec.affinity for p in objects.pods):
                needed.add(kinds.NAMESPACE)
            if self._forbidden.keys() & _VOLUMES and any(map(has_claims, objects.pods)):
                needed |= _VOLUMES
        if found.sees_cluster and self._usage is not None:
            needed.add(kinds.CONFIG_MAP)
            objects.usage = saved_usage(self.all(kinds.CONFIG_MAP))
        found.forbidden = [text for kind, text in self._forbidden.items() if kind in needed]
        return found
