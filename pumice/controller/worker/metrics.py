"""The controller's metrics, and Volcano's gauges of PodGroups by queue, which are read from the counts of the leader."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pumice.api.keys import DEFAULT_QUEUE
from pumice.api.meta import Raw
from pumice.controller.jobs.phases import COMPLETED, FAILED
from pumice.controller.queues import COUNTS, GroupCounts

__all__ = [
    "ControllerMetrics",
    "QueueGroupsCollector",
]

_MILLISECONDS = tuple(5.0 * 2**power for power in range(18))
"""5 ms to 11 minutes."""

_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0)


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


class ControllerMetrics:
    """Metrics of one controller.

    Some have Volcano's names, for existing dashboards. Counts among them are gauges, because a counter's name would end
    in `_total`.

    Attributes:
        registry: Registry of the metrics.
        passes: Passes over Jobs by result: `idle`, `done`, `again`, `failed`.
        pass_seconds: Duration of a pass with its writes.
        writes: Writes by verb, kind and result.
        phases: Phases that Jobs entered.
        completed: Times that a Job was completed, by Job (`namespace/name`) and queue, while it exists.
        failed: Times that a Job failed, likewise.
        job_flows_succeeded: Times that a JobFlow succeeded, by namespace.
        job_flows_failed: Times that a JobFlow failed, likewise.
        first_pods: Milliseconds from the creation of a Job to that of its first pods.
        jobs: Jobs known.
        leading: 1 while this process works.
        events_dropped: Events that were not written, by reason.
        queues: PodGroups by queue and phase.
    """

    def __init__(self) -> None:
        """Register the metrics."""
        self.registry = CollectorRegistry()
        name = "pumice_controller_"
        self.passes = Counter(
            f"{name}passes", "Passes over Jobs.", ["result"], registry=self.registry
        )
        self.pass_seconds = Histogram(
            f"{name}pass_seconds",
            "Duration of a pass over a Job, with its writes.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.writes = Counter(
            f"{name}writes",
            "Writes to the API server.",
            ["verb", "kind", "result"],
            registry=self.registry,
        )
        self.phases = Counter(
            f"{name}job_phases", "Phases that Jobs entered.", ["phase"], registry=self.registry
        )
        self._ended: dict[str, set[tuple[Gauge, tuple[str, str]]]] = {}
        by_job = ["job_name", "queue_name"]
        self.completed = Gauge(
            "volcano_job_completed_phase_count",
            "Times that a Job was completed.",
            by_job,
            registry=self.registry,
        )
        self.failed = Gauge(
            "volcano_job_failed_phase_count",
            "Times that a Job failed.",
            by_job,
            registry=self.registry,
        )
        self.job_flows_succeeded = Gauge(
            "volcano_jobflow_succeed_phase_count",
            "Times that a JobFlow succeeded.",
            ["jobflow_namespace"],
            registry=self.registry,
        )
        self.job_flows_failed = Gauge(
            "volcano_jobflow_failed_phase_count",
            "Times that a JobFlow failed.",
            ["jobflow_namespace"],
            registry=self.registry,
        )
        self.first_pods = Histogram(
            "volcano_controller_job_to_pod_creation_latency_milliseconds",
            "Time from the creation of a Job to that of its first pods.",
            buckets=_MILLISECONDS,
            registry=self.registry,
        )
        self.jobs = Gauge(f"{name}jobs", "Jobs known.", registry=self.registry)
        self.leading = Gauge(
            f"{name}leading", "1 while this process works.", registry=self.registry
        )
        self.events_dropped = Counter(
            f"{name}events_dropped",
            "Events that were not written: `object`, too many about one object; `namespace`, too many waited in one "
            "namespace; `refused`, the API server did not take them.",
            ["reason"],
            registry=self.registry,
        )
        self.queues = QueueGroupsCollector()
        self.registry.register(self.queues)

    def entered(self, phase: str, job: Raw) -> None:
        """Count that a Job entered a phase."""
        self.phases.labels(phase).inc()
        if phase not in (COMPLETED, FAILED):
            return
        meta, spec = job["metadata"], job.get("spec") or {}
        name = f"{meta.get('namespace', '')}/{meta['name']}"
        labels = (name, spec.get("queue") or DEFAULT_QUEUE)
        counter = self.completed if phase == COMPLETED else self.failed
        counter.labels(*labels).inc()
        self._ended.setdefault(name, set()).add((counter, labels))

    def job_flow_entered(self, phase: str, namespace: str) -> None:
        """Count that a JobFlow entered a phase."""
        if phase == "Succeed":
            self.job_flows_succeeded.labels(namespace).inc()
        elif phase == "Failed":
            self.job_flows_failed.labels(namespace).inc()

    def forget(self, namespace: str, name: str) -> None:
        """Remove the metrics of a deleted Job."""
        for counter, labels in self._ended.pop(f"{namespace}/{name}", ()):
            counter.remove(*labels)
