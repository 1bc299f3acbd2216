"""The cluster as rules see it: get an object, list a kind, and whether a missing object is known not to exist.

Rules do not use the network: the server has watch caches, offline verbs and tests have a `Snapshot` of manifests,
`pumice dev` has its store, an `Overlay` adds objects that were just read to any of them, and `Without` leaves out the queue that is
checked. Each of these implements get and list; the base class has the methods for rules. A missing object may not exist or may be unknown; `knows`
distinguishes these for each kind, so that no rule reports an object as missing without knowing it.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from pumice.api import keys
from pumice.api.kinds import (
    HYPER_NODE,
    NAMESPACE,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    Kind,
    of_object,
)
from pumice.api.meta import ApiStruct, ObjectMeta
from pumice.api.nodes import Namespace, PriorityClass, default_class, with_system_classes
from pumice.api.queues import Queue
from pumice.api.raw import object_in
from pumice.plugins.other_owners import OWNERS, Owner, OwnerKey

T = TypeVar("T")


class _GangSpec(ApiStruct, frozen=True, gc=False):
    queue: str = ""


class _GangStatus(ApiStruct, frozen=True, gc=False):
    phase: str = ""


class PodGroupSummary(ApiStruct, frozen=True, gc=False):
    """A PodGroup: its queue, and whether it is active.

    A cluster may have tens of thousands of PodGroups, so only these fields are decoded and kept.
    """

    spec: _GangSpec = _GangSpec()
    status: _GangStatus = _GangStatus()

    @property
    def active_in(self) -> str | None:
        """The queue in which a PodGroup is active; None for a completed one."""
        return None if self.status.phase == "Completed" else self.spec.queue or keys.DEFAULT_QUEUE


class _Tier(ApiStruct, frozen=True, gc=False):
    tier: int = 0
    tier_name: str = ""


class HyperNodeSummary(ApiStruct, frozen=True, gc=False):
    """A HyperNode: its tier of the network."""

    spec: _Tier = _Tier()


READ_AS: Mapping[Kind, type[ApiStruct]] = {
    QUEUE: Queue,
    NAMESPACE: Namespace,
    PRIORITY_CLASS: PriorityClass,
    POD_GROUP: PodGroupSummary,
    HYPER_NODE: HyperNodeSummary,
    **OWNERS,
}
"""The kinds that rules read, and the fields of each."""


class AdmissionView(ABC):
    """The cluster as rules see it. No method may block."""

    __slots__ = ()

    @abstractmethod
    def get(self, kind: Kind, name: str, namespace: str = "") -> Any | None:
        """An object of a kind in `READ_AS`, or None if it does not exist."""

    @abstractmethod
    def list(self, kind: Kind) -> Collection[Any]:
        """All objects of a kind in `READ_AS`."""

    @abstractmethod
    def knows(self, kind: Kind) -> bool:
        """True if an object of this kind that is missing here does not exist."""

    def queue(self, name: str) -> Queue | None:
        """A queue, or None if it does not exist."""
        return self.get(QUEUE, name)

    def queues(self) -> Collection[Queue]:
        """All queues."""
        return self.list(QUEUE)

    def children(self, name: str) -> Sequence[Queue]:
        """Queues whose `spec.parent` is this name; views with many queues have an index."""
        return [queue for queue in self.queues() if queue.spec.parent == name]

    def derived(self, make: Callable[["AdmissionView", str], T], name: str) -> T:
        """The result of a function for this view and a name; views that never change call it once.

        The queue that is checked may be among what the function sees, as in `Without.children`.
        """
        return make(self, name)

    def namespace(self, name: str) -> Namespace | None:
        """A namespace, or None if it does not exist."""
        return self.get(NAMESPACE, name)

    def priority_class(self, name: str) -> PriorityClass | None:
        """A priority class, or None if it does not exist."""
        return self.get(PRIORITY_CLASS, name)

    def priority_classes(self) -> Collection[PriorityClass]:
        """All priority classes."""
        return self.list(PRIORITY_CLASS)

    def default_priority_class(self) -> PriorityClass | None:
        """The class of pods that name none."""
        return default_class(self.priority_classes())

    def pod_groups_in(self, queue: str) -> int:
        """How many PodGroups of a queue are not completed."""
        return sum(gang.active_in == queue for gang in self.list(POD_GROUP))

    def tiers(self) -> Collection[int]:
        """Numbers of network tiers of HyperNodes."""
        return {each.spec.tier for each in self.list(HYPER_NODE)}

    def tier_names(self) -> Collection[str]:
        """Names of network tiers of HyperNodes."""
        return {each.spec.tier_name for each in self.list(HYPER_NODE) if each.spec.tier_name}

    def owner(self, key: OwnerKey) -> Owner | None:
        """An owner of pods that plugins wire, or None when there is none of this name."""
        kind, namespace, name = key
        return self.get(kind, name, namespace)


_BUILTIN_QUEUES = (keys.ROOT_QUEUE, keys.DEFAULT_QUEUE)
_BUILTIN_CLASSES = {each.metadata.name: each for each in with_system_classes(())}
_Named = Mapping[tuple[str, str], Any]
"""Objects by namespace and name."""


class Snapshot(AdmissionView):
    """A view of objects in memory; nothing changes it once it is made."""

    def __init__(
        self,
        queues: Iterable[Queue] = (),
        others: Mapping[Kind, _Named] | None = None,
        *,
        complete: bool = True,
    ) -> None:
        """Make a view; of two queues of one name the later counts.

        If `complete`, an object that is not given does not exist. Priority classes and HyperNodes are known when any is
        given: descriptions of a cluster in files often leave them out.
        """
        named = {("", queue.metadata.name): queue for queue in queues}
        self._objects: dict[Kind, _Named] = {**(others or {}), QUEUE: named}
        self._complete = complete
        self._children: dict[str, list[Queue]] = {}
        for queue in named.values():
            self._children.setdefault(queue.spec.parent, []).append(queue)
        self._derived: dict[tuple[object, str], Any] = {}
        self._active: Counter[str | None] | None = None

    @classmethod
    def of(cls, manifests: Iterable[Mapping[str, Any]], *, complete: bool = True) -> "Snapshot":
        """Make a view of raw manifests; of two of one name the later counts, and kinds that no rule asks for are ignored.

        The queues `root` and `default`, which every cluster has, are there without being given.

        Raises:
            msgspec.ValidationError: A field of a manifest has the wrong type.
        """
        found: dict[Kind, dict[tuple[str, str], Any]] = {
            QUEUE: {("", name): Queue(metadata=ObjectMeta(name=name)) for name in _BUILTIN_QUEUES}
        }
        for manifest in manifests:
            kind = of_object(dict(manifest))
            if kind is not None and kind in READ_AS:
                read = msgspec.convert(manifest, READ_AS[kind])
                found.setdefault(kind, {})[_identity(kind, manifest)] = read
        return cls(found.pop(QUEUE).values(), found, complete=complete)

    def get(self, kind: Kind, name: str, namespace: str = "") -> Any | None:
        """An object, or None; the priority classes of Kubernetes itself are always there."""
        found = self._objects.get(kind, {}).get((namespace, name))
        return _BUILTIN_CLASSES.get(name) if found is None and kind == PRIORITY_CLASS else found

    def list(self, kind: Kind) -> Collection[Any]:
        """All objects of a kind that were given."""
        return self._objects.get(kind, {}).values()

    def knows(self, kind: Kind) -> bool:
        """True if an object of this kind that is missing here does not exist."""
        often_left_out = kind in (PRIORITY_CLASS, HYPER_NODE)
        return bool(self._objects.get(kind)) if often_left_out else self._complete

    def children(self, name: str) -> Sequence[Queue]:
        """Queues whose `spec.parent` is this name."""
        return self._children.get(name, ())

    def derived(self, make: Callable[[AdmissionView, str], T], name: str) -> T:
        """The result of a function for this view and a name, computed once."""
        key = make, name
        if key not in self._derived:
            self._derived[key] = make(self, name)
        found: T = self._derived[key]
        return found

    def pod_groups_in(self, queue: str) -> int:
        """How many PodGroups of a queue are not completed."""
        if self._active is None:
            self._active = Counter(gang.active_in for gang in self.list(POD_GROUP))
        return self._active[queue]


def _identity(kind: Kind, manifest: Mapping[str, Any]) -> tuple[str, str]:
    found = object_in(manifest, "metadata")
    namespace = str(found.get("namespace", "")) if kind.namespaced else ""
    return namespace, str(found.get("name", ""))


class Overlay(AdmissionView):
    """A view with a few objects that it does not know yet, fetched a moment ago."""

    def __init__(self, view: AdmissionView, laid: Mapping[OwnerKey, Any]) -> None:
        """Lay queues and owners of pods over a view, each by its kind, namespace and name."""
        self._view = view
        self._laid = laid
        self._queues: dict[str, Queue] = {
            key[2]: each for key, each in laid.items() if key[0] == QUEUE
        }

    def get(self, kind: Kind, name: str, namespace: str = "") -> Any | None:
        """The object that was laid over, or that of the view below."""
        found = self._laid.get((kind, namespace, name))
        return self._view.get(kind, name, namespace) if found is None else found

    def list(self, kind: Kind) -> Collection[Any]:
        """All objects of a kind, those that were laid over in the place of others of their names."""
        laid = {key[1:]: each for key, each in self._laid.items() if key[0] == kind}
        if not laid:
            return self._view.list(kind)
        known = {
            (each.metadata.namespace, each.metadata.name): each for each in self._view.list(kind)
        }
        return (known | laid).values()

    def knows(self, kind: Kind) -> bool:
        """As the view below says."""
        return self._view.knows(kind)

    def children(self, name: str) -> Sequence[Queue]:
        """Queues whose `spec.parent` is this name."""
        below = self._view.children(name)
        known = [each for each in below if each.metadata.name not in self._queues]
        return [*known, *(each for each in self._queues.values() if each.spec.parent == name)]


class Without(AdmissionView):
    """A view in which the queue that is checked is as it is stored, or does not exist; all others are as in the view below.

    It costs nothing to make, so that a file of many queues is checked with one view below.
    """

    def __init__(self, view: AdmissionView, name: str, stored: Queue | None) -> None:
        """Replace one queue of a view."""
        self._view = view
        self._name = name
        self._stored = stored

    def get(self, kind: Kind, name: str, namespace: str = "") -> Any | None:
        """An object of the view below; of the queue that is checked the stored one."""
        is_checked = kind == QUEUE and name == self._name
        return self._stored if is_checked else self._view.get(kind, name, namespace)

    def list(self, kind: Kind) -> Collection[Any]:
        """All objects of a kind, with the stored version of the queue that is checked."""
        found = self._view.list(kind)
        if kind != QUEUE:
            return found
        others = [each for each in found if each.metadata.name != self._name]
        return others if self._stored is None else [*others, self._stored]

    def knows(self, kind: Kind) -> bool:
        """As the view below says."""
        return self._view.knows(kind)

    def children(self, name: str) -> Sequence[Queue]:
        """As in the view below, also the queue that is checked: its rules never count it as its own sibling."""
        return self._view.children(name)

    def derived(self, make: Callable[[AdmissionView, str], T], name: str) -> T:
        """As in the view below."""
        return self._view.derived(make, name)

    def pod_groups_in(self, queue: str) -> int:
        """How many PodGroups of a queue are not completed."""
        return self._view.pod_groups_in(queue)
