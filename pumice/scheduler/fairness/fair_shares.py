"""Shares of a cluster: how much each of several queues deserves by weight, and dominant shares.

Volcano's `proportion` fills queues in rounds. Each round divides what is left by weight; a queue gives back what exceeds
its request or its limit, and is raised to its guarantee. The rounds end when nothing is left or every queue has what it
asked for. Where queues lack different resources, what is left halves from round to round and is never all given away.

Here the end of these rounds is computed directly. After the first round each queue that can still grow grows by its weight,
resource by resource, so that the remainder is the level of a piecewise linear function. Its corners are sorted once.

One result differs. Volcano's first round can give away more than there is, because guarantees are added to what the
other queues get by weight. Then those queues keep what a guarantee needs. Here the level of the first round is lowered
instead, so that the shares add up to the cluster (or to the guarantees, if these alone are more).
"""

from collections.abc import Sequence
from functools import cached_property
from math import fsum

import numpy as np

from pumice.scheduler.model.axis import SCORED_CPU, SCORED_MEMORY, Floats, Ints

_CLEARLY = 1 - 1e-9
"""Part of the cluster up to which all queues have what they ask for, however sums of fractions are rounded."""


def fair_shares(
    total: Floats, weights: Floats, requests: Floats | Ints, limits: Floats, guarantees: Floats
) -> Floats:
    """What each queue deserves, by queue and resource.

    Args:
        total: What the cluster has, by resource.
        weights: Weights of the queues, whole numbers; a queue of weight 0 deserves its guarantee.
        requests: What the pods of each queue hold and wait for, by queue and resource.
        limits: What each queue may have at most, by queue and resource.
        guarantees: What each queue deserves in any case, by queue and resource.
    """
    most = np.maximum(np.minimum(requests, limits), guarantees)
    plain = weights.tolist()
    if 0 in plain:
        most[weights == 0] = guarantees[weights == 0]
    is_short = np.add.reduce(most) > total * _CLEARLY
    for column in is_short.nonzero()[0].tolist() if any(plain) else ():
        lines = zip(plain, guarantees[:, column].tolist(), most[:, column].tolist(), strict=True)
        most[:, column] = _divided(total.item(column), list(lines))
    return most


def _divided(total: float, queues: Sequence[tuple[float, float, float]]) -> list[float]:
    """What queues deserve of a resource of which there is less than they may have and ask for.

    In plain numbers: there are few queues and such resources, for which `numpy` takes longer.

    Args:
        total: How much there is.
        queues: The weight of each, the least that it deserves, and the most.
    """
    part = total / sum([weight for weight, _, _ in queues])
    first = [min(max(part * weight, low), high) for weight, low, high in queues]
    if (given := fsum(first)) > total:
        level = _level(total, [(weight, 0.0, low, high) for weight, low, high in queues])
        first = [min(max(level * weight, low), high) for weight, low, high in queues]
        given = fsum(first)
    grown = list(zip(queues, first, strict=True))
    level = _level(
        max(total, given), [(weight, low, low, high) for (weight, _, high), low in grown]
    )
    return [min(low + level * weight, high) for (weight, _, high), low in grown]


def _level(amount: float, queues: Sequence[tuple[float, float, float, float]]) -> float:
    """The largest level at which the queues together get no more than an amount.

    At level l a queue gets `base + l * weight`, but at least `low` and at most `high`. Where all of them together cannot get
    the amount, it is the level at which each gets most; where the least is too much already, the one at which each gets least.

    Args:
        amount: The amount.
        queues: The weight of each, `base`, `low` and `high`; the last two are equal for a queue of weight 0.
    """
    corners: list[tuple[float, float]] = []
    for weight, base, low, high in queues:
        if weight:
            corners += [((low - base) / weight, weight), ((high - base) / weight, -weight)]
        amount -= low
    corners.sort()
    level, slope = corners[0][0], 0.0
    for corner, change in corners if amount > 0 else ():
        more = slope * (corner - level)
        if more > amount:
            return level + amount / slope
        amount -= more
        level = corner
        slope += change
    return level


class DominantShare:
    """Shares of a total; resources of which there is nothing do not count."""

    def __init__(self, total: Ints) -> None:
        """Shares of a total, given by column."""
        self._present = [
            (column, amount)
            for column, amount in enumerate(total.tolist())
            if amount > 0 and column not in (SCORED_CPU, SCORED_MEMORY)
        ]

    @cached_property
    def columns(self) -> Ints:
        """Columns of the resources that count."""
        return np.array([column for column, _ in self._present], dtype=np.int64)

    @cached_property
    def totals(self) -> Floats:
        """What there is of them."""
        return np.array([float(amount) for _, amount in self._present])

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
