"""The cluster as far as rules look at it.

A review touches no network: the server keeps a view current from watch caches, offline verbs and
tests make a `Snapshot` of manifests. What a view does not have may not exist, or may merely not be
known; `knows` tells the two apart, kind by kind, so that nothing is called missing by somebody who
never looked.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from pumice.api import keys, kinds
from pumice.api.kinds import Kind
from pumice.api.meta import ApiStruct, ObjectMeta
from pumice.api.nodes import PriorityClass
from pumice.api.queues import Queue
from pumice.plugins.native import OWNERS, Owner, OwnerKey
from pumice.webhook.sightings import GangSighting, TierSighting

__all__ = ["AdmissionView", "Namespace", "Overlay", "Snapshot", "default_of"]


class Namespace(ApiStruct, frozen=True):
    """A namespace; its annotations may name a queue."""

    metadata: ObjectMeta = ObjectMeta()


class AdmissionView(Protocol):
    """What rules may ask about the cluster. No answer may block."""

    @property
    def complete(self) -> bool:
        """Whether a queue that is not here does not exist; otherwise it is merely not known."""

    def knows(self, kind: Kind) -> bool:
        """Whether an object of this kind that is not here does not exist."""

    def queue(self, name: str) -> Queue | None:
        """A queue, or None when there is none of this name."""

    def queues(self) -> Collection[Queue]:
        """All queues."""

    def children(self, name: str) -> Sequence[Queue]:
        """Queues whose `spec.parent` is this name."""

    def namespace(self, name: str) -> Namespace | None:
        """A namespace, or None when there is none of this name."""

    def priority_class(self, name: str) -> PriorityClass | None:
        """A priority class, or None when there is none of this name."""

    def priority_classes(self) -> Collection[PriorityClass]:
        """All priority classes."""

    def default_priority_class(self) -> PriorityClass | None:
        """The class of whoever names none, or None when the cluster has no such class."""

    def pod_groups_in(self, queue: str) -> int:
        """How many PodGroups of a queue are not completed."""

    def tiers(self) -> Collection[int]:
        """Tiers of the network, as HyperNodes number them."""

    def tier_names(self) -> Collection[str]:
        """Tiers of the network, as HyperNodes name them."""

    def owner(self, key: OwnerKey) -> Owner | None:
        """An owner of pods that plugins wire, or None when there is none of this name."""


_BUILTIN_QUEUES = (keys.ROOT_QUEUE, keys.DEFAULT_QUEUE)
_BUILTIN_CLASSES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


def default_of(classes: Iterable[PriorityClass]) -> PriorityClass | None:
    """The class of whoever names none: of several global defaults the one of lowest value, as in Kubernetes."""
    found = [each for each in classes if each.global_default]
    return min(found, key=lambda each: (each.value, each.metadata.name), default=None)


class Snapshot:
    """A view of objects at hand; nothing changes it once it is made."""

    def __init__(
        self,
        queues: Iterable[Queue] = (),
        namespaces: Iterable[Namespace] = (),
        *,
        priority_classes: Iterable[PriorityClass] = (),
        gangs: Iterable[GangSighting] = (),
        tiers: Iterable[TierSighting] = (),
        owners: Mapping[OwnerKey, Owner] | None = None,
        complete: bool = True,
    ) -> None:
        """Make a view; of two objects of one name the later counts.

        Priority classes and tiers are known when any is given: who describes a cluster in files
        often leaves them out.
        """
        self.complete = complete
        self._queues = {queue.metadata.name: queue for queue in queues}
        self._namespaces = {each.metadata.name: each for each in namespaces}
        self._classes = {each.metadata.name: each for each in priority_classes}
        self._gangs = list(gangs)
        self._tiers = list(tiers)
        self._owners = dict(owners or {})
        self._children: dict[str, list[Queue]] = {}
        for queue in self._queues.values():
            self._children.setdefault(queue.spec.parent, []).append(queue)

    @classmethod
    def of(cls, manifests: Iterable[Mapping[str, Any]], *, complete: bool = True) -> "Snapshot":
        """Make a view of raw manifests; kinds that no rule looks at are passed over.

        The queues `root` and `default`, which every cluster has, are there without being given.

        Args:
            manifests: Objects of the cluster.
            complete: Whether a queue that is not among them does not exist.

        Raises:
            msgspec.ValidationError: A field of a manifest has the wrong type.
        """
        queues = [Queue(metadata=ObjectMeta(name=name)) for name in _BUILTIN_QUEUES]
        namespaces: list[Namespace] = []
        classes: list[PriorityClass] = []
        gangs: dict[tuple[str, str], GangSighting] = {}
        tiers: list[TierSighting] = []
        owners: dict[OwnerKey, Owner] = {}
        for manifest in manifests:
            kind = kinds.of_object(dict(manifest))
            if kind == kinds.QUEUE:
                queues.append(msgspec.convert(manifest, Queue))
            elif kind == kinds.NAMESPACE:
                namespaces.append(msgspec.convert(manifest, Namespace))
            elif kind == kinds.PRIORITY_CLASS:
                classes.append(msgspec.convert(manifest, PriorityClass))
            elif kind == kinds.POD_GROUP:
                gangs[_identity(manifest)] = msgspec.convert(manifest, GangSighting)
            elif kind == kinds.HYPER_NODE:
                tiers.append(msgspec.convert(manifest, TierSighting))
            elif kind in OWNERS:
                owners[kind, *_identity(manifest)] = msgspec.convert(manifest, OWNERS[kind])
        return cls(
            queues,
            namespaces,
            priority_classes=classes,
            gangs=gangs.values(),
            tiers=tiers,
            owners=owners,
            complete=complete,
        )

    def knows(self, kind: Kind) -> bool:
        """Whether an object of this kind that is not here does not exist."""
        if kind == kinds.PRIORITY_CLASS:
            return bool(self._classes)
        if kind == kinds.HYPER_NODE:
            return bool(self._tiers)
        return self.complete

    def queue(self, name: str) -> Queue | None:
        """A queue, or None when there is none of this name."""
        return self._queues.get(name)

    def queues(self) -> Collection[Queue]:
        """All queues."""
        return self._queues.values()

    def children(self, name: str) -> Sequence[Queue]:
        """Queues whose `spec.parent` is this name."""
        return self._children.get(name, ())

    def namespace(self, name: str) -> Namespace | None:
        """A namespace, or None when there is none of this name."""
        return self._namespaces.get(name)

    def priority_class(self, name: str) -> PriorityClass | None:
        """A priority class, or None when there is none of this name."""
        found = self._classes.get(name)
        if found is None and name in _BUILTIN_CLASSES:
            return PriorityClass(metadata=ObjectMeta(name=name), value=_BUILTIN_CLASSES[name])
        return found

    def priority_classes(self) -> Collection[PriorityClass]:
        """All priority classes that were given."""
        return self._classes.values()

    def default_priority_class(self) -> PriorityClass | None:
        """The class of whoever names none, or None when the cluster has no such class."""
        return default_of(self._classes.values())

    def pod_groups_in(self, queue: str) -> int:
        """How many PodGroups of a queue are not completed."""
        return sum(gang.active_in == queue for gang in self._gangs)

    def tiers(self) -> Collection[int]:
        """Tiers of the network, as HyperNodes number them."""
        return {each.spec.tier for each in self._tiers}

    def tier_names(self) -> Collection[str]:
        """Tiers of the network, as HyperNodes name them."""
        return {each.spec.tier_name for each in self._tiers if each.spec.tier_name}

    def owner(self, key: OwnerKey) -> Owner | None:
        """An owner of pods that plugins wire, or None when there is none of this name."""
        return self._owners.get(key)


def _identity(manifest: Mapping[str, Any]) -> tuple[str, str]:
    metadata = manifest.get("metadata")
    found = metadata if isinstance(metadata, dict) else {}
    return str(found.get("namespace", "")), str(found.get("name", ""))


class Overlay:
    """A view with a few objects that it does not know yet, fetched a moment ago."""

    def __init__(
        self,
        view: AdmissionView,
        queues: Iterable[Queue] = (),
        owners: Mapping[OwnerKey, Owner] | None = None,
    ) -> None:
        """Lay queues and owners of pods over a view."""
        self.complete = view.complete
        self._view = view
        self._extra = Snapshot(queues, owners=owners)

    def knows(self, kind: Kind) -> bool:
        """Whether an object of this kind that is not here does not exist."""
        return self._view.knows(kind)

    def queue(self, name: str) -> Queue | None:
        """A queue, or None when there is none of this name."""
        return self._extra.queue(name) or self._view.queue(name)

    def queues(self) -> Collection[Queue]:
        """All queues."""
        known = {queue.metadata.name: queue for queue in self._view.queues()}
        return (known | {queue.metadata.name: queue for queue in self._extra.queues()}).values()

    def children(self, name: str) -> Sequence[Queue]:
        """Queues whose `spec.parent` is this name."""
        known = self._view.children(name)
        unchanged = [each for each in known if self._extra.queue(each.metadata.name) is None]
        return [*unchanged, *self._extra.children(name)]

    def namespace(self, name: str) -> Namespace | None:
        """A namespace, or None when there is none of this name."""
        return self._view.namespace(name)

    def priority_class(self, name: str) -> PriorityClass | None:
        """A priority class, or None when there is none of this name."""
        return self._view.priority_class(name)

    def priority_classes(self) -> Collection[PriorityClass]:
        """All priority classes."""
        return self._view.priority_classes()

    def default_priority_class(self) -> PriorityClass | None:
        """The class of whoever names none, or None when the cluster has no such class."""
        return self._view.default_priority_class()

    def pod_groups_in(self, queue: str) -> int:
        """How many PodGroups of a queue are not completed."""
        return self._view.pod_groups_in(queue)

    def tiers(self) -> Collection[int]:
        """Tiers of the network, as HyperNodes number them."""
        return self._view.tiers()

    def tier_names(self) -> Collection[str]:
        """Tiers of the network, as HyperNodes name them."""
        return self._view.tier_names()

    def owner(self, key: OwnerKey) -> Owner | None:
        """An owner of pods that plugins wire, or None when there is none of this name."""
        return self._extra.owner(key) or self._view.owner(key)
