"""What the pods ask for that parked gangs wait for a place for: a table that is kept from cycle to cycle.

After most events the same gangs wait as before. So what they ask for is not collected again in each cycle, but counted when a gang
is parked, and no more when it is woken by a change of its own. Numbers of kinds are given again, so they may be kept while a
session decides, which parks no gang, and not longer.
"""

import numpy as np

from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.free_room import Kinds, Needs

_FIRST = 64
"""Kinds for which there is room in the beginning."""


class WantedKinds:
    """The kinds of pods of some gangs, each with a number while any gang has it."""

    def __init__(self) -> None:
        self._numbers: dict[Needs, int] = {}
        self._users: dict[int, int] = {}
        self._unused: list[int] = []
        self._amounts: Ints = np.zeros((_FIRST, 0), dtype=np.int64)

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

    def _set(self, number: int, needs: Needs) -> None:
        height, width = self._amounts.shape
        missing = max(column for column, _ in needs) + 1 - width
        if number >= height or missing > 0:
            more = height if number >= height else 0
            self._amounts = np.pad(self._amounts, ((0, more), (0, max(missing, 0))))
        row = self._amounts[number]
        row[:] = 0
        for column, amount in needs:
            row[column] = amount
