"""Volcano's metrics of a scheduler, under Volcano's names, for existing dashboards and alerts.

A metric is here if this scheduler can fill it with what its name says; `docs/metrics.md` lists the others. Gauges by queue are
computed when they are read (`queue_metrics`).
"""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from pumice.api.meta import ObjectMeta, parse_time
from pumice.cluster.clock import Clock
from pumice.scheduler import CycleResult
from pumice.scheduler.options import Measure, Step
from pumice.scheduler.worker.queue_metrics import QueueCollector

__all__ = ["VolcanoMetrics"]

_CYCLE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_ACTION = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
_PLUGIN = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_TASK = (50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 60000)
_MILLI = 1000.0


class VolcanoMetrics:
    """Metrics of one scheduler with Volcano's names.

    Attributes:
        queues: Gauges by queue.
        cycle: Duration of a cycle.
        opening: Duration of the beginning of a session, with all plugins.
        action: Duration of an action, by action.
        plugin: Duration of a plugin's part in the beginning of a session, by plugin.
        gang: From the creation of a PodGroup until its minimum of pods is bound.
        task: From the creation of a pod until it is bound.
        attempts: Pods by result: `scheduled`, `unschedulable`, `error`.
        unscheduled: PodGroups that wait.
        victims: Pods that the last cycle evicted.
        preemptions: Searches for victims.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""

        def histogram(
            name: str, text: str, buckets: tuple[float, ...], labels: tuple[str, ...] = ()
        ) -> Histogram:
            return Histogram(
                f"volcano_{name}_milliseconds", text, labels, buckets=buckets, registry=registry
            )

        self.queues = QueueCollector()
        registry.register(self.queues)
        self.cycle = histogram(
            "e2e_scheduling_latency",
            "Duration of a scheduling cycle in which there was something to do.",
            _CYCLE,
        )
        self.opening = histogram(
            "open_session_duration",
            "Duration of the beginning of a cycle, in which all plugins prepare their decisions.",
            _ACTION,
        )
        self.action = histogram(
            "action_scheduling_latency", "Duration of an action.", _ACTION, ("action",)
        )
        self.plugin = histogram(
            "plugin_scheduling_latency",
            "Duration of the preparation of a plugin for a cycle; `OnSession` is `OnSessionOpen`.",
            _PLUGIN,
            ("plugin", "OnSession"),
        )
        self.gang = histogram(
            "e2e_job_scheduling_latency",
            "From the creation of a PodGroup until its minimum of pods is bound; a PodGroup that starts again counts again.",
            _TASK,
        )
        self.task = histogram(
            "task_scheduling_latency", "From the creation of a pod until it is bound.", _TASK
        )
        self.attempts = Counter(
            "volcano_schedule_attempts",
            "Attempts to schedule a pod: `scheduled`, it was bound; `unschedulable`, a cycle found no node; "
            "`error`, its binding failed.",
            ["result"],
            registry=registry,
        )
        self.unscheduled = Gauge(
            "volcano_unschedule_job_count", "PodGroups that wait.", registry=registry
        )
        self.victims = Gauge(
            "volcano_pod_preemption_victims",
            "Pods that the last scheduling cycle evicted for others.",
            registry=registry,
        )
        # The library would call a counter volcano_total_preemption_attempts_total.
        self.preemptions = Gauge(
            "volcano_total_preemption_attempts",
            "Searches for pods to evict for a PodGroup, by the actions `preempt` and `reclaim`, since the start.",
            registry=registry,
        )

    def measure(self, clock: Clock) -> Measure:
        """A stopwatch for the steps of cycles.

        Args:
            clock: Tells the time.
        """

        @contextmanager
        def measured(step: Step, name: str) -> Iterator[None]:
            started = clock.monotonic()
            try:
                yield
            finally:
                self._histogram(step, name).observe((clock.monotonic() - started) * _MILLI)

        return measured

    def _histogram(self, step: Step, name: str) -> Histogram:
        if step == "action":
            return self.action.labels(name)
        if step == "plugin":
            return self.plugin.labels(name, "OnSessionOpen")
        return self.opening if step == "opening" else self.cycle

    def decided(self, result: CycleResult) -> None:
        """Count what a cycle decided."""
        refused = result.decided - len(result.binds) - len(result.pipelined)
        self.attempts.labels("unschedulable").inc(max(refused, 0))
        self.unscheduled.set(len(result.pending))
        self.victims.set(len(result.evicted))
        self.preemptions.inc(result.preemptions)

    def started(self, group: ObjectMeta, now: float) -> None:
        """Count a PodGroup whose minimum of pods is bound, at a moment in UNIX seconds."""
        _since(self.gang, group, now)

    def bound(self, pod: ObjectMeta, now: float) -> None:
        """Count a pod that was bound, at a moment in UNIX seconds."""
        self.attempts.labels("scheduled").inc()
        _since(self.task, pod, now)


def _since(histogram: Histogram, meta: ObjectMeta, now: float) -> None:
    """Observe the age of an object; the API server's clock may be ahead of ours, and counts whole seconds."""
    created = parse_time(meta.creation_timestamp)
    if created is not None:
        histogram.observe(max(now - created, 0.0) * _MILLI)
