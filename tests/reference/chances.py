"""Random choices from a seed, in the words that draw clusters."""

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chances:
    """A source of choices; the same seed makes the same ones."""

    def __init__(self, seed: object) -> None:
        self._random = random.Random(f"{seed}")

    def happens(self, share: float) -> bool:
        """True in this share of the cases."""
        return self._random.random() < share

    def one(self, choices: Sequence[T]) -> T:
        """One of these."""
        return self._random.choice(choices)

    def some(self, choices: Sequence[T], least: int, most: int) -> list[T]:
        """Some of these, each at most once, in an order of their own."""
        return self._random.sample(choices, min(len(choices), self.number(least, most)))

    def number(self, least: int, most: int) -> int:
        """A number from `least` to `most`."""
        return self._random.randint(least, most)
