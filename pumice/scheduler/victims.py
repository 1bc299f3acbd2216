"""Which candidates for eviction the plugins allow."""

from collections.abc import Iterator, Sequence
from functools import total_ordering
from itertools import groupby

import numpy as np

from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.candidates import Candidates, Preemptor, VictimCheck
from pumice.scheduler.points import Extension, SortKey

__all__ = ["Reversed", "allowed"]


@total_ordering
class Reversed:
    """A sort key in the opposite order."""

    __slots__ = ("_key",)

    def __init__(self, key: SortKey) -> None:
        self._key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and bool(self._key == other._key)

    def __lt__(self, other: "Reversed") -> bool:
        return bool(other._key < self._key)

    __hash__ = None  # type: ignore[assignment]


def allowed(
    checks: Sequence[Extension[VictimCheck]], preemptor: Preemptor, candidates: Candidates
) -> Bools:
    """Which candidates may go for a pod.

    Plugins of a tier must agree. Tiers are alternatives, node by node: the first one that allows anyone on a node
    decides about that node.
    """
    chosen = np.zeros(len(candidates), dtype=np.bool_)
    is_open = np.ones(len(candidates), dtype=np.bool_)
    last = checks[-1].tier if checks else 0
    for number, tier in _tiers(checks):
        masks = [mask for each in tier if (mask := each.call(preemptor, candidates)) is not None]
        if not masks:
            continue
        agreed = np.logical_and.reduce(masks) & is_open
        chosen |= agreed
        if number == last:
            break
        is_open &= ~np.isin(candidates.node, candidates.node[agreed])
    return chosen


def _tiers(
    checks: Sequence[Extension[VictimCheck]],
) -> Iterator[tuple[int, Iterator[Extension[VictimCheck]]]]:
    return groupby(checks, key=lambda each: each.tier)
