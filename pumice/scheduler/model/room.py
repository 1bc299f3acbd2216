"""The number of pods that fit on nodes, by arithmetic: an upper bound for any filter and any order of placing.

Pods of one shape take the same room wherever they go, so counting their places node by node is exact. Pods of several
shapes each take at least the smallest request among them, so counting places for that is a bound.
"""

from collections.abc import Sequence

import numpy as np

from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.shapes import PodShape

__all__ = ["Needs", "least", "places"]

Needs = tuple[tuple[int, int], ...]
"""Columns and milli-units of each that one pod takes; never empty, because every pod takes a slot."""

_CELLS = 1 << 20
"""Cells of the largest matrix that is computed at once: 8 MiB."""


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


def places(needs: Sequence[Needs], free: Ints) -> Ints:
    """How many pods fit into rows of free resources.

    Args:
        needs: What one pod takes, for each kind of pods.
        free: Milli-units by row and column; columns that it lacks count as empty.

    Returns:
        Counts by kind and row.
    """
    columns = sorted({column for each in needs for column, _ in each})
    amounts = np.zeros((len(needs), len(columns)), dtype=np.int64)
    position = {column: index for index, column in enumerate(columns)}
    for kind, each in enumerate(needs):
        for column, amount in each:
            amounts[kind, position[column]] = amount
    found = np.zeros((len(needs), len(free)), dtype=np.int64)
    step = max(1, _CELLS // max(1, len(needs)))
    for start in range(0, len(free), step):
        rows = free[start : start + step]
        fitting: Ints = np.full((len(needs), len(rows)), np.iinfo(np.int64).max)
        for index, column in enumerate(columns):
            wanted = amounts[:, index, None]
            room = rows[:, column] if column < rows.shape[1] else np.zeros(len(rows), np.int64)
            count = np.maximum(room, 0) // np.maximum(wanted, 1)
            np.minimum(fitting, count, out=fitting, where=wanted > 0)
        found[:, start : start + step] = fitting
    return found
