"""Resource fields of queue specs, in columns."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from pumice.api.quantities import parse_milli
from pumice.api.queues import Queue
from pumice.api.requests import Amounts
from pumice.scheduler.model.axis import Axis, Bools, Ints, in_units, read_only

UNLIMITED = 1 << 62
"""What stands in the column of a resource that is not limited."""

MAX_WEIGHT = 65535
"""The largest weight that admission allows."""


def weight_of(queue: Queue) -> int:
    """Weight of a queue, 1 by default; a value that admission would refuse counts as the nearest valid one."""
    weight = queue.spec.weight
    return 1 if weight is None else min(max(weight, 0), MAX_WEIGHT)


class QueueAmounts(msgspec.Struct, frozen=True):
    """Amounts of one queue's spec, in milli-units by resource name; what is below 0 counts as nothing."""

    capability: Amounts
    deserved: Amounts
    guarantee: Amounts

    @classmethod
    def of(cls, queue: Queue) -> "QueueAmounts":
        """Read a queue.

        Raises:
            QuantityError: An amount cannot be read.
        """
        spec = queue.spec
        guarantee = spec.guarantee.resource if spec.guarantee is not None else None
        return cls(_read(spec.capability), _read(spec.deserved), _read(guarantee))


class QueueLimits(msgspec.Struct, frozen=True):
    """The same of all queues, by row and column; amounts are read-only.

    Attributes:
        weights: Weights; 1 where a queue has none.
        capability: Upper limits; `UNLIMITED` where a queue names none.
        deserved: What stands in `spec.deserved`; 0 where a queue names nothing.
        guarantee: What stands in `spec.guarantee`; 0 where a queue names nothing.
        reclaimable: Whether its pods may be evicted for those of other queues.
    """

    weights: Ints
    capability: Ints
    deserved: Ints
    guarantee: Ints
    reclaimable: Bools

    @classmethod
    def of(
        cls, queues: Sequence[Queue], amounts: Mapping[str, QueueAmounts], axis: Axis
    ) -> "QueueLimits":
        """Put queues into columns; resources that no node and no pod has named are left out."""
        weights = [weight_of(queue) for queue in queues]
        shape = (len(queues), len(axis))
        columns = (np.full(shape, UNLIMITED), np.zeros(shape), np.zeros(shape))
        capability, deserved, guarantee = (each.astype(np.int64) for each in columns)
        for row, queue in enumerate(queues):
            own = amounts.get(queue.metadata.name)
            if own is None:
                continue
            _fill(capability[row], own.capability, axis)
            _fill(deserved[row], own.deserved, axis)
            _fill(guarantee[row], own.guarantee, axis)
        read_only(capability, deserved, guarantee)
        reclaimable: Bools = np.array(
            [queue.spec.reclaimable is not False for queue in queues], dtype=np.bool_
        )
        return cls(np.array(weights, dtype=np.int64), capability, deserved, guarantee, reclaimable)


def _read(resources: Mapping[str, str | int] | None) -> Amounts:
    return {name: max(parse_milli(value), 0) for name, value in (resources or {}).items()}


def _fill(row: Ints, amounts: Amounts, axis: Axis) -> None:
    for name, milli in amounts.items():
        column = axis.find(name)
        if column is not None:
            row[column] = in_units(column, milli, has=True)
