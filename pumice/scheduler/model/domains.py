"""Counts of pods on each node and in each topology domain."""

from collections.abc import Hashable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.tasks import PIPELINED, RELEASING, SchedulingStatus

_FEW = 32
"""Nodes with pods up to which counts by node are added up one by one, and changes up to which a sum follows them."""

_WIDTH = 3
"""Entries that record one change."""


class Topology:
    """The domains of a topology key: nodes with the same value of a label.

    Attributes:
        codes: For each row the number of its domain, for nodes without the label `size`.
    """

    def __init__(self, codes: Ints, size: int) -> None:
        """Take in codes, in which a negative number stands for nodes without the label."""
        self.size = size
        self.codes: Ints = np.where(codes < 0, size, codes)
        self.exists: Bools = np.ones(size, dtype=np.bool_)
        self._order: Ints = np.argsort(self.codes, kind="stable")
        starts = np.searchsorted(self.codes[self._order], np.arange(size + 2))
        self._starts: list[int] = starts.tolist()

    def rows(self, place: int) -> Ints:
        """Rows of a domain."""
        return self._order[self._starts[place] : self._starts[place + 1]]


class PodCounts:
    """Counts of pods by node, which can be looked at by domain: a sum of others, with signs, that is never below 0."""

    __slots__ = ("_parts", "_views")

    def __init__(self, parts: "Parts" = ()) -> None:
        self._parts = parts
        self._views: dict[Hashable, ref[Domains]] = {}

    def parts(self) -> "Parts":
        """The counts that it is the sum of, and how often each."""
        return self._parts

    def domains(self, key: Hashable, topology: Topology, mask: Bools | None = None) -> "Domains":
        """Counts by domain of the nodes of a mask, all if it is None; kept current as long as it is in use, until `DomainCounts.forget_views`.

        The key sets the topology key and the mask apart from others.
        """
        known = self._views.get(key)
        found = known() if known is not None else None
        if found is None:
            found = Domains(self.parts(), key, topology, mask)
            self._views[key] = ref(found)
        return found


class DomainCounts(PodCounts):
    """Counts by row of the node table: events and statements keep them, so that undoing is exact.

    Rows without a pod are not listed: most terms are about the few pods of one gang.

    Attributes:
        placed: Pods on each node, terminating ones included, or the sum of their weights.
        leaving: Those of them that terminate.
        promised: Pods that are promised a place there.
        changes: Row, status and amount of what has been counted since the counts were first read by domain, one after the other;
            it grows.
    """

    __slots__ = ("_is_viewed", "changes", "leaving", "placed", "promised")

    def __init__(self) -> None:
        super().__init__()
        self.placed: dict[int, int] = {}
        self.leaving: dict[int, int] = {}
        self.promised: dict[int, int] = {}
        self.changes: list[Any] = []
        self._is_viewed = False

    def parts(self) -> "Parts":
        """The counts themselves, once."""
        return ((self, 1),)

    def add(self, row: int, status: SchedulingStatus, amount: int) -> None:
        """Count a pod on a node; a negative amount takes it back."""
        counts = self.promised if status is PIPELINED else self.placed
        counts[row] = count = counts.get(row, 0) + amount
        if not count:
            del counts[row]
        if status is RELEASING:
            _add(self.leaving, row, amount)
        if self._is_viewed:
            self.changes += (row, status, amount)

    def merge(self, other: "DomainCounts", times: int) -> None:
        """Count all that others count; nothing may look at the counts by domain."""
        for own, theirs in (
            (self.placed, other.placed),
            (self.leaving, other.leaving),
            (self.promised, other.promised),
        ):
            for row, count in theirs.items():
                _add(own, row, times * count)

    def reorder(self, moved: Ints) -> None:
        """Apply a new order of the node table: the new row of each old row, -1 for a removed one."""
        self.placed = _reordered(self.placed, moved)
        self.leaving = _reordered(self.leaving, moved)
        self.promised = _reordered(self.promised, moved)

    def clear(self) -> None:
        """Count nothing."""
        for counts in (self.placed, self.leaving, self.promised):
            counts.clear()
        self.forget_views()

    def forget_views(self) -> None:
        """Drop the counts by domain: labels and rows of nodes may be others from now on."""
        self._views.clear()
        self.changes.clear()
        self._is_viewed = False

    def view(self) -> int:
        """Start to record changes for a reader of the counts by domain; length of the record so far."""
        self._is_viewed = True
        return len(self.changes)


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


Parts = Sequence[tuple[DomainCounts, int]]


def total(parts: Parts) -> PodCounts:
    """The sum of counts, each so often."""
    return parts[0][0] if len(parts) == 1 and parts[0][1] == 1 else PodCounts(parts)


class Domains:
    """Counts by domain. The last entry of each vector is that of nodes without the label, and always 0.

    Call `sync` before reading.

    Attributes:
        codes: For each row its place in the vectors.
        exists: Domains with a node that counts.
        placed: Pods in each domain, terminating ones included.
        leaving: Those of them that terminate; None where there has been none.
        promised: Pods that are promised a place there; None where there has been none.
        turned: Places of the vectors that may have come to have pods, or none, in the order in which they did; it grows. After many
            changes at once the last place stands for each of them.
    """

    def __init__(self, parts: Parts, key: Hashable, topology: Topology, mask: Bools | None) -> None:
        codes, size = topology.codes, topology.size
        self.topology = topology
        self.codes = codes
        self._parts = parts
        self._key = key
        self._mask = mask
        self._counted = codes if mask is None else np.where(mask, codes, size)
        self.exists: Bools = (
            topology.exists
            if mask is None
            else np.bincount(self._counted, minlength=size + 1)[:size] > 0
        )
        self._bases: list[Domains] = []
        """Counts of parts that were added up; each part refers to its own weakly, and other sums share them while they are here."""
        self.turned: list[int] = []
        self._recount()
        self._recorded = sum(self._seen)

    def _recount(self) -> None:
        """Add up all parts; those with pods on many nodes have their own counts by domain, which other sums share."""
        self._seen = [tally.view() for tally, _ in self._parts]
        self.placed: Ints = np.zeros(len(self.exists) + 1, dtype=np.int64)
        self.leaving: Ints | None = None
        self.promised: Ints | None = None
        bases = []
        for tally, times in self._parts:
            if len(self._parts) > 1 and len(tally.placed) > _FEW:
                base = tally.domains(self._key, self.topology, self._mask)
                base.sync()
                bases.append(base)
                self.placed += base.placed * times
                self._also(base.leaving, base.promised, times)
            else:
                self._sum(self.placed, tally.placed, times)
                leaving = self._sum(None, tally.leaving, times)
                self._also(leaving, self._sum(None, tally.promised, times), times=1)
        self._bases = bases

    def _also(self, leaving: Ints | None, promised: Ints | None, times: int) -> None:
        if leaving is not None:
            self.leaving = leaving * times + (0 if self.leaving is None else self.leaving)
        if promised is not None:
            self.promised = promised * times + (0 if self.promised is None else self.promised)

    def _sum(self, sums: Ints | None, counts: dict[int, int], times: int) -> Ints | None:
        """Add counts by row to those by domain; new ones for None, if there is something to add."""
        if not counts:
            return sums
        size = len(self.exists)
        if sums is None:
            sums = np.zeros(size + 1, dtype=np.int64)
        if len(counts) <= _FEW:
            for row, count in counts.items():
                sums[self._counted[row]] += count * times
        else:
            places = self._counted[np.array(list(counts), dtype=np.int64)]
            np.add.at(sums, places, np.array(list(counts.values()), dtype=np.int64) * times)
        sums[size] = 0
        return sums

    def sync(self) -> int:
        """Take in what has been counted since; a number that grows with each change."""
        recorded = 0
        for tally, _ in self._parts:
            recorded += len(tally.changes)
        pending, self._recorded = recorded - self._recorded, recorded
        if pending > _WIDTH * _FEW and len(self._parts) > 1:
            self._recount()
            self.turned.extend([len(self.exists)] * pending)
        elif pending:
            self._follow()
        return recorded

    def _follow(self) -> None:
        nowhere, placed, number = len(self.exists), self.placed, 0
        for tally, times in self._parts:
            start, changes = self._seen[number], tally.changes
            self._seen[number] = end = len(changes)
            number += 1
            for at in range(start, end, _WIDTH):
                place, status = self._counted.item(changes[at]), changes[at + 1]
                if place == nowhere:
                    continue
                amount = changes[at + 2] * times
                if status is PIPELINED or status is RELEASING:
                    self._follow_later(place, status, amount)
                if status is not PIPELINED:
                    before = placed.item(place)
                    placed[place] = after = before + amount
                    if not (before and after) or self.promised is not None:
                        self.turned.append(place)

    def _follow_later(self, place: int, status: SchedulingStatus, amount: int) -> None:
        """Take in a pod that terminates, or is promised a place."""
        if status is RELEASING:
            if self.leaving is None:
                self.leaving = np.zeros_like(self.placed)
            self.leaving[place] += amount
            return
        if self.promised is None:
            self.promised = np.zeros_like(self.placed)
        self.promised[place] += amount
        self.turned.append(place)

    def has(self, place: int) -> bool:
        """Whether there is a pod in a domain, or one that is promised a place there."""
        promised = self.promised
        return bool(self.placed.item(place) or (promised is not None and promised.item(place)))

    def near(self, *, later: bool) -> list[Ints]:
        """Counts for affinity and anti-affinity, where terminating pods count until they are gone: `later`, when promises are kept, too.

        A rule must hold for each of the vectors: for the moment they are two if there are promises, one with and one
        without them, because a promise may not be kept.
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
