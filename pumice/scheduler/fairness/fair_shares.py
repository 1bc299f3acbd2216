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

from functools import cached_property

import numpy as np

from pumice.scheduler.model.axis import SCORED_CPU, SCORED_MEMORY, Floats, Ints

_CLEARLY = 1 - 1e-9
"""Part of the cluster up to which all queues have what they ask for, however sums of fractions are rounded."""


def fair_shares(
    total: Floats, weights: Floats, requests: Floats, limits: Floats, guarantees: Floats
) -> Floats:
    """What each queue deserves, by queue and resource.

    Args:
        total: What the cluster has, by resource.
        weights: Weights of the queues; a queue of weight 0 deserves its guarantee.
        requests: What the pods of each queue hold and wait for, by queue and resource.
        limits: What each queue may have at most, by queue and resource.
        guarantees: What each queue deserves in any case, by queue and resource.
    """
    most = np.maximum(np.minimum(requests, limits), guarantees)
    if not weights.all():
        most[weights == 0] = guarantees[weights == 0]
    is_short = most.sum(axis=0) > total * _CLEARLY
    if is_short.any() and weights.any():
        some = is_short.nonzero()[0]
        most[:, some] = _divided(total[some], weights, guarantees[:, some], most[:, some])
    return most


def _divided(total: Floats, weights: Floats, guarantees: Floats, most: Floats) -> Floats:
    """The same for resources of which there is less than what all queues may have and ask for."""
    weight = weights[:, np.newaxis]
    first = _between(guarantees, total / weights.sum() * weight, most)
    given = np.add.reduce(first)
    too_much = given > total
    if too_much.any():
        level = _level(total, weight, np.zeros_like(most), guarantees, most)
        first = np.where(too_much, _between(guarantees, level * weight, most), first)
        given = np.add.reduce(first)
    level = _level(np.maximum(total, given), weight, first, first, most)
    return _between(first, first + level * weight, most)


def _between(low: Floats, values: Floats, high: Floats) -> Floats:
    """Values that are at least `low` and at most `high`; `numpy.clip` takes longer for few queues."""
    found: Floats = np.minimum(np.maximum(values, low), high)
    return found


def _level(amount: Floats, weight: Floats, base: Floats, low: Floats, high: Floats) -> Floats:
    """For each resource the largest level at which the queues together get no more than an amount.

    At level l a queue gets `base + l * weight`, but at least `low` and at most `high`. Where all of them together cannot get
    the amount, it is the level at which each gets most; where the least is too much already, the one at which each gets least.
    """
    # A queue of weight 0 gets the least, which is the most for it: its corners change no slope.
    divisor = np.maximum(weight, 1.0)
    corners = np.concatenate([(low - base) / divisor, (high - base) / divisor])
    order, column = corners.argsort(axis=0, kind="stable"), np.arange(corners.shape[1])
    corners = corners[order, column]
    slopes = np.concatenate([weight, -weight])[order, 0].cumsum(axis=0)
    gained = np.zeros_like(corners)
    (slopes[:-1] * (corners[1:] - corners[:-1])).cumsum(axis=0, out=gained[1:])
    wanted = amount - np.add.reduce(low)
    segment = np.maximum(np.add.reduce(gained <= wanted) - 1, 0)
    slope = slopes[segment, column]
    is_inside = (segment < len(corners) - 1) & (slope > 0) & (wanted > 0)
    beyond = (wanted - gained[segment, column]) / np.where(is_inside, slope, 1.0)
    level: Floats = corners[segment, column] + np.where(is_inside, beyond, 0.0)
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
