"""A cache of all objects of one kind: what readers look up, by name or index, and subscribers follow.

A `reflector` keeps it current. An object that cannot be decoded, or at which a filter, an index or a subscriber raises,
is set aside (see `set_aside`) and tried again. If a subscriber raised, the others and the cache have the object
nevertheless; otherwise its previous state is kept.

A late subscriber gets existing objects in slices (see `slices`) while the watch continues.
"""

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from pumice.api.kinds import Kind
from pumice.api.meta import version_number
from pumice.cluster.client import Client
from pumice.cluster.clock import Backoff, Clock
from pumice.cluster.events import Reference
from pumice.cluster.reading import ObjectReader, Read, Unreadable
from pumice.cluster.reflector import Reflector
from pumice.cluster.set_aside import ObjectFaults, RetryTimers
from pumice.cluster.slices import in_slices
from pumice.cluster.subscribers import Key, Subscriber, Subscribers, Subscription

T = TypeVar("T")

_PLACES = ("decoder", "filter", "index", "subscriber")
"""Where an object may be set aside, in metrics and events."""


class Index(Generic[T]):
    """Secondary keys of a cache: maps keys that are computed from objects to the identities of these objects."""

    def __init__(self, keys: Callable[[T], Iterable[Hashable]]) -> None:
        """Create an empty index.

        Args:
            keys: Computes the keys of an object: none, one or several.
        """
        self._keys = keys
        # Dicts instead of sets: they keep the order of arrival, so that results are the same twice.
        self._filed: dict[Hashable, dict[tuple[str, str], None]] = {}
        self._under: dict[tuple[str, str], tuple[Hashable, ...]] = {}

    def keys_of(self, obj: T) -> tuple[Hashable, ...]:
        """The keys of an object, each once. Whatever the function raises is raised here, and nothing has changed."""
        return tuple(dict.fromkeys(self._keys(obj)))

    def put(self, identity: tuple[str, str], keys: tuple[Hashable, ...]) -> None:
        """Add an object with its keys, or update them after a change."""
        if self._under.get(identity) == keys:
            return
        self.remove(identity)
        self._under[identity] = keys
        for key in keys:
            self._filed.setdefault(key, {})[identity] = None

    def remove(self, identity: tuple[str, str]) -> None:
        """Remove an object."""
        for key in self._under.pop(identity, ()):
            filed = self._filed[key]
            del filed[identity]
            if not filed:
                del self._filed[key]

    def keys(self) -> list[Any]:
        """The keys under which something is filed, in the order in which they came up."""
        return list(self._filed)

    def find(self, key: Hashable) -> list[tuple[str, str]]:
        """Identities of the objects with a key."""
        return list(self._filed.get(key, ()))


class WatchCache(Generic[T]):
    """All objects of one kind (in one namespace, matching selectors), as structs.

    Attributes:
        kind: Kind of the objects.
        faults: Reports objects that are set aside.
        reflector: Lists and watches the kind.
        synced: Set once the first list is stored and the subscribers have it.
        settled: Cleared while a list is being added, when some objects are older than the list.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind,
        type: type[T],  # noqa: A002 - the word that msgspec's decoders use
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        clock: Clock | None = None,
        backoff: Backoff | None = None,
        optional: bool = False,
        keep: Callable[[T], bool] | None = None,
        trim: Callable[[T], None] | None = None,
    ) -> None:
        """Create a cache; nothing is read before `run`.

        Args:
            client: Session with the API server.
            kind: What to watch.
            type: msgspec struct (or `dict`) into which objects are decoded.
            namespace: Only this namespace; all when None.
            label_selector: Only objects with these labels.
            field_selector: Only objects with these fields.
            clock: Measures `age` and waits between attempts.
            backoff: Delays between attempts.
            optional: Whether the server may lack the kind; the cache then tries again at intervals.
            keep: Whether an object is kept; all are if None.
            trim: Drops the parts of a new object that nothing reads.
        """
        self.kind = kind
        self.faults = ObjectFaults()
        self.reflector = Reflector(
            client.collection(kind, namespace, label_selector, field_selector),
            self,
            clock=clock,
            backoff=backoff,
            optional=optional,
        )
        self.synced, self.settled = self.reflector.synced, self.reflector.settled
        self._keep = keep
        self._reader = ObjectReader(type, trim)
        self._objects: dict[Key, T] = {}
        self._versions: dict[Key, str] = {}
        self._indexes: dict[str, Index[T]] = {}
        self._subscribers: Subscribers[T] = Subscribers(self._subscriber_failed)
        self._pending: dict[Key, tuple[str, Read[T]]] = {}
        """States that could not be taken in, with their versions."""
        self._retries: RetryTimers[Key] = RetryTimers(self._try_again)

    async def run(self) -> None:
        """Keep the cache current until cancelled."""
        try:
            await self.reflector.run()
        finally:
            self._retries.close()

    # Reading

    def get(self, name: str, namespace: str = "") -> T | None:
        """One object, or None."""
        return self._objects.get((namespace, name))

    def named(self, key: str) -> T | None:
        """One object by `namespace/name`, or None."""
        namespace, _, name = key.partition("/")
        return self.get(name, namespace)

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
        """Report every change to a callback; existing objects are reported immediately, as added.

        Callbacks run inside the cache's task, one after the other: they must be quick. One that raises at an object is
        called again for it after a pause, or when it changes, with `old` as it was before the failure: it must bear that
        it had done a part of its work. If there may be many objects, use `replay`.

        Returns:
            A function that ends the subscription.
        """
        subscription = self._subscribers.add(callback, self._objects)
        for key in list(subscription.unreported):
            self._report(subscription, key)
        return partial(self._subscribers.remove, subscription)

    async def replay(self, callback: Subscriber[T]) -> Callable[[], None]:
        """Subscribe, and wait until all existing objects have been reported, in slices.

        Changes are reported meanwhile. The first report of an object is always that it was added.

        Returns:
            A function that ends the subscription.
        """
        subscription = self._subscribers.add(callback, self._objects)
        try:
            async for key in in_slices(list(subscription.unreported)):
                self._report(subscription, key)
        except BaseException:
            self._subscribers.remove(subscription)
            raise
        return partial(self._subscribers.remove, subscription)

    def _report(self, subscription: Subscription[T], key: Key) -> None:
        if key in subscription.unreported:
            self._subscribers.report(subscription, key, self._objects[key])
            self._settle(key)

    # What the reflector does

    def known(self) -> Iterable[Key]:
        """The keys of all objects, also of those that could not be taken in."""
        return dict.fromkeys((*self._objects, *self._pending))

    def has(self, key: Key, version: str) -> bool:
        """True if an object was taken in at a version."""
        return self._versions.get(key) == version and key not in self._pending

    def forget_versions(self) -> None:
        """Take each object in again, although its version is the same."""
        self._versions.clear()

    def read(self, raw: msgspec.Raw) -> Read[T]:
        """Decode an object; an error is returned, not raised."""
        return self._reader.read(raw)

    def drops(self, read: Read[T]) -> bool:
        """True if an object is not to be kept. One that is set aside because of it counts as kept."""
        try:
            return self._keep is not None and not (isinstance(read, Unreadable) or self._keep(read))
        except Exception:
            return False  # reported when it is put

    def put(self, key: Key, version: str, read: Read[T]) -> None:
        """Take a state of an object in, or set the object aside."""
        place = "decoder"
        try:
            new = _readable(read)
            place = "filter"
            if self._keep is not None and not self._keep(new):
                self.remove(key)
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
        self._subscribers.tell(key, old, new)
        self._settle(key)

    def remove(self, key: Key) -> None:
        """Remove an object, if there is one."""
        self._pending.pop(key, None)
        self._versions.pop(key, None)
        old = self._objects.pop(key, None)
        for index in self._indexes.values():
            index.remove(key)
        self.faults.gone(self.kind, key[1], key[0])
        if old is not None:
            self._subscribers.tell(key, old, None)
        self._settle(key)
        if self._reader.parts:
            del old
            self._reader.parts.sweep()

    # Objects that are set aside

    @property
    def set_aside(self) -> int:
        """How many objects are set aside."""
        return len(self._retries)

    def _set_aside(self, key: Key, place: str, error: Exception, obj: T | None) -> None:
        delay = self._retries.fail(key)
        self.faults.failed(self._reference(key, obj), place, error, delay)

    def _subscriber_failed(self, key: Key, error: Exception, obj: T | None) -> None:
        self._set_aside(key, "subscriber", error, obj)

    def _try_again(self, key: Key) -> None:
        if (pending := self._pending.get(key)) is not None:
            version, read = pending
            again = self._reader.read(read.raw) if isinstance(read, Unreadable) else read
            self.put(key, version, again)
        self._subscribers.try_again(key, self._objects.get(key))
        self._settle(key)

    def _settle(self, key: Key) -> None:
        """End the retries of an object at which nothing fails any more."""
        if key not in self._retries or key in self._pending or self._subscribers.is_behind(key):
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


async def wait_synced(*caches: WatchCache[Any]) -> None:
    """Wait until all caches have added their first list."""
    for cache in caches:
        await cache.synced.wait()


async def wait_settled(*caches: WatchCache[Any]) -> None:
    """Wait until none of the caches is adding a list."""
    while not all(cache.settled.is_set() for cache in caches):
        for cache in caches:
            await cache.settled.wait()


def _readable(read: Read[T]) -> T:
    if isinstance(read, Unreadable):
        raise read.error
    return read
