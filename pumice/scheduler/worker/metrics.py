"""What the scheduler counts."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from pumice.scheduler.worker.volcano_metrics import VolcanoMetrics

__all__ = ["SchedulerMetrics"]

_CYCLE_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_WAIT_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class SchedulerMetrics:
    """Counters of one scheduler.

    Attributes:
        registry: Where they are registered; a registry of their own unless one is given.
        cycles: Cycles run.
        cycle_seconds: Duration of a cycle, without what follows from it.
        decided: Pods that cycles placed or refused.
        errors: Unexpected exceptions in cycles, by what they ended: `gang`, `cycle`.
        binds: Bindings by result: `bound`, `gone` (no such pod), `node` (removed or cordoned meanwhile), `failed`.
        bind_seconds: From a decision to the API server's answer.
        evictions: Evictions by result.
        writes: Statuses, conditions and choices of volumes written, by kind and result.
        pending: PodGroups that wait, after the last cycle.
        nodes: Nodes known.
        leading: 1 while this process schedules.
        config_unusable: 1 while the configuration file says what cannot be used, and an earlier one is in force.
        config_reads: Changes of the configuration file, by result: `loaded`, `failed`.
        config_missing: 1 for each action and plugin of the configuration that this version lacks.
        volcano: Volcano's metrics, under their names.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register the counters."""
        self.registry = registry or CollectorRegistry()
        name = "pumice_scheduler_"
        self.cycles = Counter(f"{name}cycles", "Scheduling cycles run.", registry=self.registry)
        self.cycle_seconds = Histogram(
            f"{name}cycle_seconds",
            "Duration of a scheduling cycle.",
            buckets=_CYCLE_SECONDS,
            registry=self.registry,
        )
        self.decided = Counter(
            f"{name}decided_pods", "Pods that cycles placed or refused.", registry=self.registry
        )
        self.errors = Counter(
            f"{name}errors",
            "Unexpected exceptions in scheduling cycles, by what they ended.",
            ["scope"],
            registry=self.registry,
        )
        # A counter that begins with its first event hides that event from Prometheus' increase().
        for scope in ("gang", "cycle"):
            self.errors.labels(scope)
        self.binds = Counter(f"{name}binds", "Bindings.", ["result"], registry=self.registry)
        self.bind_seconds = Histogram(
            f"{name}bind_seconds",
            "From a decision to the API server's answer.",
            buckets=_WAIT_SECONDS,
            registry=self.registry,
        )
        self.evictions = Counter(
            f"{name}evictions", "Evictions.", ["result"], registry=self.registry
        )
        self.writes = Counter(
            f"{name}status_writes",
            "Statuses, conditions and choices of volumes written.",
            ["kind", "result"],
            registry=self.registry,
        )
        self.pending = Gauge(
            f"{name}pending_pod_groups", "PodGroups that wait.", registry=self.registry
        )
        self.nodes = Gauge(f"{name}nodes", "Nodes known.", registry=self.registry)
        self.leading = Gauge(
            f"{name}leading", "1 while this process schedules.", registry=self.registry
        )
        self.config_unusable = Gauge(
            f"{name}config_unusable",
            "1 while the configuration file cannot be used and an earlier one is in force.",
            registry=self.registry,
        )
        self.config_reads = Counter(
            f"{name}config_reads",
            "Changes of the configuration file.",
            ["result"],
            registry=self.registry,
        )
        self.config_missing = Gauge(
            f"{name}config_missing",
            "Actions and plugins of the configuration that this version lacks.",
            ["what"],
            registry=self.registry,
        )
        self.volcano = VolcanoMetrics(self.registry)
