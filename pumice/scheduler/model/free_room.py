"""Room on nodes, by arithmetic: what is free, and how many pods fit, an upper bound for any filter and any order of placing.

Pods of one shape take the same room wherever they go, so counting their places node by node is exact. Pods of several
shapes each take at least the smallest request among them, so counting places for that is a bound.

Where nodes are full, thousands of gangs fail one after the other between two placements, each with a request of its own. The
largest and the smallest amounts of a column then decide about most requests without a look at the nodes.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.rows import Rows, TouchedRows
from pumice.scheduler.model.shapes import Need, PodShape

_EXACT = 1 << 50
_UNLIMITED = np.iinfo(np.int64).max


Needs = tuple[tuple[int, int], ...]
"""Columns and milli-units of each that one pod takes; never empty, because every pod takes a slot."""

_KEPT = 128
"""Kinds of pods of which places by row are kept, 40 KB each where there are 5,000 nodes."""

_MANY = 256
"""Touched rows from which on the places of all rows are counted again."""

_CELLS = 1 << 20
"""Cells of the largest matrix that is computed at once: 8 MiB."""


class FreeColumn:
    """One resource on all nodes, at a moment.

    Attributes:
        later: What is free once terminating pods are gone and promised places are taken, by row.
        least: The least of that.
        most: The most of that.
        first: The first row that has the most.
        now: The most that is free now on any node.
        smallest: The least that any node has when it is empty.
        largest: The most that any node has when it is empty.
    """

    def __init__(self, rows: Rows, column: int) -> None:
        self.later: Ints = rows.future_idle(column)
        self.first = int(self.later.argmax())
        self.most = int(self.later[self.first])
        self.least = int(self.later.min())
        self.now = int(rows.idle(column).max())
        has = rows.allocatable[:, column]
        self.smallest = int(has.min())
        self.largest = int(has.max())

    @property
    def is_exact(self) -> bool:
        """Whether different amounts stay different as parts of a request, which are floating-point numbers."""
        return self.least > -_EXACT and self.most < _EXACT


class FreeColumns:
    """Columns of all nodes as they are; made when they are asked for, and again after a placement."""

    def __init__(self, rows: Rows, touched: TouchedRows) -> None:
        self.rows = rows
        self._log = touched.log
        self._moment = -1
        self._columns: dict[int, FreeColumn] = {}
        self._has_promises: bool | None = None

    def columns(self, needs: Sequence[Need]) -> list[FreeColumn]:
        """The resources that a pod needs, in the same order; there must be a node."""
        self._follow()
        known = self._columns
        for need in needs:
            if need.column not in known:
                known[need.column] = FreeColumn(self.rows, need.column)
        return [known[need.column] for need in needs]

    @property
    def has_promises(self) -> bool:
        """Whether any node has promised room to pods that are not there yet."""
        self._follow()
        if self._has_promises is None:
            self._has_promises = bool(self.rows.pipelined.any())
        return self._has_promises

    def are_too_full(self, needs: Sequence[Need]) -> bool:
        """True if it is known already that no node has room for such a pod now."""
        if self._moment != len(self._log):
            return False
        known = self._columns
        return any(need.column in known and need.amount > known[need.column].now for need in needs)

    def _follow(self) -> None:
        if self._moment != len(self._log):
            self._moment = len(self._log)
            self._columns.clear()
            self._has_promises = None


class RowPlaces:
    """How many pods of a kind each node can take, followed while a session decides; bounds for any filter."""

    def __init__(self, rows: Rows, touched: TouchedRows) -> None:
        self._rows = rows
        self._touched = touched
        self._counts: dict[tuple[Needs, bool], tuple[int, Ints]] = {}

    def counts(self, needs: Needs, *, later: bool = False) -> Ints:
        """Places by row, now or once terminating pods are gone and promised places are taken; to be read only."""
        log, key = self._touched.log, (needs, later)
        known = self._counts.get(key)
        if known is None or len(log) - known[0] > _MANY:
            if len(self._counts) >= _KEPT:
                del self._counts[next(iter(self._counts))]
            counts = self._count(needs, slice(None), later=later)
        elif known[0] == len(log):
            return known[1]
        else:
            counts = known[1]
            rows = np.array(log[known[0] :], dtype=np.int64)
            counts[rows] = self._count(needs, rows, later=later)
        self._counts[key] = len(log), counts
        return counts

    def empty(self, needs: Needs) -> Ints:
        """Places by row if no pod were there."""
        return _fitting(needs, lambda column: self._rows.allocatable[:, column])

    def _count(self, needs: Needs, which: slice | Ints, *, later: bool) -> Ints:
        rows = self._rows

        def free(column: int) -> Ints:
            now = rows.allocatable[which, column] - rows.used[which, column]
            if not later:
                return now
            return now + rows.releasing[which, column] - rows.pipelined[which, column]

        counts = _fitting(needs, free)
        if not later and self._touched.promises:
            np.minimum(counts, self._count(needs, which, later=True), out=counts)
        return counts


def _fitting(needs: Needs, free: Callable[[int], Ints]) -> Ints:
    found: Ints | None = None
    for column, amount in needs:
        count = np.maximum(free(column), 0) // max(amount, 1)
        found = count if found is None else np.minimum(found, count)
    assert found is not None  # every pod takes a slot
    return found


def least(shapes: Sequence[PodShape]) -> Needs:
    """What a pod of any of these shapes takes at least."""
    if len(shapes) == 1:
        return tuple([(need.column, need.amount) for need in shapes[0].needs])
    found = {need.column: need.amount for need in shapes[0].needs}
    for shape in shapes[1:]:
        amounts = {need.column: need.amount for need in shape.needs}
        found = {
            column: min(amount, amounts[column])
            for column, amount in found.items()
            if column in amounts
        }
    return tuple(sorted(found.items()))


class Kinds(NamedTuple):
    """Kinds of pods, of which places are counted together.

    Attributes:
        columns: What any of them takes, ascending.
        amounts: How much, by kind and place among the columns.
    """

    columns: list[int]
    amounts: Ints

    @classmethod
    def of(cls, needs: Sequence[Needs]) -> "Kinds":
        """Several kinds in their order."""
        columns = sorted({column for each in needs for column, _ in each})
        amounts = np.zeros((len(needs), len(columns)), dtype=np.int64)
        position = {column: index for index, column in enumerate(columns)}
        for kind, each in enumerate(needs):
            for column, amount in each:
                amounts[kind, position[column]] = amount
        return cls(columns, amounts)

    def places(self, free: Ints) -> Ints:
        """See `places`."""
        missing = max(self.columns, default=-1) + 1 - free.shape[1]
        if missing > 0:
            free = np.pad(free, ((0, 0), (0, missing)))
        room = np.maximum(free.T[self.columns], 0)[:, None]
        wanted = self.amounts.T[:, :, None]
        takes_none = wanted[:, :, 0] == 0
        found = np.empty((len(self.amounts), len(free)), dtype=np.int64)
        step = max(1, _CELLS // max(1, wanted.size))
        for start in range(0, len(free), step):
            part = slice(start, start + step)
            each = room[:, :, part] // np.maximum(wanted, 1)
            each[takes_none] = _UNLIMITED
            each.min(axis=0, initial=_UNLIMITED, out=found[:, part])
        return found


def places(needs: Sequence[Needs], free: Ints) -> Ints:
    """How many pods, of each kind, fit into rows of free resources.

    `free` has milli-units by row and column; columns that it lacks count as empty. The counts are by kind and row.
    """
    return Kinds.of(needs).places(free)
