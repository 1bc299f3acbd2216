"""Columns of the node table: their resources and units.

A column is added when a node or a pod first names a resource, and is never removed: a cluster has few resource names. A pod may
name thousands that no node has, so what pods name beyond a number of such resources has one column together. A node's name always gets a
column of its own; shapes of pods that were counted in the common one are then counted again (`ShapeTable.outdated`).

CPU is counted in milli-cores, everything else in whole units: memory in bytes, pods and devices by the piece. Requests and
limits are rounded up, what a node has is rounded down. Sums over 20,000 nodes and over 250,000 pods fit into 64 bits.
"""

from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.api.quantities import MILLI
from pumice.api.requests import Amounts

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CPU, MEMORY, PODS, SCORED_CPU, SCORED_MEMORY = range(5)
"""Columns that every table has.

The last two hold CPU and memory as the spreading scorers count them: a container that asks for nothing
counts with a small default, so that a hundred of them do not look like none. They are kept like any other
column, so placing a pod is one vector addition; no pod ever *needs* them to fit.
"""

LARGEST = 1 << 45
"""Largest amount of one column (32 TiB of memory), also below 0: what is more is cut off, so that the sums over 250,000 pods or nodes,
and 100 times the amounts of a node, stay below the end of a 64-bit integer."""


MOST_OF_PODS = 64
"""Resources with a column of their own that a pod named before any node did."""

_OTHERS = "other resources"
"""Column of all further ones; no node has any of it."""


class Axis:
    """Resource names in column order."""

    def __init__(self) -> None:
        self.names: list[str] = ["cpu", "memory", "pods", "scored cpu", "scored memory"]
        self._columns = {name: column for column, name in enumerate(self.names)}
        self._of_pods = 0

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

    def vector(self, amounts: Mapping[str, int], *, has: bool = False) -> Ints:
        """Milli-units as columns, as many as the axis has now; opens columns for new names. What a node has is rounded down."""
        columns = [(self.column if has else self._asked)(name) for name in amounts]
        vector = np.zeros(len(self), dtype=np.int64)
        for column, amount in zip(columns, amounts.values(), strict=True):
            vector[column] = in_units(column, amount, has=has) or vector[column]
        return vector

    def _asked(self, name: str) -> int:
        """Column of a resource that a pod asks for."""
        if name not in self._columns:
            if self._of_pods == MOST_OF_PODS:
                return self.column(_OTHERS)
            self._of_pods += 1
        return self.column(name)

    def known(self, amounts: Mapping[str, int]) -> Ints:
        """Milli-units as columns, without resources that have none: a PodGroup may name any number of them."""
        vector = np.zeros(len(self), dtype=np.int64)
        for name, amount in amounts.items():
            column = self._columns.get(name)
            if column is not None:
                vector[column] = in_units(column, amount)
        return vector

    def unknown(self, names: Iterable[str]) -> int:
        """How many of these resources have no column of their own."""
        return sum(name not in self._columns for name in names)

    def has_all(self, names: Set[str]) -> bool:
        """Whether each of these resources was named by a node or a pod."""
        return names <= self._columns.keys()

    def amounts(self, vector: Ints) -> Amounts:
        """A vector as resource names and milli-units, without zeros and the scored columns."""
        return {
            name: int(amount) * (1 if column == CPU else MILLI)
            for column, (name, amount) in enumerate(zip(self.names, vector, strict=False))
            if amount and column not in (SCORED_CPU, SCORED_MEMORY) and name != _OTHERS
        }


def in_units(column: int, milli: int, *, has: bool = False) -> int:
    """Milli-units of a resource in the unit of its column; what a node has is rounded down."""
    if column not in (CPU, SCORED_CPU):
        milli = milli // MILLI if has else -(-milli // MILLI)
    return max(min(milli, LARGEST), -LARGEST)


def read_only(*columns: NDArray[Any]) -> None:
    """Have writing to columns fail, because what shares them would be wrong from then on."""
    for each in columns:
        each.setflags(write=False)
