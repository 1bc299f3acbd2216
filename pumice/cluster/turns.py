"""Keys that wait, taken in turns by namespace, so that the backlog of one namespace does not delay another.

Each namespace with waiting keys has its place in a circle. A key is taken from the namespace whose turn it is, and the
turn goes on to the next one. Keys of one namespace are taken in the order of their arrival. So before a key of a namespace
in which nothing else waits, at most one key of each other namespace is taken, however many keys these have.

Requests that share an API server are as slow as what it has under way, whatever sent it; and where it has too much, its
watches lag. So `Shares` gives a namespace an eighth of the places while others are active, and all of them when it is alone.
`Slots` gives out a fixed number of places in this way.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from operator import itemgetter
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

ACTIVE_SECONDS = 10.0
"""How long after its last request a namespace counts as active: the pauses between the writes for one Job are shorter.

If a lagging watch makes them longer, the others do not get back what makes it lag.
"""

SHARE = 8
"""By what the number of places is divided for a namespace while another one is active.

On two processors with a kube-apiserver, of gangs of two pods beside 5,100 pods of another namespace, the slowest was bound
after 5 to 7 s with all places for it or a quarter, and after 1.3 s with an eighth. These 5,100 took 25 s with both.
"""


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
        self._taken: dict[str, int] = {}
        # Ordered dictionaries: removing the first entry of a plain one takes time in proportion to what was removed before.
        self._keys: dict[str, OrderedDict[K, None]] = {}
        self._circle: OrderedDict[str, None] = OrderedDict()
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

    def is_busy(self, namespace: str) -> bool:
        """True if a namespace has keys that wait, or that are taken and not returned."""
        return namespace in self._keys or namespace in self._taken

    def limit(self, most: int | None) -> None:
        """Change the maximum number of keys of one namespace that are taken and not returned."""
        if most != self._most:
            self._most = most
            for namespace in self._keys:
                if not self._may_take(namespace):
                    self._circle.pop(namespace, None)
                self._join(namespace)

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
        self._taken[namespace] = self._taken.get(namespace, 0) + 1
        self._join(namespace)
        return key

    def returned(self, key: K) -> None:
        """Note that a key that was taken needs nothing more; its namespace may have another one taken."""
        namespace = self._namespace_of(key)
        self._taken[namespace] -= 1
        if not self._taken[namespace]:
            del self._taken[namespace]
        self._join(namespace)

    def _join(self, namespace: str) -> None:
        """Let a namespace take part, as the last of the circle, if it has keys that may be taken."""
        if namespace in self._keys and self._may_take(namespace):
            self._circle.setdefault(namespace, None)

    def _may_take(self, namespace: str) -> bool:
        return self._most is None or self._taken.get(namespace, 0) < self._most


class Shares:
    """A limit of places for each namespace while another one is active: has a request, or had one in the last seconds.

    Requests of no namespace do not count as active.
    """

    def __init__(self, turns: Turns[Any], number: int) -> None:
        """Limit what is taken.

        Args:
            turns: From which keys are taken.
            number: Number of places, of all namespaces.
        """
        self._turns = turns
        self._share = max(1, number // SHARE)
        self._active: OrderedDict[str, float] = OrderedDict()

    def note(self, namespace: str) -> None:
        """Note that a namespace is active now, and set the limit that holds now."""
        now = asyncio.get_running_loop().time()
        if namespace:
            self._active[namespace] = now
            self._active.move_to_end(namespace)
        while self._active:
            oldest, last = next(iter(self._active.items()))
            if now - last < ACTIVE_SECONDS:
                break
            if self._turns.is_busy(oldest):
                self._active[oldest] = now
                self._active.move_to_end(oldest)
            else:
                del self._active[oldest]
        self._turns.limit(self._share if len(self._active) > 1 else None)


class Slots:
    """A fixed number of slots for one event loop, given out in turns by namespace, in `Shares`."""

    def __init__(self, number: int) -> None:
        """Create the slots."""
        self._free = number
        self._turns: Turns[tuple[str, asyncio.Future[None]]] = Turns(itemgetter(0))
        self._shares = Shares(self._turns, number)

    @asynccontextmanager
    async def slot(self, namespace: str) -> AsyncIterator[None]:
        """Wait for a slot and keep it for the block."""
        turn = namespace, asyncio.get_running_loop().create_future()
        self._turns.add(turn)
        self._give_out(namespace)
        try:
            await turn[1]
        except asyncio.CancelledError:
            if turn[1].done() and not turn[1].cancelled():
                self._give_back(turn)  # it was given and cancelled at the same time
            raise
        try:
            yield
        finally:
            self._give_back(turn)

    def _give_back(self, turn: tuple[str, asyncio.Future[None]]) -> None:
        self._turns.returned(turn)
        self._free += 1
        self._give_out(turn[0])

    def _give_out(self, namespace: str) -> None:
        """Give free slots to those whose turn it is."""
        self._shares.note(namespace)
        while self._free and self._turns.can_take():
            turn = self._turns.take()
            if turn[1].done():  # its task was cancelled
                self._turns.returned(turn)
            else:
                turn[1].set_result(None)
                self._free -= 1
