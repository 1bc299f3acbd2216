"""The objects of a cluster that a user may read, for `pumice explain`.

A user of a namespace may read what is in it, but not nodes, queues, or pods of other namespaces. Forbidden objects are
left out, and the output names them.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from pumice.api import keys
from pumice.api.hypernodes import HyperNode
from pumice.api.kinds import (
    CONFIG_MAP,
    CSI_NODE,
    EVENT,
    HYPER_NODE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    STORAGE_CLASS,
    Kind,
)
from pumice.api.meta import ObjectMeta
from pumice.api.nodes import Namespace, Node, PriorityClass
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.api.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.cluster.client import Client
from pumice.cluster.errors import Forbidden, Gone, NotFound, Unavailable
from pumice.scheduler.plugins.fairshare import UsageStorage
from pumice.scheduler.simulate import ClusterObjects
from pumice.scheduler.state.usage import STATE_KEY

T = TypeVar("T")

_SETTLING = 1.0
"""Seconds after a change for which further changes are awaited, so that they are shown together."""
_LONGEST_WATCH = 290.0


class ReadableCluster(msgspec.Struct):
    """Objects of a cluster as far as the user may read them.

    Attributes:
        namespace: The requested namespace; None for all.
        objects: Objects that the scheduler reads; those of the whole cluster if the user may read them.
        events: Events of the namespace.
        forbidden: Objects that the user may not read, as text.
        versions: Collections that were read and can be watched: kind, namespace and resourceVersion.
        sees_queues: Whether the queues of `objects` were read; otherwise they are the queues that PodGroups name.
        sees_cluster: Whether the nodes, and the PodGroups and pods of all namespaces, were read.
    """

    namespace: str | None
    objects: ClusterObjects = msgspec.field(default_factory=ClusterObjects)
    events: list[dict[str, Any]] = msgspec.field(default_factory=list)
    forbidden: list[str] = msgspec.field(default_factory=list)
    versions: list[tuple[Kind, str | None, str]] = msgspec.field(default_factory=list)
    sees_queues: bool = True
    sees_cluster: bool = True

    def group(self, namespace: str, name: str) -> PodGroup | None:
        """A PodGroup by name; None when it does not exist."""
        for group in self.objects.pod_groups:
            if (group.metadata.namespace, group.metadata.name) == (namespace, name):
                return group
        return None


async def observe(
    client: Client,
    namespace: str | None,
    *,
    events: bool = True,
    whole: bool = False,
    usage: UsageStorage | None = None,
) -> ReadableCluster:
    """Read the objects that the user may read.

    Args:
        client: The connection.
        namespace: The namespace that must be readable; None for all namespaces.
        events: Whether events are read, too.
        whole: Whether also what no pod or gang is concerned with that is there now is read: HyperNodes, namespaces, volumes.
        usage: Where the scheduler saves what namespaces have used; None for nowhere.

    Raises:
        Forbidden: The user may not read PodGroups and pods even of the namespace.
    """
    found = ReadableCluster(namespace)
    objects = found.objects
    objects.nodes = await _everywhere(client, found, NODE, Node) or []
    found.sees_cluster = "nodes" not in found.forbidden
    objects.pod_groups = await _widely(client, found, POD_GROUP, PodGroup)
    objects.pods = await _widely(client, found, POD, Pod)
    if found.sees_cluster and (whole or any(each.spec.has_topology for each in objects.pod_groups)):
        objects.hyper_nodes = await _everywhere(client, found, HYPER_NODE, HyperNode) or []
    queues = await _everywhere(client, found, QUEUE, Queue)
    found.sees_queues = queues is not None
    objects.queues = implied_queues(objects) if queues is None else queues
    objects.priority_classes = await _everywhere(client, found, PRIORITY_CLASS, PriorityClass) or []
    if found.sees_cluster and (whole or any(each.spec.affinity for each in objects.pods)):
        objects.namespaces = await _everywhere(client, found, NAMESPACE, Namespace) or []
    if found.sees_cluster and (whole or any(has_claims(each) for each in objects.pods)):
        claims = await _everywhere(client, found, PERSISTENT_VOLUME_CLAIM, PersistentVolumeClaim)
        volumes = await _everywhere(client, found, PERSISTENT_VOLUME, PersistentVolume)
        objects.claims, objects.volumes = claims or [], volumes or []
        classes = await _everywhere(client, found, STORAGE_CLASS, StorageClass)
        csi_nodes = await _everywhere(client, found, CSI_NODE, CsiNode)
        objects.storage_classes, objects.csi_nodes = classes or [], csi_nodes or []
    if found.sees_cluster and usage is not None:
        objects.usage = await _usage(client, found, usage)
    if not events:
        return found
    try:
        found.events = (await client.list(EVENT, namespace))["items"]
    except Forbidden:
        found.forbidden.append("events")
    return found


async def observe_network(client: Client) -> ReadableCluster:
    """Read HyperNodes and nodes, and pods if the user may read them.

    Raises:
        Forbidden: The user may not read HyperNodes or nodes.
    """
    found = ReadableCluster(None)
    objects = found.objects
    with suppress(NotFound):  # the kind is not installed
        objects.hyper_nodes = await _read(client, found, HYPER_NODE, None, HyperNode)
    objects.nodes = await _read(client, found, NODE, None, Node)
    objects.pods = await _everywhere(client, found, POD, Pod) or []
    return found


async def _usage(client: Client, found: ReadableCluster, where: UsageStorage) -> str:
    """What namespaces have used; without a namespace it is looked for in all, as the scheduler's is not known."""
    try:
        listed = await client.list(
            CONFIG_MAP, where.namespace or None, field_selector=f"metadata.name={where.name}"
        )
    except Forbidden:
        found.forbidden.append(f"configmap {where.name}")
        return ""
    return saved_usage(listed["items"])


def saved_usage(config_maps: Iterable[Mapping[str, Any]]) -> str:
    """What the scheduler has saved of what namespaces have used; empty if no ConfigMap has it."""
    texts = [(each.get("data") or {}).get(STATE_KEY, "") for each in config_maps]
    return next((text for text in texts if text), "")


def implied_queues(objects: ClusterObjects) -> list[Queue]:
    """The queues that PodGroups name, for a user who may not read queues."""
    names = {group.spec.queue for group in objects.pod_groups} | {keys.DEFAULT_QUEUE}
    return [Queue(metadata=ObjectMeta(name=name)) for name in sorted(names - {""})]


def has_claims(pod: Pod) -> bool:
    """True if a pod mounts claims, so that volumes affect its placement."""
    volumes = pod.spec.volumes or ()
    return any(each.persistent_volume_claim or each.ephemeral for each in volumes)


async def _widely(client: Client, found: ReadableCluster, kind: Kind, type_: type[T]) -> list[T]:
    """All objects of a kind if they are needed; otherwise those of the requested namespace."""
    items = await _everywhere(client, found, kind, type_) if found.sees_cluster else None
    if items is None:
        found.sees_cluster = False
        items = await _read(client, found, kind, found.namespace, type_)
    return items


async def _everywhere(
    client: Client, found: ReadableCluster, kind: Kind, type_: type[T]
) -> list[T] | None:
    """All objects of a kind; None if the user may not read them, which is recorded."""
    try:
        return await _read(client, found, kind, None, type_)
    except Forbidden:
        scope = " of all namespaces" if kind.namespaced else ""
        found.forbidden.append(f"{kind.plural}{scope}")
        return None
    except NotFound:
        return []  # the kind is not installed


async def _read(
    client: Client, found: ReadableCluster, kind: Kind, namespace: str | None, type_: type[T]
) -> list[T]:
    listed = await client.list(kind, namespace)
    version = (listed.get("metadata") or {}).get("resourceVersion", "")
    if kind in (HYPER_NODE, NODE, POD_GROUP, POD, QUEUE):
        found.versions.append((kind, namespace, version))
    return [msgspec.convert(each, type_) for each in listed["items"]]


async def change(client: Client, seen: ReadableCluster) -> None:
    """Wait until an object that was read has changed, or a watch has ended."""
    tasks = [asyncio.create_task(_first_change(client, *each)) for each in seen.versions]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(_SETTLING)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _first_change(client: Client, kind: Kind, namespace: str | None, version: str) -> None:
    try:
        events = client.collection(kind, namespace).watch(version, _LONGEST_WATCH)
        async for event, _ in events:
            if event != "BOOKMARK":
                return
    except (Gone, Unavailable):
        return
    except Forbidden:
        await asyncio.sleep(_LONGEST_WATCH)  # it may be read, but not watched
