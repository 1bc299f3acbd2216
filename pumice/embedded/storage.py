"""Objects, their versions and their changes, in memory.

One growing integer numbers all writes. Each resource has a table of current objects and a log of its latest changes; a
watch is a cursor into that log, so that fan-out costs one wake-up a watcher and no queue can grow without bound. A
watch that is too far behind gets 410 and lists again. Stored objects are never edited: a write stores a new object,
which may share parts with the previous one. The JSON text of a version is created once, when it is first needed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import structlog

from pumice.embedded import statuses

Obj = dict[str, Any]
ResourceKey = tuple[str, str]
"""Group and plural: versions of one resource share their objects."""
ObjectKey = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name: the order of lists."""
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]

encode = msgspec.json.Encoder().encode

_log = structlog.get_logger(__name__)


class Version:
    """One state of one object; its content must not be edited."""

    __slots__ = ("_raw", "obj", "revision")

    def __init__(self, obj: Obj, revision: int) -> None:
        self.obj = obj
        self.revision = revision
        self._raw: bytes | None = None

    @property
    def raw(self) -> bytes:
        """The object as JSON text."""
        if self._raw is None:
            self._raw = encode(self.obj)
        return self._raw

    def copy(self) -> Obj:
        """A private copy to edit."""
        copied: Obj = msgspec.json.decode(self.raw)
        return copied


@dataclass(slots=True, eq=False)
class StoredWrite:
    """One write: what an object became and what it was.

    For `DELETED`, `new` is the last state, carrying the version of the deletion.
    """

    resource: ResourceKey
    key: ObjectKey
    type: ChangeType
    new: Version
    old: Version | None


class Table:
    """The objects of one resource and the log of their changes."""

    def __init__(self, resource: ResourceKey, history: int, floor: int) -> None:
        self.resource = resource
        self.objects: dict[ObjectKey, Version] = {}
        self.log: list[StoredWrite] = []
        self.start = 0
        """Position of `log[0]` in the endless log."""
        self.floor = floor
        """Changes up to this version are forgotten."""
        self.watchers: set[Callable[[], None]] = set()
        self._history = history

    def record(self, change: StoredWrite) -> None:
        """Append to the log, forget its oldest half when it is full, wake the watchers."""
        self.log.append(change)
        if len(self.log) > 2 * self._history:
            dropped = self.log[: -self._history]
            del self.log[: -self._history]
            self.start += len(dropped)
            self.floor = dropped[-1].new.revision
        for wake in tuple(self.watchers):
            wake()

    @property
    def end(self) -> int:
        """Position after the newest change."""
        return self.start + len(self.log)

    def position(self, revision: int) -> int:
        """Where a watch from that version begins in the log.

        Raises:
            ApiStatusError: 410 when the log does not reach back so far.
        """
        if revision < self.floor:
            raise statuses.too_old(revision, self.floor)
        low, high = 0, len(self.log)
        while low < high:
            middle = (low + high) // 2
            if self.log[middle].new.revision <= revision:
                low = middle + 1
            else:
                high = middle
        return self.start + low

    def since(self, position: int) -> list[StoredWrite]:
        """The changes from a position on.

        Raises:
            ApiStatusError: 410 when some of them are forgotten.
        """
        if position < self.start:
            raise statuses.too_old(0, self.floor)
        return self.log[position - self.start :]

    def items(self, namespace: str | None = None) -> list[Version]:
        """Current objects in the order of lists."""
        return _ordered(self.objects, namespace)

    def items_at(self, revision: int, namespace: str | None = None) -> list[Version]:
        """Objects as they were at an earlier version.

        Raises:
            ApiStatusError: 410 when the log does not reach back so far.
        """
        newest = self.log[-1].new.revision if self.log else self.floor
        if revision >= newest:
            return self.items(namespace)
        changes = self.since(self.position(revision))
        objects = dict(self.objects)
        for change in reversed(changes):
            if change.old is None:
                objects.pop(change.key, None)
            else:
                objects[change.key] = change.old
        return _ordered(objects, namespace)


def _ordered(objects: dict[ObjectKey, Version], namespace: str | None) -> list[Version]:
    if namespace is None:
        return [objects[key] for key in sorted(objects)]
    return [objects[key] for key in sorted(key for key in objects if key[0] == namespace)]


class Storage:
    """All tables, and the one version counter.

    Args:
        history: Changes of each resource that are remembered, at least.
    """

    def __init__(self, history: int = 20_000) -> None:
        self.revision = 1
        self.closed = False
        """Whether watches are to end."""
        self._history = history
        self._tables: dict[ResourceKey, Table] = {}
        self._listeners: list[Callable[[StoredWrite], None]] = []

    def table(self, resource: ResourceKey) -> Table:
        """The table of a resource, made on first use."""
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[resource] = Table(resource, self._history, self.revision)
        return table

    def tables(self) -> Iterator[Table]:
        """All tables that were ever used."""
        return iter(tuple(self._tables.values()))

    def close(self) -> None:
        """End all watches."""
        self.closed = True
        for table in self._tables.values():
            for wake in tuple(table.watchers):
                wake()

    def drop(self, resource: ResourceKey) -> None:
        """Forget a resource, its watchers seeing an end to it."""
        table = self._tables.pop(resource, None)
        if table is not None:
            for wake in tuple(table.watchers):
                wake()

    def listen(self, listener: Callable[[StoredWrite], None]) -> None:
        """Call a function inside every write; it must not write itself."""
        self._listeners.append(listener)

    def get(self, resource: ResourceKey, namespace: str, name: str) -> Version | None:
        """The current state of an object."""
        return self.table(resource).objects.get((namespace, name))

    def put(self, resource: ResourceKey, obj: Obj) -> Version:
        """Store a new state, taking the object over and writing its `resourceVersion`."""
        table = self.table(resource)
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        version = self._next(obj)
        old = table.objects.get(key)
        table.objects[key] = version
        self._emit(table, StoredWrite(resource, key, "MODIFIED" if old else "ADDED", version, old))
        return version

    def remove(self, resource: ResourceKey, namespace: str, name: str, last: Obj) -> Version:
        """Remove an object; `last` is what the deletion's event shows of it."""
        table = self.table(resource)
        old = table.objects.pop((namespace, name))
        version = self._next(last)
        self._emit(table, StoredWrite(resource, (namespace, name), "DELETED", version, old))
        return version

    def _next(self, obj: Obj) -> Version:
        self.revision += 1
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.revision)}
        return Version(obj, self.revision)

    def _emit(self, table: Table, change: StoredWrite) -> None:
        table.record(change)
        self._tell(change)

    def _tell(self, change: StoredWrite) -> None:
        for listener in self._listeners:
            try:
                listener(change)
            except Exception:  # the write is done, whatever follows from it
                _log.exception("a listener failed", resource=change.resource, key=change.key)
