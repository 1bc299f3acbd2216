"""The cluster as far as rules look at it.

A review touches no network: the server keeps a view current from watch caches, offline verbs and
tests make a `Snapshot` of manifests.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from pumice.api import keys, kinds
from pumice.api.meta import ApiStruct, ObjectMeta
from pumice.api.queues import Queue

__all__ = ["AdmissionView", "Namespace", "Overlay", "Snapshot"]


class Namespace(ApiStruct, frozen=True):
    """A namespace; its annotations may name a queue."""

    metadata: ObjectMeta = ObjectMeta()


class AdmissionView(Protocol):
    """What rules may ask about the cluster. No answer may block."""

    @property
    def complete(self) -> bool:
        """Whether what is not here does not exist; otherwise it is merely not known."""

    def queue(self, name: str) -> Queue | None:
        """A queue, or None when there is none of this name."""

    def queues(self) -> Collection[Queue]:
        """All queues."""

    def children(self, name: str) -> Sequence[Queue]:
        """Queues whose `spec.parent` is this name."""

    def namespace(self, name: str) -> Namespace | None:
        """A namespace, or None when there is none of this name."""


_BUILTIN_QUEUES = (keys.ROOT_QUEUE, keys.DEFAULT_QUEUE)


class Snapshot:
    """A view of objects at hand; nothing changes it once it is made."""

    def __init__(
        self,
        queues: Iterable[Queue] = (),
        namespaces: Iterable[Namespace] = (),
        *,
        complete: bool = True,
    ) -> None:
        """Make a view; of two objects of one name the later counts."""
        self.complete = complete
        self._queues = {queue.metadata.name: queue for queue in queues}
        self._namespaces = {each.metadata.name: each for each in namespaces}
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
        namespaces = []
        for manifest in manifests:
            kind = kinds.of_object(dict(manifest))
            if kind == kinds.QUEUE:
                queues.append(msgspec.convert(manifest, Queue))
            elif kind == kinds.NAMESPACE:
                namespaces.append(msgspec.convert(manifest, Namespace))
        return cls(queues, namespaces, complete=complete)

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


class Overlay:
    """A view with a few queues that it does not know yet, fetched a moment ago."""

    def __init__(self, view: AdmissionView, queues: Iterable[Queue]) -> None:
        """Lay queues over a view."""
        self.complete = view.complete
        self._view = view
        self._extra = Snapshot(queues)

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
