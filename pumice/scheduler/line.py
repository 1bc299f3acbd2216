"""A waiting line whose order is checked again whenever an element is about to have a turn."""

import heapq
from collections.abc import Callable
from typing import Generic, TypeVar

from pumice.scheduler.points import SortKey

__all__ = ["Line"]

T = TypeVar("T")


class Line(Generic[T]):
    """A heap that never answers from stale keys.

    The key of a waiting element may have grown since it was put in (a queue's share, a job's readiness): an element whose
    key has grown goes back into the line when it comes first. A key that has become smaller is not found that way, so all
    keys are taken anew when the epoch has changed. Keys end with a name, so there are no ties.
    """

    __slots__ = ("_epoch", "_heap", "_key", "_seen")

    def __init__(self, key: Callable[[T], SortKey], epoch: Callable[[], int] = lambda: 0) -> None:
        """An empty line.

        Args:
            key: Place of an element; the smallest comes first.
            epoch: A number that changes when the key of a waiting element may have become smaller.
        """
        self._key = key
        self._epoch = epoch
        self._seen = epoch()
        self._heap: list[tuple[SortKey, T]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, element: T) -> None:
        """Put an element in."""
        heapq.heappush(self._heap, (self._key(element), element))

    def pop(self) -> T:
        """Take out the first.

        Raises:
            IndexError: The line is empty.
        """
        epoch = self._epoch()
        if epoch != self._seen:
            self._heap = [(self._key(element), element) for _, element in self._heap]
            heapq.heapify(self._heap)
            self._seen = epoch
        heap = self._heap
        while len(heap) > 1:
            key, element = heap[0]
            fresh = self._key(element)
            if fresh == key or fresh < min(heap[1:3])[0]:
                break
            heapq.heapreplace(heap, (fresh, element))
        return heapq.heappop(heap)[1]
