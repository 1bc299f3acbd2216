"""Dominant shares: the largest part that an amount has of the cluster, over all resources."""

import numpy as np

from pumice.scheduler.model.axis import SCORED_CPU, SCORED_MEMORY, Floats, Ints

__all__ = ["DominantShare"]


class DominantShare:
    """Shares of a total; resources of which there is nothing do not count.

    Attributes:
        columns: Columns of the resources that count.
        totals: What there is of them.
    """

    __slots__ = ("_present", "columns", "totals")

    def __init__(self, total: Ints) -> None:
        """Shares of a total, given by column."""
        present = [
            (column, amount)
            for column, amount in enumerate(total.tolist())
            if amount > 0 and column not in (SCORED_CPU, SCORED_MEMORY)
        ]
        self._present = present
        self.columns: Ints = np.array([column for column, _ in present], dtype=np.int64)
        self.totals: Floats = np.array([float(amount) for _, amount in present])

    def of(self, vector: Ints) -> float:
        """Share of one amount, given by column."""
        held = vector.tolist()
        return max([held[column] / amount for column, amount in self._present], default=0.0)

    def of_rows(self, amounts: Ints) -> Floats:
        """Shares of several amounts, given by row and column."""
        if not len(self.columns):
            return np.zeros(len(amounts))
        shares: Floats = (amounts[:, self.columns] / self.totals).max(axis=1)
        return shares
