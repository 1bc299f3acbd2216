"""Volcano's gauges of PodGroups by queue, read from the counts of the leader."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pumice.controller.queues import COUNTS, GroupCounts

__all__ = ["QueueGroupsCollector"]


class QueueGroupsCollector(Collector):
    """Reads the counts at each scrape, so that changes cost nothing and deleted queues have no series."""

    def __init__(self) -> None:
        """Make a collector that shows no queue yet."""
        self._counts = GroupCounts()
        self._names: Callable[[], Iterable[str]] = tuple

    @contextmanager
    def showing(self, counts: GroupCounts, names: Callable[[], Iterable[str]]) -> Iterator[None]:
        """Show the counts of existing queues inside the block."""
        self._counts, self._names = counts, names
        try:
            yield
        finally:
            self._counts, self._names = GroupCounts(), tuple

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All gauges."""
        names = list(self._names())
        for phase, field in COUNTS.items():
            family = GaugeMetricFamily(
                f"volcano_queue_pod_group_{field}_count",
                f"PodGroups of a queue in phase {phase}.",
                labels=["queue_name"],
            )
            for name in names:
                family.add_metric([name], self._counts.of(name).get(phase, 0))
            yield family
