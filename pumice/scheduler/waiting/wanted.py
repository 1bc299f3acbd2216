"""What the pods ask for that parked gangs wait for a place for, and how many such places there are: tables that are kept from cycle to cycle.

After most events the same gangs wait as before, and few nodes have changed. So what they ask for is not collected again in each cycle, but
counted when a gang is parked, and no more when it is woken by a change of its own. Numbers of kinds are given again, so they may be kept
while a session decides, which parks no gang, and not longer. Places are counted again on the nodes that have changed.
"""

from collections.abc import Collection
from typing import TypeVar

import numpy as np

from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.free_room import Kinds, Needs
from pumice.scheduler.model.nodes import NodeTable

T = TypeVar("T")

_FIRST = 64
"""Kinds for which there is room in the beginning."""


class WantedKinds:
    """The kinds of pods of some gangs, each with a number while any gang has it."""

    def __init__(self) -> None:
        self._numbers: dict[Needs, int] = {}
        self._users: dict[int, int] = {}
        self._unused: list[int] = []
        self._amounts: Ints = np.zeros((_FIRST, 0), dtype=np.int64)
        self._places: Places | None = None

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, needs: Needs) -> int:
        """The number of a kind; -1 if no gang has it."""
        return self._numbers.get(needs, -1)

    def use(self, needs: Needs) -> int:
        """Count one more gang that has a kind; the number of the kind."""
        number = self._numbers.get(needs)
        if number is None:
            number = self._unused.pop() if self._unused else len(self._numbers)
            self._numbers[needs] = number
            self._users[number] = 0
            self._set(number, needs)
        self._users[number] += 1
        return number

    def release(self, needs: Needs) -> None:
        """Count one gang less that has a kind. Without a gang, `use` gives its number to another kind."""
        number = self._numbers[needs]
        self._users[number] -= 1
        if not self._users[number]:
            del self._numbers[needs], self._users[number]
            self._unused.append(number)

    def kinds(self, numbers: list[int]) -> Kinds:
        """What these kinds take, in this order."""
        amounts = self._amounts[numbers]
        columns = np.flatnonzero(amounts.any(axis=0))
        return Kinds(columns.tolist(), amounts[:, columns])

    def places(self, table: NodeTable, numbers: Collection[int]) -> "Places":
        """Places for pods of some kinds, and maybe of more, on all nodes of a settled table.

        They are those of the last session on the rows that have not changed since, unless a node or a kind is another one.
        """
        found = self._places
        if found is None or not found.begin_again(numbers):
            found = self._places = Places(self, table, sorted(numbers))
        return found

    def _set(self, number: int, needs: Needs) -> None:
        self._places = None
        height, width = self._amounts.shape
        missing = max(column for column, _ in needs) + 1 - width
        if number >= height or missing > 0:
            more = height if number >= height else 0
            self._amounts = np.pad(self._amounts, ((0, more), (0, max(missing, 0))))
        row = self._amounts[number]
        row[:] = 0
        for column, amount in needs:
            row[column] = amount


class Places:
    """How many pods of several kinds fit on some nodes, followed as pods come and go.

    Attributes:
        totals: Places for pods of the kinds, by their numbers.
    """

    def __init__(
        self, wanted: WantedKinds, table: NodeTable, numbers: list[int], mask: Bools | None = None
    ) -> None:
        """Count places for these kinds, on all nodes of a table or on those of a mask."""
        self._kinds = wanted.kinds(numbers)
        self._wanted = wanted
        self._table = table
        self._rows = table.rows()
        self._mask = mask
        self._seen = len(table.changes)
        self._most: list[int] | None = None
        self._free = self._look(slice(len(table)))
        self.totals = dict(zip(numbers, self._count(self._kinds), strict=True))
        self._others: dict[Needs, int] = {}

    def begin_again(self, numbers: Collection[int]) -> bool:
        """Serve another session, which asks for some kinds; False if nodes are others, or not all of these kinds are counted."""
        if self._rows is not self._table.rows() or not self.totals.keys() >= set(numbers):
            return False
        self._others.clear()
        self.follow()
        return True

    def among(self, mask: Bools) -> "Places":
        """The same on the nodes of a mask."""
        return Places(self._wanted, self._table, list(self.totals), mask)

    def count(self, needs: Needs) -> int:
        """Places for pods of a kind."""
        found = self.totals.get(self._wanted.number(needs))
        if found is None:
            found = self._others.get(needs)
        if found is None:
            if self._most is None:
                self._most = self._free.max(axis=0, initial=0).tolist()
            most = self._most
            if any(column >= len(most) or amount > most[column] for column, amount in needs):
                return 0
            found = self._others[needs] = self._count(Kinds.of([needs]))[0]
        return found

    def follow(self) -> None:
        """Take in what has changed since the last call."""
        seen, changes = self._seen, self._table.changes
        self._seen = len(changes)
        if seen == self._seen:
            return
        rows = np.array(sorted({row for row in changes[seen:] if row >= 0}), dtype=np.int64)
        now = self._look(rows)
        changed = (now != self._free[rows]).any(axis=1)
        if not changed.any():
            return
        rows, now = rows[changed], now[changed]
        before_and_now = np.concatenate((self._free[rows], now))
        self.totals = _moved(self.totals, self._kinds, before_and_now)
        if self._others:
            self._others = _moved(self._others, Kinds.of(list(self._others)), before_and_now)
        self._free[rows] = now
        self._most = None

    def _count(self, kinds: Kinds) -> list[int]:
        """Places on all nodes; those that have too little for each kind are left out first."""
        if not len(kinds.amounts):
            return []
        fits = np.ones(len(self._free), dtype=np.bool_)
        least = kinds.amounts.min(axis=0).tolist()
        for column, amount in zip(kinds.columns, least, strict=True):
            if amount:
                fits &= self._free[:, column] >= amount
        if not fits.any():
            return [0] * len(kinds.amounts)
        found: list[int] = kinds.places(self._free[fits]).sum(axis=1).tolist()
        return found

    def _look(self, rows: slice | Ints) -> Ints:
        """What is free on nodes, without negative amounts; nothing on those that the mask leaves out."""
        free: Ints = np.maximum(self._table.free(rows), 0)
        if self._mask is not None:
            free[~self._mask[rows]] = 0
        return free


def _moved(totals: dict[T, int], kinds: Kinds, free: Ints) -> dict[T, int]:
    """Places for pods of kinds after rows have changed: `free` has them as they were, and then as they are."""
    found = kinds.places(free)
    half = len(free) // 2
    more = found[:, half:].sum(axis=1) - found[:, :half].sum(axis=1)
    return {key: totals[key] + each for key, each in zip(totals, more.tolist(), strict=True)}
