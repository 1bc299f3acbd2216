"""What queues deserve by weight, which follows from amounts at the beginning of a session; it is computed when it is asked for.

Sessions share it as long as these amounts stay the same, and the part that pods do not change for longer. So columns are read-only.

Amounts are whole numbers. What a queue deserves is a fraction; it is compared as the largest whole amount that does not
exceed it by more than `TOLERANCE`, so that rounding never refuses a pod that fits exactly.
"""

from functools import cached_property

import numpy as np

from pumice.scheduler.fairness.fair_shares import fair_shares
from pumice.scheduler.model.axis import (
    SCORED_CPU,
    SCORED_MEMORY,
    Bools,
    Floats,
    Ints,
    read_only,
)
from pumice.scheduler.model.queue_specs import UNLIMITED, QueueLimits
from pumice.scheduler.model.queues import QueueTable
from pumice.scheduler.model.running_pods import Away

TOLERANCE = 0.1
_ROUNDING = 1e-14
"""Relative error of sums of fractions."""


def in_whole_amounts(deserved: Floats | Ints) -> Ints:
    """The largest whole amounts of what queues deserve, as they are meant without rounding; nothing is negative."""
    found: Ints = (deserved * (1 + _ROUNDING) + TOLERANCE).astype(np.int64)
    return found


class QueueCeilings:
    """What queues may have, whatever their pods ask for.

    Attributes:
        limits: What the specs of queues say.
        total: What the cluster has, by column.
        away: What pods hold on nodes that are not ready.
        takes_part: Queues with jobs: others deserve nothing.
        guarantee: What each queue is guaranteed, by row and column.
        present: What each queue may have at most, without its pods on nodes that are not ready.
        highest: The same with them.
        weighted: Its part of the cluster by weight, with its guarantee.
    """

    def __init__(self, limits: QueueLimits, total: Ints, away: Away, takes_part: Bools) -> None:
        self.limits, self.total, self.away, self.takes_part = limits, total, away, takes_part
        capability = limits.capability
        self.guarantee: Ints = np.minimum(limits.guarantee, capability)
        rest = np.maximum(total - self.guarantee.sum(axis=0), 0)
        most = rest + self.guarantee
        self.present: Ints = np.minimum(np.maximum(capability - away.held, 0), most)
        self.highest: Ints = np.minimum(capability, most + away.needed)
        self._total = total.astype(np.float64)
        self._rows = takes_part.nonzero()[0]
        weights = limits.weights.astype(np.float64)
        all_weights = max(float(weights[self._rows].sum()), 1.0)
        parts = rest * weights[:, np.newaxis] / all_weights + self.guarantee
        self.weighted: Ints = np.floor(np.minimum(parts, self.present)).astype(np.int64)
        self._taking = (
            weights[self._rows],
            self.present[self._rows].astype(np.float64),
            self.guarantee[self._rows].astype(np.float64),
        )
        read_only(self.guarantee, self.present, self.highest, self.weighted)

    def is_of(self, limits: QueueLimits, total: Ints, away: Away, takes_part: Bools) -> bool:
        """Whether it follows from these amounts."""
        return (
            self.limits is limits
            and (self.total is total or np.array_equal(self.total, total))
            and (self.away is away or self.away.is_equal(away))
            and self.takes_part.tobytes() == takes_part.tobytes()
        )

    def deserved(self, requests: Ints) -> Floats:
        """What each queue deserves, by row and column, if its pods hold and ask for so much."""
        deserved = np.zeros(requests.shape)
        weights, limits, guarantees = self._taking
        deserved[self._rows] = fair_shares(
            self._total, weights, requests[self._rows], limits, guarantees
        )
        return deserved


class QueueDivision:
    """What queues deserve of the cluster.

    Attributes:
        ceilings: What they may have.
        asked: What their pods hold and wait for, as bytes.
    """

    def __init__(self, ceilings: QueueCeilings, requests: Ints) -> None:
        self.ceilings = ceilings
        self._requests = requests
        self.asked = requests.tobytes()
        self._parts: dict[int, list[tuple[int, float]]] = {}

    @classmethod
    def of(
        cls, known: "QueueDivision | None", total: Ints, shares: QueueTable, away: Away, held: Ints
    ) -> "QueueDivision":
        """What queues deserve whose pods hold so much and wait for more; the one that is known if it follows from the same amounts."""
        amounts = shares.limits, total, away, shares.jobs > 0
        requests = held + shares.pending
        if known is None or not known.ceilings.is_of(*amounts):
            return cls(QueueCeilings(*amounts), requests)
        return known if known.asked == requests.tobytes() else cls(known.ceilings, requests)

    @cached_property
    def deserved(self) -> Floats:
        """What each queue deserves, by row and column."""
        deserved = self.ceilings.deserved(self._requests)
        read_only(deserved)
        return deserved

    @cached_property
    def _whole(self) -> Ints:
        found = in_whole_amounts(self.deserved)
        return np.minimum(found, self.ceilings.present, out=found)

    @cached_property
    def whole(self) -> Ints:
        """What each queue may hold: what it deserves, and what its pods hold on nodes that are not ready."""
        whole = self._whole + self.ceilings.away.held
        # A queue that deserves everything is limited by the nodes alone.
        whole[self._whole >= self.ceilings.total] = UNLIMITED
        whole[:, SCORED_CPU : SCORED_MEMORY + 1] = UNLIMITED
        read_only(whole)
        return whole

    @cached_property
    def rights(self) -> Ints:
        """What each queue may take back up to: its part by weight, or what it deserves if that is more."""
        found: Ints = np.maximum(self.ceilings.weighted, self._whole) + self.ceilings.away.held
        read_only(found)
        return found

    def parts(self, row: int) -> list[tuple[int, float]]:
        """Resources of which a queue deserves anything, by column, and how much."""
        found = self._parts.get(row)
        if found is None:
            found = self._parts[row] = [
                (column, share)
                for column, share in enumerate(self.deserved[row].tolist())
                if share >= TOLERANCE and column not in (SCORED_CPU, SCORED_MEMORY)
            ]
        return found
