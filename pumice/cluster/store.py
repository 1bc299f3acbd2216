"""The objects of one kind that a watch cache knows, found by name or index, and the subscribers that follow them.

Objects are decoded once, straight from the bytes into `type`. An object that cannot be decoded is logged and counted,
and its previous state is kept.

A late subscriber gets existing objects in slices (see `slices`) while the watch continues. An object that changes
before it was reported is reported immediately in its new state, and only once.
"""

import enum
import logging
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from pumice.api.kinds import Kind
from pumice.cluster.index import Index
from pumice.cluster.nesting import decode
from pumice.cluster.sharing import LARGE, SharedParts
from pumice.cluster.slices import in_slices

__all__ = ["Change", "Key", "ObjectStore", "Read", "Subscriber"]

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Change(enum.StrEnum):
    """Type of a change."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


Subscriber = Callable[[Change, T | None, T | None], None]
"""Called as `(change, old, new)`: `old` is None for ADDED, `new` is None for DELETED."""

Key = tuple[str, str]
"""Namespace (empty for cluster-wide kinds) and name."""


Read: TypeAlias = T | msgspec.MsgspecError
"""An object, or the error of reading it."""


@dataclass(slots=True, eq=False)
class _Subscription(Generic[T]):
    """A subscriber.

    Attributes:
        callback: Called with every change.
        unreported: Objects that existed at the start and have not been reported yet.
    """

    callback: Subscriber[T]
    unreported: dict[Key, None]


class ObjectStore(Generic[T]):
    """Objects by namespace and name, their indexes and subscribers.

    Attributes:
        kind: Kind of the objects.
        decode_errors: How many objects that arrived could not be decoded.
    """

    def __init__(
        self,
        kind: Kind,
        type: type[T],  # noqa: A002 - the word that msgspec's decoders use
        keep: Callable[[T], bool] | None = None,
    ) -> None:
        """Create an empty store.

        Args:
            kind: Kind of the objects.
            type: msgspec struct (or `dict`) into which they are decoded.
            keep: Whether an object is kept; all are when None.
        """
        self.kind = kind
        self.decode_errors = 0
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(type)
        self._keep = keep
        self._objects: dict[Key, T] = {}
        self._versions: dict[Key, str] = {}
        self._indexes: dict[str, Index[T]] = {}
        self._subscriptions: list[_Subscription[T]] = []
        self._undecodable: set[Key] = set()
        self._shared = SharedParts()

    # Reading

    def get(self, name: str, namespace: str = "") -> T | None:
        """One object, or None."""
        return self._objects.get((namespace, name))

    def values(self) -> Iterable[T]:
        """All objects in the order of their arrival. Do not hold it over an await."""
        return self._objects.values()

    def __len__(self) -> int:
        return len(self._objects)

    def index(self, name: str, keys: Callable[[T], Iterable[Hashable]]) -> None:
        """Add an index with the keys that a function computes from objects."""
        index = self._indexes[name] = Index(keys)
        for key, obj in self._objects.items():
            index.put(key, obj)

    def indexed(self, name: str, key: Hashable) -> list[T]:
        """Objects with a key of an index, in the order of their arrival."""
        return [self._objects[each] for each in self._indexes[name].find(key)]

    def index_keys(self, name: str) -> list[Any]:
        """The keys of an object in an index."""
        return self._indexes[name].keys()

    def subscribe(self, callback: Subscriber[T]) -> Callable[[], None]:
        """Report every change to a callback; existing objects are reported immediately, as ADDED.

        Callbacks run inside the cache's task, one after the other: they must be quick. One that raises is logged and
        stays subscribed. If there may be many objects, use `replay`.

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
            self._tell(subscription.callback, Change.ADDED, None, self._objects[key])

    # Changes

    def _read(self, raw: msgspec.Raw) -> Read[T]:
        """Decode an object; an error is returned, not raised."""
        try:
            read = decode(self._decoder, raw)
        except msgspec.MsgspecError as error:
            return error.with_traceback(None)  # which would keep the bytes
        if isinstance(read, dict) and isinstance(meta := read.get("metadata"), dict):
            meta.pop("managedFields", None)  # never read, and often larger than the rest
        return read if len(raw) < LARGE else self._shared.share(read)

    def _belongs(self, read: Read[T]) -> bool:
        return self._keep is None or isinstance(read, msgspec.MsgspecError) or self._keep(read)

    def _put(self, key: Key, version: str, new: Read[T]) -> None:
        if isinstance(new, msgspec.MsgspecError):
            self._report_undecodable(key, new)
            return
        if not self._belongs(new):
            self._remove(key)
            return
        self._undecodable.discard(key)
        old = self._objects.get(key)
        self._objects[key] = new
        self._versions[key] = version
        for index in self._indexes.values():
            index.put(key, new)
        self._tell_all(key, Change.ADDED if old is None else Change.MODIFIED, old, new)

    def _remove(self, key: Key) -> None:
        self._undecodable.discard(key)
        self._versions.pop(key, None)
        old = self._objects.pop(key, None)
        for index in self._indexes.values():
            index.remove(key)
        if old is not None:
            self._tell_all(key, Change.DELETED, old, None)
        if self._shared:
            del old
            self._shared.sweep()

    def _report_undecodable(self, key: Key, error: msgspec.MsgspecError) -> None:
        self.decode_errors += 1
        if key not in self._undecodable:
            self._undecodable.add(key)
            name = "/".join(part for part in key if part)
            logger.error("%s %s cannot be read and is skipped: %s", self.kind.kind, name, error)

    def _tell_all(self, key: Key, change: Change, old: T | None, new: T | None) -> None:
        for each in tuple(self._subscriptions):
            if key not in each.unreported:
                self._tell(each.callback, change, old, new)
            elif new is not None:
                self._report_known(each, key)
            else:
                del each.unreported[key]

    def _tell(self, callback: Subscriber[T], change: Change, old: T | None, new: T | None) -> None:
        try:
            callback(change, old, new)
        except Exception:
            logger.exception("a subscriber of %s failed", self.kind.resource)
