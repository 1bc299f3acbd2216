"""A priority queue that computes the key of an element again when the element is about to be taken out."""

from bisect import insort
from collections.abc import Callable, Iterable
from itertools import islice
from operator import itemgetter
from typing import Generic, TypeVar

from pumice.scheduler.points import SortKey

T = TypeVar("T")


class PriorityQueue(Generic[T]):
    """A sorted list that never uses stale keys.

    The key of a waiting element may have grown since it was put in (the share of a queue); an element that is found to
    have become bigger goes back into the queue. A key that has become smaller is not found that way, so all keys are taken
    again when the epoch has changed. Keys end with a name, so there are no ties. An element that waits alone needs no key.
    What is put in before the first is taken out is sorted at once: it tends to come in order. What was taken out last and is put
    back is compared with the first alone, because it is often the first again.
    """

    def __init__(
        self,
        key: Callable[[T], SortKey],
        epoch: Callable[[], int] = lambda: 0,
        *,
        moves: bool = True,
    ) -> None:
        """An empty queue.

        Args:
            key: Place of an element; the smallest comes first.
            epoch: A number that changes when the key of a waiting element may have become smaller.
            moves: Whether the key of an element may grow while it waits.
        """
        self._key = key
        self._epoch = epoch
        self._seen = epoch()
        self._moves = moves
        self._alone: list[T] = []
        self._back: list[T] = []
        self._waiting: list[tuple[SortKey, T]] = []
        self._first = 0
        self._is_sorted = False

    def __len__(self) -> int:
        return len(self._waiting) - self._first + len(self._alone) + len(self._back)

    def __bool__(self) -> bool:
        return self._first < len(self._waiting) or bool(self._alone or self._back)

    def push(self, element: T) -> None:
        """Add an element."""
        if not self._alone and self._first == len(self._waiting) and not self._back:
            self._alone.append(element)
            return
        if self._moves and self._is_sorted and not self._alone and not self._back:
            self._back.append(element)
            return
        self._put(element)
        if self._alone:  # if its key fails, the other one is in the queue already
            self._put(self._alone.pop())

    def begin(self, elements: Iterable[T], keys: Iterable[SortKey]) -> None:
        """Put several elements into an empty queue, with their keys."""
        self._waiting = list(zip(keys, elements, strict=True))

    def first(self) -> T:
        """The first element, which goes on waiting.

        Raises:
            IndexError: The queue is empty.
        """
        element = self.pop()
        self.push(element)
        return element

    def pop(self) -> T:
        """Take out the first element.

        Raises:
            IndexError: The queue is empty.
        """
        if self._alone:
            return self._alone.pop()
        self._settle()
        if self._back:
            element = self._back.pop()
            if self._first == len(self._waiting):
                return element
            key = self._key(element)
            if key < self._waiting[self._first][0]:
                return element
            self._put(element, key)
        while True:
            key, element = self._waiting[self._first]
            self._first += 1
            if not self._moves or self._first == len(self._waiting):
                return element
            fresh = self._key(element)
            if fresh != key and fresh > self._waiting[self._first][0]:
                insort(self._waiting, (fresh, element), self._first, key=_BY_KEY)
                continue
            return element

    def pop_while(self, unwanted: Callable[[T], bool]) -> list[T]:
        """Take out the first elements up to one that is wanted; none if keys grow, since then only `pop` tells which one is first."""
        if self._moves:
            return []
        self._settle()
        found: list[T] = []
        for _, element in islice(self._waiting, self._first, None):
            if not unwanted(element):
                break
            found.append(element)
        self._first += len(found)
        return found

    def _settle(self) -> None:
        """Sort what waits, by new keys if some may have become smaller."""
        epoch = self._epoch()
        if epoch != self._seen:
            rest = self._waiting[self._first :]
            self._waiting = [(self._key(element), element) for _, element in rest]
            self._first = 0
            self._is_sorted = False
            self._seen = epoch
        if not self._is_sorted:
            self._waiting.sort(key=_BY_KEY)
            self._is_sorted = True

    def _put(self, element: T, key: SortKey | None = None) -> None:
        entry = (self._key(element) if key is None else key, element)
        if self._is_sorted:
            if self._first > _GONE:
                del self._waiting[: self._first]
                self._first = 0
            insort(self._waiting, entry, self._first, key=_BY_KEY)
        else:
            self._waiting.append(entry)


_BY_KEY = itemgetter(0)
_GONE = 1024
"""Places of elements that were taken out, from which on they are given up."""
