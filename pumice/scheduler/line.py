"""A waiting line whose order is asked for again when somebody is about to have a turn."""

import heapq
from collections.abc import Callable
from typing import Generic, TypeVar

from pumice.scheduler.points import SortKey

__all__ = ["Line"]

T = TypeVar("T")


class Line(Generic[T]):
    """A heap that never answers from stale keys.

    The key of a waiting element may have grown since it was put in (a queue's share, a job's
    readiness); who is found to have become bigger goes back into the line. Keys end with a name, so there are no ties.
    """

    __slots__ = ("_heap", "_key")

    def __init__(self, key: Callable[[T], SortKey]) -> None:
        self._key = key
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
        while True:
            key, element = heapq.heappop(self._heap)
            if not self._heap:
                return element
            fresh = self._key(element)
            if fresh != key and fresh > self._heap[0][0]:
                heapq.heappush(self._heap, (fresh, element))
                continue
            return element
