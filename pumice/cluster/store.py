"""The objects of one kind that a watch cache knows, found by name or index, and the subscribers that follow them.

Objects are decoded once, straight from the bytes into `type`. An object that cannot be decoded, or at which a filter,
an index or a subscriber raises, is set aside (see `set_aside`) and tried again. If a subscriber raised, the others and
the store have the object nevertheless; otherwise its previous state is kept.

A late subscriber gets existing objects in slices (see `slices`) while the watch continues. An object that changes
before it was reported is reported immediately in its new state, and only once.
"""

import enum
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from pumice.api.kinds import Kind
from pumice.api.meta import version_number
from pumice.cluster.decoding import decode
from pumice.cluster.events import Reference
from pumice.cluster.index import Index
from pumice.cluster.set_aside import ObjectFaults, RetryTimers
from pumice.cluster.sharing import LARGE, SharedParts
from pumice.cluster.slices import in_slices

__all__ = [
    "Change",
    "Key",
    "ObjectStore",
    "Read",
    "Subscriber",
    "Unreadable",
    "identity_of",
    "is_from_backup",
]

T = TypeVar("T")

_PLACES = ("decoder", "filter", "index", "subscriber")
"""Where an object may be set aside, in metrics and events."""


class Change(enum.StrEnum):
    """Type of a change."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


Subscriber = Callable[[Change, T | None, T | None], None]
"""Called as `(change, old, new)`: `old` is None for ADDED, `new` is None for DELETED."""

Key = tuple[str, str]
"""Namespace (empty for cluster-wide kinds) and name."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that cannot be decoded.

    Attributes:
        raw: Its JSON, for further tries.
        error: Why.
    """

    raw: bytes
    error: Exception


Read: TypeAlias = T | Unreadable
"""An object, or the error of reading it."""


@dataclass(slots=True, eq=False)
class _Subscription(Generic[T]):
    """A subscriber.

    Attributes:
        callback: Called with every change.
        unreported: Objects that existed at the start and have not been reported yet.
        behind: Objects at whose last report it raised, as it had taken them in before; None for not at all. What it did of the
            failed report is not known, so the next report is from that state to the present one.
    """

    callback: Subscriber[T]
    unreported: dict[Key, None]
    behind: dict[Key, T | None] = field(default_factory=dict)


class ObjectStore(Generic[T]):
    """Objects by namespace and name, their indexes and subscribers.

    Attributes:
        kind: Kind of the objects.
        faults: Reports objects that are set aside.
    """

    def __init__(
        self,
        kind: Kind,
        type: type[T],  # noqa: A002 - the word that msgspec's decoders use
        keep: Callable[[T], bool] | None = None,
        trim: Callable[[T], None] | None = None,
    ) -> None:
        """Create an empty store.

        Args:
            kind: Kind of the objects.
            type: msgspec struct (or `dict`) into which they are decoded.
            keep: Whether an object is kept; all are when None.
            trim: Drops the parts of a new object that nothing reads.
        """
        self.kind = kind
        self.faults = ObjectFaults()
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(type)
        self._keep = keep
        self._trim = trim
        self._objects: dict[Key, T] = {}
        self._versions: dict[Key, str] = {}
        self._indexes: dict[str, Index[T]] = {}
        self._subscriptions: list[_Subscription[T]] = []
        self._pending: dict[Key, tuple[str, Read[T]]] = {}
        """States that could not be taken in, with their versions."""
        self._retries: RetryTimers[Key] = RetryTimers(self._try_again)
        self._shared = SharedParts()

    # Reading

    def get(self, name: str, namespace: str = "") -> T | None:
        """One object, or None."""
        return self._objects.get((namespace, name))

    def values(self) -> Iterable[T]:
        """All objects in the order of their arrival. Do not hold it over an await."""
        return self._objects.values()

    def identities(self) -> Iterable[Key]:
        """The keys of all objects, in the order of `values`."""
        return self._objects.keys()

    def __len__(self) -> int:
        return len(self._objects)

    def reference(self, name: str, namespace: str = "") -> Reference:
        """What events about an object refer to, whether it is known or not."""
        return self._reference((namespace, name), self._objects.get((namespace, name)))

    def index(self, name: str, keys: Callable[[T], Iterable[Hashable]]) -> None:
        """Add an index with the keys that a function computes from objects."""
        index = self._indexes[name] = Index(keys)
        for key, obj in self._objects.items():
            index.put(key, index.keys_of(obj))

    def indexed(self, name: str, key: Hashable) -> list[T]:
        """Objects with a key of an index, in the order of their arrival."""
        return [self._objects[each] for each in self._indexes[name].find(key)]

    def index_keys(self, name: str) -> list[Any]:
        """The keys of an object in an index."""
        return self._indexes[name].keys()

    def subscribe(self, callback: Subscriber[T]) -> Callable[[], None]:
        """Report every change to a callback; existing objects are reported immediately, as ADDED.

        Callbacks run inside the cache's task, one after the other: they must be quick. One that raises at an object is
        called again for it after a pause, or when it changes, with `old` as it was before the failure: it must bear that
        it had done a part of its work. If there may be many objects, use `replay`.

        Returns:
            A function that ends the subscription.
        """
        subscription, end = self._enter(callback)
        for key in list(subscription.unreported):
            self._report_known(subscription, key)
        return end

    async def replay(self, callback: Subscriber[T]) -> Callable[[], None]:
        """Subscribe, and wait until all existing objects have been reported, in slices.

        Changes are reported meanwhile. The first report of an object is always ADDED.

        Returns:
            A function that ends the subscription.
        """
        subscription, end = self._enter(callback)
        try:
            async for key in in_slices(list(subscription.unreported)):
                self._report_known(subscription, key)
        except BaseException:
            end()
            raise
        return end

    def _enter(self, callback: Subscriber[T]) -> tuple[_Subscription[T], Callable[[], None]]:
        subscription: _Subscription[T] = _Subscription(callback, dict.fromkeys(self._objects))
        self._subscriptions.append(subscription)
        return subscription, lambda: self._subscriptions.remove(subscription)

    def _report_known(self, subscription: _Subscription[T], key: Key) -> None:
        if key in subscription.unreported:
            del subscription.unreported[key]
            self._tell(subscription, key, None, self._objects[key])
            self._settle(key)

    # Changes

    def _read(self, raw: msgspec.Raw | bytes) -> Read[T]:
        """Decode an object; an error is returned, not raised."""
        try:
            read = decode(self._decoder, raw)
            if isinstance(read, dict) and isinstance(meta := read.get("metadata"), dict):
                meta.pop("managedFields", None)  # never read, and often larger than the rest
            if self._trim is not None:
                self._trim(read)
            return read if len(raw) < LARGE else self._shared.share(read)
        except Exception as error:
            # Its own bytes, not those of the whole page; without the traceback, which would keep them.
            return Unreadable(bytes(raw), error.with_traceback(None))

    def _is_dropped(self, read: Read[T]) -> bool:
        """Whether an object is not to be kept. One that is set aside because of it counts as kept."""
        try:
            return self._keep is not None and not (isinstance(read, Unreadable) or self._keep(read))
        except Exception:
            return False  # reported when it is put

    def _put(self, key: Key, version: str, read: Read[T]) -> None:
        """Take a state of an object in, or set the object aside."""
        place = "decoder"
        try:
            new = _readable(read)
            place = "filter"
            if self._keep is not None and not self._keep(new):
                self._remove(key)
                return
            place = "index"
            filed = [(index, index.keys_of(new)) for index in self._indexes.values()]
        except Exception as error:
            self._pending[key] = version, read
            about = self._objects.get(key) if isinstance(read, Unreadable) else read
            self._set_aside(key, place, error, about)
            return
        self._pending.pop(key, None)
        old = self._objects.get(key)
        self._objects[key] = new
        self._versions[key] = version
        for index, keys in filed:
            index.put(key, keys)
        self._tell_all(key, old, new)
        self._settle(key)

    def _remove(self, key: Key) -> None:
        self._pending.pop(key, None)
        self._versions.pop(key, None)
        old = self._objects.pop(key, None)
        for index in self._indexes.values():
            index.remove(key)
        self.faults.gone(self.kind, key[1], key[0])
        if old is not None:
            self._tell_all(key, old, None)
        self._settle(key)
        if self._shared:
            del old
            self._shared.sweep()

    def _tell_all(self, key: Key, old: T | None, new: T | None) -> None:
        for each in tuple(self._subscriptions):
            if key not in each.unreported:
                self._tell(each, key, old, new)
            elif new is not None:
                self._report_known(each, key)
            else:
                del each.unreported[key]

    def _tell(self, subscription: _Subscription[T], key: Key, old: T | None, new: T | None) -> None:
        """Report a change, from what the subscriber took in last."""
        behind = subscription.behind
        before = behind.get(key, old)
        told = old if before is None and new is None else before
        if told is None and new is None:
            behind.pop(key, None)
            return
        change = (
            Change.DELETED if new is None else Change.ADDED if told is None else Change.MODIFIED
        )
        try:
            subscription.callback(change, told, new)
        except Exception as error:
            # A deletion is told again as one of what was to be deleted.
            behind[key] = told if new is None else before
            self._set_aside(key, "subscriber", error, new or told)
        else:
            behind.pop(key, None)

    # Objects that are set aside

    @property
    def set_aside(self) -> int:
        """How many objects are set aside."""
        return len(self._retries)

    def _set_aside(self, key: Key, place: str, error: Exception, obj: T | None) -> None:
        delay = self._retries.fail(key)
        self.faults.failed(self._reference(key, obj), place, error, delay)

    def _try_again(self, key: Key) -> None:
        if (pending := self._pending.get(key)) is not None:
            version, read = pending
            self._put(key, version, self._read(read.raw) if isinstance(read, Unreadable) else read)
        for each in tuple(self._subscriptions):
            if key in each.behind:
                self._tell(each, key, each.behind[key], self._objects.get(key))
        self._settle(key)

    def _settle(self, key: Key) -> None:
        """End the retries of an object at which nothing fails any more."""
        if key not in self._retries or key in self._pending:
            return
        if any(key in each.behind for each in self._subscriptions):
            return
        self._retries.drop(key)
        about = self._reference(key, None)
        for place in _PLACES:
            self.faults.passed(about, place, heals=key in self._objects)

    def _reference(self, key: Key, obj: T | None) -> Reference:
        uid, version, _ = identity_of(obj)
        return Reference(self.kind, key[1], key[0], uid, version)


def identity_of(obj: Any) -> tuple[str, str, bool]:
    """Uid, resourceVersion, and whether it is being deleted, of a raw object or of a struct, as far as it has them."""
    if isinstance(obj, dict):
        meta = obj.get("metadata") or {}
        return meta.get("uid", ""), meta.get("resourceVersion", ""), "deletionTimestamp" in meta
    meta = getattr(obj, "metadata", None)
    leaving = getattr(meta, "deletion_timestamp", None) is not None
    return getattr(meta, "uid", ""), getattr(meta, "resource_version", ""), leaving


def is_from_backup(old: Any, new: Any) -> bool:
    """True if a reported change leads to a version that is not newer, although the object is the same one.

    Its server was restored from a backup. Nothing holds any more that was concluded from later versions of the object.

    Args:
        old: The object, raw or as a struct.
        new: The object after the change.
    """
    (uid, before, _), (same, after, _) = identity_of(old), identity_of(new)
    return uid == same and 0 < version_number(after) <= version_number(before)


def _readable(read: Read[T]) -> T:
    if isinstance(read, Unreadable):
        raise read.error
    return read
