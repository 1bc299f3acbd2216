"""Places of pods on nodes, so that what ran can be drawn and listed without overlap.

A node has as many places as pods ever ran on it at once. Each pod gets the free place with the lowest number when it starts. With
pods of 1 cpu on nodes that are full at some moment, places are processors.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count

from pumice.traces.records import Past, PodRuns

_END, _START, _END_OF_AN_INSTANT = 0, 1, 2
"""At one moment, places are freed before others are given; pods that ran for no time free theirs last."""


class PodPlaces:
    """The places that the pods of a run had.

    Attributes:
        counts: Number of places of each node.
    """

    def __init__(self, past: Past) -> None:
        self.counts = [0] * len(past.nodes)
        self._held: dict[tuple[int, int], list[int]] = {}
        self._firsts: list[int] = []
        self._give(past)
        first = 0
        for size in self.counts:
            self._firsts.append(first)
            first += size

    def of(self, number: int, index: int) -> list[int]:
        """Places on its node of pods of a job.

        Args:
            number: The job, an index of `Past.jobs`.
            index: Which of its runs.
        """
        return self._held[number, index]

    def first_of(self, node: int) -> int:
        """The number of a node's first place, if the places of all nodes are numbered one after the other."""
        return self._firsts[node]

    def _give(self, past: Past) -> None:
        free: list[list[int]] = [[] for _ in past.nodes]
        for _, kind, number, index, runs in sorted(_events(past), key=lambda each: each[:4]):
            if kind != _START:
                for place in self._held[number, index]:
                    heappush(free[runs.node], place)
            else:
                self._held[number, index] = self._taken(free[runs.node], runs)

    def _taken(self, free: list[int], runs: PodRuns) -> list[int]:
        missing = runs.pods - len(free)
        if missing > 0:
            more = count(self.counts[runs.node])
            free.extend(next(more) for _ in range(missing))
            self.counts[runs.node] += missing
            heapify(free)
        return [heappop(free) for _ in range(runs.pods)]


def _events(past: Past) -> Iterator[tuple[float, int, int, int, PodRuns]]:
    for number, record in enumerate(past.jobs):
        for index, runs in enumerate(record.runs):
            yield runs.start, _START, number, index, runs
            if runs.end is not None:
                kind = _END if runs.end > runs.start else _END_OF_AN_INSTANT
                yield runs.end, kind, number, index, runs
