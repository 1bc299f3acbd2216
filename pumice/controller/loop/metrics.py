"""What the controller counts."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

__all__ = ["ControllerMetrics"]

_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0)


class ControllerMetrics:
    """Counters of one controller.

    Attributes:
        registry: Where they are registered; a registry of their own unless one is given.
        passes: Passes over Jobs by result: `idle`, `done`, `again`, `failed`.
        pass_seconds: Duration of a pass with its writes.
        writes: Writes by verb, kind and result.
        phases: Phases that Jobs entered.
        jobs: Jobs known.
        leading: 1 while this process works.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register the counters."""
        self.registry = registry or CollectorRegistry()
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
        self.jobs = Gauge(f"{name}jobs", "Jobs known.", registry=self.registry)
        self.leading = Gauge(
            f"{name}leading", "1 while this process works.", registry=self.registry
        )
