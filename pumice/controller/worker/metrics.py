"""The controller's metrics, and Volcano's gauges of PodGroups by queue, which are read from the counts of the leader."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pumice.api.keys import DEFAULT_QUEUE
from pumice.api.meta import Raw
from pumice.cluster.events import DROPPED
from pumice.controller.jobs.phases import COMPLETED, FAILED
from pumice.controller.queues import COUNTS, GroupCounts

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
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        name = "pumice_controller_"
        self.passes = counter(f"{name}passes", "Passes over Jobs.", ["result"])
        text = "Duration of a pass over a Job, with its writes."
        self.pass_seconds = histogram(f"{name}pass_seconds", text, buckets=_SECONDS)
        labels = ["verb", "kind", "result"]
        self.writes = counter(f"{name}writes", "Writes to the API server.", labels)
        self.phases = counter(f"{name}job_phases", "Phases that Jobs entered.", ["phase"])
        self._ended: dict[str, set[tuple[Gauge, tuple[str, str]]]] = {}
        labels = ["job_name", "queue_name"]
        self.completed = gauge(
            "volcano_job_completed_phase_count", "Times that a Job was completed.", labels
        )
        self.failed = gauge("volcano_job_failed_phase_count", "Times that a Job failed.", labels)
        labels = ["jobflow_namespace"]
        self.job_flows_succeeded = gauge(
            "volcano_jobflow_succeed_phase_count", "Times that a JobFlow succeeded.", labels
        )
        self.job_flows_failed = gauge(
            "volcano_jobflow_failed_phase_count", "Times that a JobFlow failed.", labels
        )
        self.first_pods = histogram(
            "volcano_controller_job_to_pod_creation_latency_milliseconds",
            "Time from the creation of a Job to that of its first pods.",
            buckets=_MILLISECONDS,
        )
        self.jobs = gauge(f"{name}jobs", "Jobs known.")
        self.leading = gauge(f"{name}leading", "1 while this process works.")
        self.events_dropped = counter(f"{name}events_dropped", DROPPED, ["reason"])
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
