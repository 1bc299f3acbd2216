"""Which column of the node table stands for which resource.

A column is opened the first time that a resource is named by a node or a pod, and is never closed: the
few resource names of a cluster are used again and again.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pumice.api.requests import Amounts

__all__ = [
    "CPU",
    "LARGEST",
    "LARGEST_SCORED",
    "MEMORY",
    "PODS",
    "SCORED_CPU",
    "SCORED_MEMORY",
    "Axis",
    "Bools",
    "Floats",
    "Ints",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CPU, MEMORY, PODS, SCORED_CPU, SCORED_MEMORY = range(5)
"""Columns that every table has.

The last two hold CPU and memory as the spreading scorers count them: a container that asks for nothing
counts with a small default, so that a hundred of them do not look like none. They are kept like any other
column, so placing a pod is one vector addition; no pod ever *needs* them to fit.
"""

LARGEST = 1 << 58
"""Largest amount of one column, in milli-units (256 TiB of memory): what is more is cut off, so that the
sums of a node stay far away from the end of a 64-bit integer."""

LARGEST_SCORED = 1 << 56
"""The same for the scored columns, which are multiplied by 100."""


class Axis:
    """Resource names in column order."""

    __slots__ = ("_columns", "names")

    def __init__(self) -> None:
        self.names: list[str] = ["cpu", "memory", "pods", "scored cpu", "scored memory"]
        self._columns = {name: column for column, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def find(self, name: str) -> int | None:
        """Column of a resource that has been named before."""
        return self._columns.get(name)

    def column(self, name: str) -> int:
        """Column of a resource; opens one for a new name."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = len(self.names)
            self.names.append(name)
        return column

    def vector(self, amounts: Mapping[str, int]) -> Ints:
        """Milli-units in column order, as long as the axis is now; opens columns for new names."""
        columns = [self.column(name) for name in amounts]
        vector = np.zeros(len(self), dtype=np.int64)
        for column, amount in zip(columns, amounts.values(), strict=True):
            vector[column] = min(amount, LARGEST)
        return vector

    def amounts(self, vector: Ints) -> Amounts:
        """A vector as resource names and milli-units, without zeros and the scored columns."""
        return {
            name: int(amount)
            for column, (name, amount) in enumerate(zip(self.names, vector, strict=False))
            if amount and column not in (SCORED_CPU, SCORED_MEMORY)
        }
