"""Counts of pods on each node and in each topology domain."""

from collections.abc import Hashable
from weakref import ref

import numpy as np

from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.tasks import SchedulingStatus

__all__ = ["DomainCounts", "Domains", "Topology"]


class Topology:
    """The domains of a topology key: nodes with the same value of a label.

    Attributes:
        codes: For each row the number of its domain, for nodes without the label `size`.
        size: Number of domains.
    """

    __slots__ = ("_order", "_starts", "codes", "size")

    def __init__(self, codes: Ints, size: int) -> None:
        """Take in codes, in which a negative number stands for nodes without the label."""
        self.size = size
        self.codes: Ints = np.where(codes < 0, size, codes)
        self._order: Ints = np.argsort(self.codes, kind="stable")
        self._starts: Ints = np.searchsorted(self.codes[self._order], np.arange(size + 2))

    def rows(self, place: int) -> Ints:
        """Rows of a domain."""
        return self._order[self._starts[place] : self._starts[place + 1]]


class DomainCounts:
    """Counts by row of the node table: events and statements keep them, so that undoing is exact.

    Rows without a pod are not listed: most terms are about the few pods of one gang.

    Attributes:
        placed: Pods on each node, terminating ones included, or the sum of their weights.
        leaving: Those of them that terminate.
        promised: Pods that are promised a place there.
    """

    __slots__ = ("_views", "leaving", "placed", "promised")

    def __init__(self) -> None:
        self.placed: dict[int, int] = {}
        self.leaving: dict[int, int] = {}
        self.promised: dict[int, int] = {}
        self._views: dict[Hashable, ref[Domains]] = {}

    def add(self, row: int, status: SchedulingStatus, amount: int) -> None:
        """Count a pod on a node; a negative amount takes it back."""
        if status is SchedulingStatus.PIPELINED:
            _add(self.promised, row, amount)
        else:
            _add(self.placed, row, amount)
            if status is SchedulingStatus.RELEASING:
                _add(self.leaving, row, amount)
        for known in self._views.values():
            view = known()
            if view is not None:
                view.add(row, status, amount)

    def reorder(self, moved: Ints) -> None:
        """Apply a new order of the node table: the new row of each old row, -1 for a removed one."""
        self.placed = _reordered(self.placed, moved)
        self.leaving = _reordered(self.leaving, moved)
        self.promised = _reordered(self.promised, moved)

    def clear(self) -> None:
        """Count nothing."""
        for counts in (self.placed, self.leaving, self.promised):
            counts.clear()
        self._views.clear()

    def forget_views(self) -> None:
        """Drop the counts by domain: labels and rows of nodes may be others from now on."""
        self._views.clear()

    def domains(self, key: Hashable, topology: Topology, mask: Bools | None = None) -> "Domains":
        """Counts by domain; kept current as long as it is in use, until `forget_views`.

        Args:
            key: What sets the topology key and the mask apart from others.
            topology: The domains.
            mask: Nodes that count; None for all.
        """
        known = self._views.get(key)
        found = known() if known is not None else None
        if found is None:
            found = Domains(self, topology, mask)
            self._views[key] = ref(found)
        return found


def _add(counts: dict[int, int], row: int, amount: int) -> None:
    count = counts.get(row, 0) + amount
    if count:
        counts[row] = count
    else:
        counts.pop(row, None)


def _reordered(counts: dict[int, int], moved: Ints) -> dict[int, int]:
    if not counts:
        return counts
    places = moved[list(counts)].tolist()
    pairs = zip(places, counts.values(), strict=True)
    return {row: count for row, count in pairs if row >= 0}


class Domains:
    """Counts of a tally by domain. The last entry of each vector is that of nodes without the label, and always 0.

    Attributes:
        topology: The domains.
        codes: For each row its place in the vectors.
        exists: Domains with a node that counts.
        placed: Pods in each domain, terminating ones included.
        leaving: Those of them that terminate; None where there has been none.
        promised: Pods that are promised a place there; None where there has been none.
        touched: Places of the vectors that were changed, in the order in which they were; it grows.
    """

    __slots__ = (
        "__weakref__",
        "_counted",
        "codes",
        "exists",
        "leaving",
        "placed",
        "promised",
        "topology",
        "touched",
    )

    def __init__(self, tally: DomainCounts, topology: Topology, mask: Bools | None) -> None:
        codes, size = topology.codes, topology.size
        self.topology = topology
        self.codes = codes
        self._counted = codes if mask is None else np.where(mask, codes, size)
        self.exists: Bools = np.bincount(self._counted, minlength=size + 1)[:size] > 0
        self.placed = self._sums(tally.placed)
        self.leaving = self._sums(tally.leaving) if tally.leaving else None
        self.promised = self._sums(tally.promised) if tally.promised else None
        self.touched: list[int] = []

    def _sums(self, counts: dict[int, int]) -> Ints:
        size = len(self.exists)
        sums: Ints = np.zeros(size + 1, dtype=np.int64)
        if counts:
            places = self._counted[np.array(list(counts), dtype=np.int64)]
            np.add.at(sums, places, np.array(list(counts.values()), dtype=np.int64))
            sums[size] = 0
        return sums

    def add(self, row: int, status: SchedulingStatus, amount: int) -> None:
        """Count a pod on a node; a negative amount takes it back."""
        place = int(self._counted[row])
        if place == len(self.exists):
            return
        if status is SchedulingStatus.PIPELINED:
            if self.promised is None:
                self.promised = np.zeros_like(self.placed)
            self.promised[place] += amount
        else:
            self.placed[place] += amount
            if status is SchedulingStatus.RELEASING:
                if self.leaving is None:
                    self.leaving = np.zeros_like(self.placed)
                self.leaving[place] += amount
        self.touched.append(place)

    def has(self, place: int) -> bool:
        """Whether there is a pod in a domain, or one that is promised a place there."""
        promised = self.promised
        return bool(self.placed[place] or (promised is not None and promised[place]))

    def near(self, *, later: bool) -> list[Ints]:
        """Counts for affinity and anti-affinity, where terminating pods count until they are gone.

        A rule must hold for each of the vectors: for the moment they are two if there are promises, one with and one
        without them, because a promise may not be kept.

        Args:
            later: Whether terminating pods are gone and promises are kept.
        """
        counts = self.placed
        if later and self.leaving is not None:
            counts = counts - self.leaving
        return self._with_promises(counts, later=later)

    def spread(self, *, later: bool) -> list[Ints]:
        """Counts for topology spread, where terminating pods do not count; as `near`."""
        counts = self.placed if self.leaving is None else self.placed - self.leaving
        return self._with_promises(counts, later=later)

    def _with_promises(self, counts: Ints, *, later: bool) -> list[Ints]:
        if self.promised is None:
            return [counts]
        promised: Ints = counts + self.promised
        return [promised] if later else [counts, promised]
