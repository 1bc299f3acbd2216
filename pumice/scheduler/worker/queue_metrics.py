"""Volcano's gauges by queue, computed from the state of the scheduler when they are read.

A cycle does not pay for them, and a queue that is deleted has none. A process that does not schedule shows none. Amounts of a
queue include those of the queues below it, as its `status.allocated` does.
"""

from collections.abc import Iterator

import numpy as np
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pumice.api.quantities import MILLI
from pumice.scheduler import ClusterState
from pumice.scheduler.model.axis import CPU, MEMORY, SCORED_CPU, SCORED_MEMORY, Floats, Ints

__all__ = ["QueueCollector"]

_AMOUNTS = {
    "allocated": "What the pods of a queue hold",
    "request": "What the pods of a queue hold or ask for",
    "inqueue": "What PodGroups that were let into a queue may still take up to their minimum",
    "deserved": "What a queue deserves, if a plugin computes it",
    "capacity": "Limit that a queue states, if a plugin enforces it",
    "real_capacity": "What a queue may hold at most, if a plugin computes it",
}
_NUMBERS = {
    "weight": "Weight of a queue.",
    "share": "Largest share of what it deserves that a queue holds, of any resource, if a plugin computes it.",
    "overused": "1 for a queue that is to get nothing more, if a plugin computes it.",
}
_UNLIMITED = float(1 << 60)


class QueueCollector(Collector):
    """Reads the state of the process that schedules.

    Attributes:
        state: The state; None while this process does not schedule.
    """

    def __init__(self) -> None:
        """Make a collector that shows no queue yet."""
        self.state: ClusterState | None = None

    def collect(self) -> Iterator[Metric]:
        """All gauges."""
        state, amounts, numbers = self.state, _no_amounts(), _no_amounts()
        if state is not None:
            table = state.shares
            amounts = {
                "allocated": table.tree,
                "request": table.below(table.allocated + table.pending),
                "inqueue": table.below(table.reserved),
            }
            weights = [queue.spec.weight or 1 for queue in table.queues]
            numbers = {"weight": np.array(weights, dtype=np.int64)}
            for figure, values in state.figures.items():
                (amounts if values.ndim > 1 else numbers)[figure] = values
        names = state.shares.names if state is not None else ()
        for figure, text in _AMOUNTS.items():
            yield from _families(figure, text, names, amounts.get(figure), state)
        for figure, text in _NUMBERS.items():
            family = GaugeMetricFamily(f"volcano_queue_{figure}", text, labels=["queue_name"])
            for name, value in zip(names, numbers.get(figure, ()), strict=False):
                family.add_metric([name], float(value))
            yield family


def _no_amounts() -> dict[str, Ints | Floats]:
    return {}


def _families(
    figure: str,
    text: str,
    names: tuple[str, ...],
    values: Ints | Floats | None,
    state: ClusterState | None,
) -> Iterator[Metric]:
    """The three gauges of a kind of amounts."""
    prefix, label = f"volcano_queue_{figure}", "queue_name"
    for column, unit, shown in ((CPU, "milli_cpu", "CPU"), (MEMORY, "memory_bytes", "memory")):
        family = GaugeMetricFamily(f"{prefix}_{unit}", f"{text}: {shown}.", labels=[label])
        if values is not None:
            for name, amount in zip(names, values[:, column].tolist(), strict=True):
                if amount < _UNLIMITED:
                    family.add_metric([name], amount)
        yield family
    family = GaugeMetricFamily(
        f"{prefix}_scalar_resources",
        f"{text}: other resources, in thousandths.",
        labels=[label, "resource"],
    )
    if values is not None and state is not None:
        rows, columns = np.nonzero((values > 0) & (values < _UNLIMITED))
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            if column not in (CPU, MEMORY, SCORED_CPU, SCORED_MEMORY):
                resource = state.axis.names[column]
                family.add_metric([names[row], resource], float(values[row, column]) * MILLI)
    yield family
