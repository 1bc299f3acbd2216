"""How many pods of some kind there are on each node, and in each domain: the nodes with one value of a label."""

from collections.abc import Hashable
from weakref import WeakValueDictionary

import numpy as np

from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.tasks import Status

__all__ = ["Domains", "Tally"]


class Tally:
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
        self._views: WeakValueDictionary[Hashable, Domains] | None = None

    def add(self, row: int, status: Status, amount: int) -> None:
        """Count a pod on a node; a negative amount takes it back."""
        if status is Status.PIPELINED:
            _add(self.promised, row, amount)
        else:
            _add(self.placed, row, amount)
            if status is Status.RELEASING:
                _add(self.leaving, row, amount)
        if self._views is not None:
            for view in self._views.values():
                view.add(row, status, amount)

    def reorder(self, moved: Ints) -> None:
        """Follow the node table: for each row the one where it is now, -1 for one that is gone."""
        self.placed = _reordered(self.placed, moved)
        self.leaving = _reordered(self.leaving, moved)
        self.promised = _reordered(self.promised, moved)

    def clear(self) -> None:
        """Count nothing."""
        for counts in (self.placed, self.leaving, self.promised):
            counts.clear()
        self._views = None

    def forget_views(self) -> None:
        """Drop the counts by domain: labels and rows of nodes may be others from now on."""
        self._views = None

    def domains(
        self, key: Hashable, codes: Ints, size: int, mask: Bools | None = None
    ) -> "Domains":
        """Counts by domain; kept current as long as it is in use, until `forget_views`.

        Args:
            key: What sets the label and the mask apart from others.
            codes: For each node the number of its domain; `size` for none.
            size: Number of domains.
            mask: Nodes that count; None for all.
        """
        if self._views is None:
            self._views = WeakValueDictionary()
        found = self._views.get(key)
        if found is None:
            found = self._views[key] = Domains(self, codes, size, mask)
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
        "touched",
    )

    def __init__(self, tally: Tally, codes: Ints, size: int, mask: Bools | None) -> None:
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

    def add(self, row: int, status: Status, amount: int) -> None:
        """Count a pod on a node; a negative amount takes it back."""
        place = int(self._counted[row])
        if place == len(self.exists):
            return
        if status is Status.PIPELINED:
            if self.promised is None:
                self.promised = np.zeros_like(self.placed)
            self.promised[place] += amount
        else:
            self.placed[place] += amount
            if status is Status.RELEASING:
                if self.leaving is None:
                    self.leaving = np.zeros_like(self.placed)
                self.leaving[place] += amount
        self.touched.append(place)

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
