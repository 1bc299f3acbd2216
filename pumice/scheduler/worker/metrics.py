"""The scheduler's metrics; and Volcano's, under Volcano's names, for existing dashboards and alerts.

One of Volcano's is here if this scheduler can fill it with what its name says; `docs/metrics.md` lists the others. Gauges by queue
are computed when they are read: a cycle does not pay for them, and a queue that is deleted has none. A process that does not
schedule shows none. Amounts of a queue include those of the queues below it, as its `status.allocated` does.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pumice.api.meta import ObjectMeta, parse_time
from pumice.api.quantities import MILLI
from pumice.cluster.clock import Clock
from pumice.cluster.events import DROPPED
from pumice.scheduler import ClusterState, CycleResult
from pumice.scheduler.model.axis import CPU, MEMORY, SCORED_CPU, SCORED_MEMORY, Floats, Ints
from pumice.scheduler.options import Measure, Step

_CYCLE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_ACTION = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
_PLUGIN = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_TASK = (50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 60000)
_MILLI = 1000.0


class VolcanoMetrics:
    """Metrics of one scheduler with Volcano's names; what each counts, its text says.

    Attributes:
        queues: Gauges by queue.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        self._registry = registry
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        self.queues = QueueCollector()
        registry.register(self.queues)
        self.cycle = self._histogram(
            "e2e_scheduling_latency",
            "Duration of a scheduling cycle in which there was something to do.",
            _CYCLE,
        )
        self.opening = self._histogram(
            "open_session_duration",
            "Duration of the beginning of a cycle, in which all plugins prepare their decisions.",
            _ACTION,
        )
        self.action = self._histogram(
            "action_scheduling_latency", "Duration of an action.", _ACTION, "action"
        )
        self.plugin = self._histogram(
            "plugin_scheduling_latency",
            "Duration of the preparation of a plugin for a cycle; `OnSession` is `OnSessionOpen`.",
            _PLUGIN,
            "plugin",
            "OnSession",
        )
        self.gang = self._histogram(
            "e2e_job_scheduling_latency",
            "From the creation of a PodGroup until its minimum of pods is bound; a PodGroup that starts again counts again.",
            _TASK,
        )
        self.task = self._histogram(
            "task_scheduling_latency", "From the creation of a pod until it is bound.", _TASK
        )
        self.attempts = counter(
            "volcano_schedule_attempts",
            "Attempts to schedule a pod: `scheduled`, it was bound; `unschedulable`, a cycle found no node; "
            "`error`, its binding failed.",
            ["result"],
        )
        self.unscheduled = gauge("volcano_unschedule_job_count", "PodGroups that wait.")
        text = "Pods that the last scheduling cycle evicted for others."
        self.victims = gauge("volcano_pod_preemption_victims", text)
        # The library would call a counter volcano_total_preemption_attempts_total.
        text = (
            "Searches for pods to evict for a PodGroup, by any action, since the start; "
            "where it is clear that none may go, there is no search."
        )
        self.preemptions = gauge("volcano_total_preemption_attempts", text)
        text = "Decisions to evict pods for a PodGroup, each with all the pods that go for it."
        self.transactions = counter("volcano_eviction_transactions", text, ["action"])

    def _histogram(
        self, name: str, text: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        name = f"volcano_{name}_milliseconds"
        return Histogram(name, text, labels, buckets=buckets, registry=self._registry)

    def measure(self, clock: Clock) -> Measure:
        """A stopwatch for the steps of cycles."""

        @contextmanager
        def measured(step: Step, name: str) -> Iterator[None]:
            started = clock.monotonic()
            try:
                yield
            finally:
                self._of(step, name).observe((clock.monotonic() - started) * _MILLI)

        return measured

    def _of(self, step: Step, name: str) -> Histogram:
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
        for action, count in result.transactions.items():
            self.transactions.labels(action).inc(count)

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
            for figure in state.published:
                values = state.figure(figure)
                assert values is not None
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
    for column, suffix, shown in ((CPU, "milli_cpu", "CPU"), (MEMORY, "memory_bytes", "memory")):
        family = GaugeMetricFamily(f"{prefix}_{suffix}", f"{text}: {shown}.", labels=[label])
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
        self.events_dropped = self._counter("events_dropped", DROPPED, "reason")
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

    def end_leadership(self) -> None:
        """Reset what cycles show of the cluster, because this process schedules no more."""
        for gauge in (self.pending, self.nodes, self.volcano.unscheduled, self.volcano.victims):
            gauge.set(0)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(_PREFIX + name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(_PREFIX + name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(_PREFIX + name, text, buckets=buckets, registry=self.registry)
