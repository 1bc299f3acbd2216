"""The scheduler's metrics."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from pumice.scheduler.worker.volcano_metrics import VolcanoMetrics

__all__ = ["SchedulerMetrics"]

_PREFIX = "pumice_scheduler_"
_CYCLE_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_WAIT_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class SchedulerMetrics:
    """Metrics of one scheduler; what each counts, its text says.

    Attributes:
        registry: Where they are registered.
        binds: Bindings by result: `bound`, `gone` (no such pod), `node` (removed or cordoned meanwhile), `failed`.
        errors: Unexpected exceptions in cycles, by what they ended: `gang`, `cycle`.
        volcano: Volcano's metrics, under their names.
    """

    def __init__(self) -> None:
        """Register the metrics."""
        self.registry = CollectorRegistry()
        self.cycles = self._counter("cycles", "Scheduling cycles run.")
        self.cycle_seconds = self._histogram(
            "cycle_seconds", "Duration of a scheduling cycle.", _CYCLE_SECONDS
        )
        self.decided = self._counter("decided_pods", "Pods that cycles placed or refused.")
        self.errors = self._counter(
            "errors", "Unexpected exceptions in scheduling cycles, by what they ended.", "scope"
        )
        # A counter that begins with its first event hides that event from Prometheus' increase().
        for scope in ("gang", "cycle"):
            self.errors.labels(scope)
        self.binds = self._counter("binds", "Bindings.", "result")
        self.bind_seconds = self._histogram(
            "bind_seconds", "From a decision to the API server's answer.", _WAIT_SECONDS
        )
        self.evictions = self._counter("evictions", "Evictions.", "result")
        self.writes = self._counter(
            "status_writes",
            "Statuses, conditions and choices of volumes written.",
            "kind",
            "result",
        )
        self.pending = self._gauge("pending_pod_groups", "PodGroups that wait.")
        self.unreached = self._gauge(
            "unreached_pod_groups",
            "PodGroups for which the last cycle had no time left; the next one tries them.",
        )
        self.nodes = self._gauge("nodes", "Nodes known.")
        self.leading = self._gauge("leading", "1 while this process schedules.")
        self.events_dropped = self._counter(
            "events_dropped",
            "Events that were not written: `object`, too many about one object; `namespace`, too many waited in one "
            "namespace; `refused`, the API server did not take them.",
            "reason",
        )
        self.config_unusable = self._gauge(
            "config_unusable",
            "1 while the configuration file cannot be used and an earlier one is in effect.",
        )
        self.config_reads = self._counter(
            "config_reads", "Changes of the configuration file.", "result"
        )
        self.config_missing = self._gauge(
            "config_missing", "Actions and plugins of the configuration that do nothing.", "what"
        )
        self.volcano = VolcanoMetrics(self.registry)

    def end_term(self) -> None:
        """Reset what cycles show of the cluster, because this process schedules no more."""
        for gauge in (self.pending, self.nodes, self.volcano.unscheduled, self.volcano.victims):
            gauge.set(0)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(_PREFIX + name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(_PREFIX + name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(_PREFIX + name, text, buckets=buckets, registry=self.registry)
