"""Properties of nodes in columns: labels as numbers, taints as interned sets.

A column is built when the first selector asks for its key and lives until a node's value of that key
changes, so a heartbeat costs nothing and a selector over 5,000 nodes is one comparison of integers.
"""

import re
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

import numpy as np

from pumice.api.nodes import Node, Taint
from pumice.scheduler.model.axis import Bools, Floats, Ints
from pumice.scheduler.model.nodes import NodeTable
from pumice.scheduler.model.rows import Rows

ABSENT = -1
"""Number of a label that a node does not have."""

_DECIMAL = re.compile(r"([+-]?)0*([0-9]{1,19})", re.ASCII)

TaintSet = tuple[Taint, ...]
T = TypeVar("T")


class LabelColumn:
    """One label of all nodes.

    Attributes:
        codes: For each row the place of its value in `values`, or `ABSENT`.
    """

    def __init__(self, table: NodeTable, key: str) -> None:
        self._numbers: tuple[Ints, Bools] | None = None
        self.values: list[str] = []
        self._places: dict[str, int] = {}
        self.codes = np.full(len(table), ABSENT, dtype=np.int64)
        for row, record in enumerate(table.order):
            labels = record.node.metadata.labels if record.node else None
            if labels and key in labels:
                self.codes[row] = self._place(labels[key])

    def _place(self, value: str) -> int:
        place = self._places.get(value)
        if place is None:
            place = self._places[value] = len(self.values)
            self.values.append(value)
        return place

    def among(self, values: Iterable[str]) -> Bools:
        """Rows that have one of these values."""
        answers = np.zeros(len(self.values) + 1, dtype=np.bool_)
        for value in values:
            place = self._places.get(value)
            if place is not None:
                answers[place] = True
        found: Bools = answers[self.codes]
        return found

    def numbers(self, of: Callable[[str], float], absent: float = 0.0) -> Floats:
        """A number for each row that follows from its value."""
        found: Floats = np.array([*map(of, self.values), absent], dtype=np.float64)[self.codes]
        return found

    def beyond(self, bound: int, *, above: bool) -> Bools:
        """Rows whose value is a number above, or below, another one."""
        if self._numbers is None:
            read = [integer(value) for value in self.values]
            known = np.array([number is not None for number in read], dtype=np.bool_)
            self._numbers = np.array([number or 0 for number in read], dtype=np.int64), known
        numbers, known = self._numbers
        answers = np.zeros(len(self.values) + 1, dtype=np.bool_)
        answers[:-1] = known & (numbers > bound if above else numbers < bound)
        found: Bools = answers[self.codes]
        return found


def integer(text: str) -> int | None:
    """The number that Go reads in a text: decimal digits with a sign, of at most 64 bits."""
    read = _DECIMAL.fullmatch(text)
    if read is None:
        return None
    number = int(read[1] + read[2])
    return number if -(1 << 63) <= number < 1 << 63 else None


class NodeFacts:
    """Labels, taints and readiness of all nodes, by row.

    Attributes:
        taint_codes: For each row the place of its taints in `taint_sets`.
        unready: Rows whose node does not report Ready.
        ready: All other rows.
        open: Those of them that are not cordoned.
        are_all_ready: Whether there are no others.
        are_any_ready: Whether there are any.
        are_all_open: Whether none of them is cordoned.
        version: Grows when any of it changes.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._layout = -1
        self._marks_are_stale = True
        self._labels: dict[str, LabelColumn] = {}
        self._keys: set[str] | None = None
        self._nowhere: LabelColumn | None = None
        self.taint_codes: Ints = np.zeros(0, dtype=np.int64)
        self.unschedulable: Bools = np.zeros(0, dtype=np.bool_)
        self.unready: Bools = np.zeros(0, dtype=np.bool_)
        self.ready: Bools = np.zeros(0, dtype=np.bool_)
        self.open: Bools = np.zeros(0, dtype=np.bool_)
        self.are_all_ready = self.are_all_open = True
        self.are_any_ready = False
        self._sizes: tuple[Rows, Bools, Ints, Ints] | None = None
        self._cache: dict[object, tuple[int, object]] = {}
        self.taint_sets: list[TaintSet] = []
        self.version = 0
        table.on_change.append(self._on_change)

    def settle(self) -> None:
        """Update the columns after rows were added, removed or moved; call it before reading."""
        if self._layout != self._table.layout:
            self._layout = self._table.layout
            self._labels.clear()
            self._keys = None
            self._nowhere = None
            self._marks_are_stale = True
            self.version += 1
        if self._marks_are_stale:
            self._marks_are_stale = False
            self._read_marks()

    @property
    def are_all_untainted(self) -> bool:
        """Whether no node has a taint."""
        return len(self.taint_sets) <= 1

    def total(self) -> Ints:
        """What all ready nodes have, by column; to be read only. It is another object after any node has changed."""
        return self._known_sizes()[2]

    def largest(self) -> Ints:
        """The most that one of the ready nodes has, by column; to be read only."""
        return self._known_sizes()[3]

    def _known_sizes(self) -> tuple[Rows, Bools, Ints, Ints]:
        rows, known = self._table.rows(), self._sizes
        if known is None or known[0] is not rows or known[1] is not self.ready:
            has = rows.allocatable
            largest = has[self.ready].max(axis=0, initial=0)
            known = self._sizes = rows, self.ready, self.ready @ has, largest
        return known

    def label(self, key: str) -> LabelColumn:
        """The column of a label.

        Once there are many, labels that no node has share one, because a pod may name any number of them.
        """
        column = self._labels.get(key)
        if column is None:
            if len(self._labels) >= _MANY_LABELS and key not in self._all_keys():
                if self._nowhere is None:
                    self._nowhere = LabelColumn(self._table, _NO_LABEL)
                return self._nowhere
            column = self._labels[key] = LabelColumn(self._table, key)
        return column

    def known_labels(self, keys: Collection[str]) -> Iterable[str]:
        """Those of some labels that nodes may have; once there are many, those that a node has."""
        if len(keys) < _MANY_LABELS:
            return keys
        known = self._all_keys()
        few, many = (keys, known) if len(keys) < len(known) else (known, keys)
        return [key for key in few if key in many]

    def _all_keys(self) -> set[str]:
        """Labels that any node has."""
        if self._keys is None:
            nodes = [record.node for record in self._table.order if record.node is not None]
            self._keys = {key for node in nodes for key in node.metadata.labels or ()}
        return self._keys

    def cached(self, key: object, compute: Callable[[], T]) -> T:
        """A value that depends on these facts only; computed again when they changed.

        The key must name the computation and all its other inputs.
        """
        found = self._cache.get(key)
        if found is not None and found[0] == self.version:
            value: T = found[1]  # type: ignore[assignment]
            return value
        if len(self._cache) > _CACHE_LIMIT:
            self._cache = {
                each: entry for each, entry in self._cache.items() if entry[0] == self.version
            }
            if len(self._cache) > _CACHE_LIMIT:
                self._cache.clear()
        value = compute()
        self._cache[key] = (self.version, value)
        return value

    def _on_change(self, _row: int, old: Node | None, new: Node) -> None:
        if old is None:
            return
        before, after = old.metadata.labels or {}, new.metadata.labels or {}
        if before != after:
            for key in before.keys() | after.keys():
                if before.get(key) != after.get(key):
                    self._labels.pop(key, None)
            self._keys = None
            self.version += 1
        if old.spec != new.spec or old.is_ready != new.is_ready:
            self._marks_are_stale = True
            self.version += 1

    def _read_marks(self) -> None:
        count = len(self._table)
        self.taint_codes = np.zeros(count, dtype=np.int64)
        self.unschedulable = np.zeros(count, dtype=np.bool_)
        self.unready = np.zeros(count, dtype=np.bool_)
        places: dict[TaintSet, int] = {(): 0}
        for record in [each for each in self._table.order if each.is_marked]:
            row, node = record.row, record.node
            if node is None:
                continue
            if node.spec.taints:
                taints = tuple(node.spec.taints)
                self.taint_codes[row] = places.setdefault(taints, len(places))
            if node.spec.unschedulable:
                self.unschedulable[row] = True
            if not record.is_ready:
                self.unready[row] = True
        self.taint_sets = list(places)
        self.ready = ~self.unready
        self.open = self.ready & ~self.unschedulable
        self.are_all_ready = bool(self.ready.all())
        self.are_any_ready = bool(self.ready.any())
        self.are_all_open = not (self.ready & self.unschedulable).any()


_MANY_LABELS = 64
"""Columns of labels from which on it is worth to know which labels nodes have at all."""

_NO_LABEL = " "
"""No label has this key."""

_CACHE_LIMIT = 4096
"""Cached values; a mask of 5,000 nodes is 5 KB, so the cache stays below some 20 MB."""
