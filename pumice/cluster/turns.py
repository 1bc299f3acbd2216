"""Keys that wait, taken in turns by namespace, so that the backlog of one namespace does not delay another.

Each namespace with waiting keys has its place in a circle. A key is taken from the namespace whose turn it is, and the
turn goes on to the next one. Keys of one namespace are taken in the order of their arrival. So before a key of a namespace
in which nothing else waits, at most one key of each other namespace is taken, however many keys these have.

`Slots` gives out a fixed number of places in this order, for requests that share an API server.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from operator import itemgetter
from typing import Generic, TypeVar

__all__ = ["Slots", "Turns", "first_part", "first_segment", "no_namespace"]

K = TypeVar("K", bound=Hashable)


def first_part(key: tuple[str, ...]) -> str:
    """The namespace of a key that is a tuple: its first element."""
    return key[0]


def first_segment(key: str) -> str:
    """The namespace of a key `namespace/name`."""
    return key.partition("/")[0]


def no_namespace(key: object) -> str:
    """The namespace of keys of cluster-scoped objects, which share the turns of one namespace."""
    del key
    return ""


class Turns(Generic[K]):
    """Waiting keys, each once, and how many of each namespace are taken and not returned."""

    def __init__(self, namespace_of: Callable[[K], str], *, most: int | None = None) -> None:
        """Start with no keys.

        Args:
            namespace_of: The namespace of a key.
            most: Maximum number of keys of one namespace that are taken and not returned; None for no limit.
        """
        self._namespace_of = namespace_of
        self._most = most
        # Ordered dictionaries: removing the first entry of a plain one takes time in proportion to what was removed before.
        self._keys: dict[str, OrderedDict[K, None]] = {}
        self._circle: OrderedDict[str, None] = OrderedDict()
        self._taken: dict[str, int] = {}
        self._size = 0

    def __len__(self) -> int:
        """Number of waiting keys."""
        return self._size

    def __contains__(self, key: K) -> bool:
        """True if a key waits."""
        return key in self._keys.get(self._namespace_of(key), ())

    def can_take(self) -> bool:
        """True if a waiting key may be taken now."""
        return bool(self._circle)

    def others(self, namespace: str) -> bool:
        """True if a waiting key of another namespace may be taken now."""
        return len(self._circle) > (namespace in self._circle)

    def add(self, key: K) -> None:
        """Add a key, behind all others of its namespace; a key that waits keeps its place."""
        namespace = self._namespace_of(key)
        keys = self._keys.setdefault(namespace, OrderedDict())
        if key not in keys:
            keys[key] = None
            self._size += 1
            self._join(namespace)

    def take(self) -> K:
        """Take the key whose turn it is.

        Raises:
            KeyError: No key may be taken now.
        """
        namespace, _ = self._circle.popitem(last=False)
        keys = self._keys[namespace]
        key, _ = keys.popitem(last=False)
        self._size -= 1
        if not keys:
            del self._keys[namespace]
        if self._most is not None:
            self._taken[namespace] = self._taken.get(namespace, 0) + 1
        self._join(namespace)
        return key

    def returned(self, key: K) -> None:
        """Note that a key that was taken needs nothing more; its namespace may have another one taken."""
        if self._most is None:
            return
        namespace = self._namespace_of(key)
        self._taken[namespace] -= 1
        if not self._taken[namespace]:
            del self._taken[namespace]
        self._join(namespace)

    def _join(self, namespace: str) -> None:
        """Let a namespace take part, as the last of the circle, if it has keys that may be taken."""
        allowed = self._most is None or self._taken.get(namespace, 0) < self._most
        if namespace in self._keys and allowed:
            self._circle.setdefault(namespace, None)


class Slots:
    """A fixed number of slots for one event loop, given out in turns by namespace."""

    def __init__(self, number: int) -> None:
        """Create the slots.

        Args:
            number: How many.
        """
        self._free = number
        self._waiting: Turns[tuple[str, asyncio.Future[None]]] = Turns(itemgetter(0))

    @asynccontextmanager
    async def slot(self, namespace: str) -> AsyncIterator[None]:
        """Wait for a slot and keep it for the block."""
        if self._free:
            self._free -= 1  # nobody waits while a slot is free
        else:
            await self._turn(namespace)
        try:
            yield
        finally:
            self._give_back()

    async def _turn(self, namespace: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.add((namespace, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back()  # it was given and cancelled at the same time
            raise

    def _give_back(self) -> None:
        while self._waiting.can_take():
            _, turn = self._waiting.take()
            if not turn.done():  # otherwise its task was cancelled
                turn.set_result(None)
                return
        self._free += 1
