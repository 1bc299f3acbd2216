"""Volcano's metrics: what a cycle measures, and gauges by queue."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pumice.api.meta import ObjectMeta
from pumice.api.queues import Queue
from pumice.scheduler import ClusterState, builtin_registry, load_config, run_cycle
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.axis import CPU
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.worker.metrics import VolcanoMetrics
from tests.unit.scheduler.scenarios import (
    NOW,
    WITHOUT_SHARES,
    Scenario,
    config_text,
    node,
    with_plugins,
)

CLUSTER: dict[str, Any] = {
    "nodes": [["n1", 4, "8Gi", {"resources": {"nvidia.com/gpu": 8}}]],
    "queues": [["root"], ["team", {"weight": 3}], ["night", {"parent": "team"}]],
    "podgroups": [
        ["ns", "runs", "night", 2, "Inqueue", {"minRes": {"cpu": 2}}],
        ["ns", "waits", "team", 3, "Inqueue", {"minRes": {"cpu": 3}}],
    ],
    "pod_sets": [
        {
            "pg": "runs",
            "count": 2,
            "cpu": 1,
            "memory": "1Gi",
            "resources": {"nvidia.com/gpu": 2},
        },
        {"pg": "waits", "count": 3, "cpu": 1, "memory": "1Gi"},
    ],
}


class Steps:
    """Steps in the order in which they ended."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, str]] = []

    @contextmanager
    def __call__(self, step: str, name: str) -> Iterator[None]:
        try:
            yield
        finally:
            self.ended.append((step, name))


class Ticks:
    """A clock that moves on by a quarter of a second whenever it is asked."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 0.25
        return self.now

    def wall(self) -> float:
        return NOW

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def read(metrics: CollectorRegistry, family: str, label: str = "queue_name") -> dict[str, float]:
    """Samples of a gauge by one label."""
    return {
        sample.labels[label]: sample.value
        for metric in metrics.collect()
        for sample in metric.samples
        if sample.name == f"volcano_queue_{family}"
    }


def gauges(state: ClusterState | None) -> CollectorRegistry:
    registry = CollectorRegistry()
    VolcanoMetrics(registry).queues.state = state
    return registry


# -- steps -------------------------------------------------------------------------------


def test_a_cycle_measures_each_plugin_each_action_the_beginning_and_the_whole() -> None:
    scenario, steps = Scenario(CLUSTER), Steps()
    config = load_config(config_text([["gang"], ["binpack"]]))
    run_cycle(scenario.state, config, NOW, steps)
    assert steps.ended == [
        ("plugin", "gang"),
        ("plugin", "binpack"),
        ("opening", ""),
        ("action", "enqueue"),
        ("action", "allocate"),
        ("cycle", ""),
    ]


def test_a_cycle_that_is_not_run_measures_nothing() -> None:
    scenario, steps = Scenario({"nodes": [["n1", 4, "8Gi"]]}), Steps()
    for _ in range(2):
        run_cycle(scenario.state, scenario.config, NOW)
    run_cycle(scenario.state, scenario.config, NOW, steps)
    assert steps.ended == []


def test_a_step_that_fails_is_measured() -> None:
    class Failing:
        def __init__(self, _arguments: Arguments) -> None: ...

        def open(self, session: SessionView, register: Registrar) -> None:
            raise ValueError(session, register)

    spec = PluginSpec(name="failing", summary="Fails.", build=Failing)
    config = load_config(config_text([["failing"]]), with_plugins(builtin_registry(), spec))
    steps = Steps()
    assert run_cycle(Scenario(CLUSTER).state, config, NOW, steps).error is not None
    assert steps.ended == [("plugin", "failing"), ("opening", ""), ("cycle", "")]


def test_measured_steps_are_milliseconds_by_volcanos_labels() -> None:
    registry = CollectorRegistry()
    metrics = VolcanoMetrics(registry)
    measure = metrics.measure(Ticks())
    with measure("cycle", ""), measure("opening", ""), measure("plugin", "gang"):
        pass
    with measure("action", "allocate"):
        pass

    def total(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"volcano_{name}_milliseconds_sum", labels)

    assert total("plugin_scheduling_latency", plugin="gang", OnSession="OnSessionOpen") == 250
    assert total("open_session_duration") == 750
    assert total("e2e_scheduling_latency") == 1250
    assert total("action_scheduling_latency", action="allocate") == 250


def test_what_a_cycle_decided_is_counted() -> None:
    scenario, registry = Scenario(CLUSTER, WITHOUT_SHARES), CollectorRegistry()
    metrics = VolcanoMetrics(registry)
    result = scenario.cycle()
    metrics.decided(result)
    assert result.started == []
    scenario.start(result)
    assert scenario.cycle().started == ["ns/runs"]
    value = registry.get_sample_value
    assert value("volcano_unschedule_job_count") == 1
    assert value("volcano_schedule_attempts_total", {"result": "unschedulable"}) == 3
    assert value("volcano_pod_preemption_victims") == 0
    assert value("volcano_total_preemption_attempts") == 0
    assert scenario.cycle().started == []


def test_searches_for_victims_are_counted_once_a_gang_and_are_no_further_attempts_of_its_pods() -> (
    None
):
    cluster: dict[str, Any] = CLUSTER | {
        "classes": {"high": 10},
        "podgroups": [
            *CLUSTER["podgroups"][:1],
            ["ns", "waits", "team", 3, "Inqueue", {"minRes": {"cpu": 3}, "prio": "high"}],
            ["ns", "cheap", "team", 1, "Running"],  # too small to make room
        ],
        "pods": [["ns", "cheap-0", "n1", "Running", 1, "1Gi", "cheap"]],
    }
    scenario, registry = Scenario(cluster), CollectorRegistry()
    metrics = VolcanoMetrics(registry)
    config = config_text([["priority", "gang", "predicates"]], ["allocate", "preempt"])
    scenario.config = load_config(config)
    metrics.decided(scenario.cycle())
    value = registry.get_sample_value
    assert value("volcano_total_preemption_attempts") == 1
    assert value("volcano_schedule_attempts_total", {"result": "unschedulable"}) == 2


def test_ages_of_pods_and_gangs_are_milliseconds_and_never_below_zero() -> None:
    registry = CollectorRegistry()
    metrics = VolcanoMetrics(registry)
    created = ObjectMeta(name="p", creation_timestamp="2023-11-14T22:13:15Z")
    metrics.bound(created, NOW)
    metrics.bound(created, NOW - 60)
    metrics.started(created, NOW)
    metrics.started(ObjectMeta(name="p"), NOW)
    value = registry.get_sample_value
    assert value("volcano_task_scheduling_latency_milliseconds_sum") == 5000
    assert value("volcano_task_scheduling_latency_milliseconds_count") == 2
    assert value("volcano_e2e_job_scheduling_latency_milliseconds_count") == 1
    assert value("volcano_schedule_attempts_total", {"result": "scheduled"}) == 2


# -- queues --------------------------------------------------------------------------------


def test_what_queues_hold_ask_for_and_reserve_with_those_below_them() -> None:
    scenario = Scenario(CLUSTER, WITHOUT_SHARES)
    scenario.cycle()
    registry = gauges(scenario.state)
    assert read(registry, "allocated_milli_cpu") == {
        "default": 0,
        "night": 2000,
        "root": 2000,
        "team": 2000,
    }
    assert read(registry, "allocated_memory_bytes")["team"] == 2 << 30
    scalars = "volcano_queue_allocated_scalar_resources"
    labels = {"queue_name": "root", "resource": "nvidia.com/gpu"}
    assert registry.get_sample_value(scalars, labels) == 4000
    assert registry.get_sample_value(scalars, labels | {"queue_name": "default"}) is None
    assert registry.get_sample_value(scalars, labels | {"resource": "pods"}) == 2000
    assert read(registry, "request_milli_cpu") == {
        "default": 0,
        "night": 2000,
        "root": 5000,
        "team": 5000,
    }
    assert read(registry, "inqueue_milli_cpu")["team"] == 3000
    assert read(registry, "weight") == {"default": 1, "night": 1, "root": 1, "team": 3}
    assert not read(registry, "deserved_milli_cpu")
    assert not read(registry, "share")


def test_a_queue_that_is_gone_has_no_series() -> None:
    scenario = Scenario(CLUSTER, WITHOUT_SHARES)
    scenario.cycle()
    registry = gauges(scenario.state)
    scenario.state.remove_queue("night")
    scenario.cycle()
    assert "night" not in generate_latest(registry).decode()
    assert "team" in generate_latest(registry).decode()


def test_a_process_that_does_not_schedule_shows_no_queue() -> None:
    assert "queue_name=" not in generate_latest(gauges(None)).decode()


class Publishing:
    """A plugin that publishes; what it has published is not shown after it was taken out of the configuration."""

    def __init__(self, _arguments: Arguments) -> None: ...

    def open(self, session: SessionView, register: Registrar) -> None:
        del register
        shares = session.shares
        deserved = np.zeros(shares.allocated.shape)
        deserved[shares.rows["team"], CPU] = 1500.5
        session.publish("deserved", deserved)
        session.publish("real_capacity", np.full(shares.allocated.shape, 1 << 62))
        session.publish("share", np.arange(len(shares.names)) / 4)
        session.publish("overused", np.arange(len(shares.names)) // 3)


SPEC = PluginSpec(name="publishing", summary="Publishes.", build=Publishing)


def test_plugins_publish_what_they_compute_until_the_next_session() -> None:
    scenario = Scenario(CLUSTER, WITHOUT_SHARES)
    config = load_config(config_text([["publishing"]]), with_plugins(builtin_registry(), SPEC))
    run_cycle(scenario.state, config, NOW)
    registry = gauges(scenario.state)
    scenario.state.axis.column("example.com/new")  # a resource that was named since
    assert read(registry, "deserved_milli_cpu")["team"] == 1500.5
    assert not read(registry, "real_capacity_milli_cpu"), "no limit is no number"
    assert not read(registry, "real_capacity_scalar_resources")
    assert read(registry, "share") == {"default": 0, "night": 0.25, "root": 0.5, "team": 0.75}
    assert read(registry, "overused") == {"default": 0, "night": 0, "root": 0, "team": 1}
    run_cycle(scenario.state, load_config(WITHOUT_SHARES, builtin_registry()), NOW)
    assert not read(registry, "deserved_milli_cpu")
    assert not read(registry, "share")


def test_capacity_publishes_what_queues_deserve_and_may_hold() -> None:
    """Of 4 cpus the team deserves 2 and may have 3; a queue without `deserved` counts as one that has all of it."""
    limits = {"capability": {"cpu": 3}, "deserved": {"cpu": 2}}
    queues = [["root"], ["team", limits], ["night", {"parent": "team", "deserved": {"cpu": 1}}]]
    plugins: list[Any] = [["gang", {"capacity": ["Allocatable", "Hierarchy"]}, "predicates"]]
    scenario = Scenario(CLUSTER | {"queues": queues}, config_text(plugins))
    scenario.cycle()
    scenario.state.set_queue(Queue(metadata=ObjectMeta(name="new")))
    scenario.cycle()
    registry = gauges(scenario.state)
    assert read(registry, "capacity_milli_cpu") == {"team": 3000}
    everything = {"default": 4000, "new": 4000, "root": 4000}
    assert read(registry, "real_capacity_milli_cpu") == everything | {"team": 3000, "night": 3000}
    deserved = read(registry, "deserved_milli_cpu")
    assert deserved == {"default": 0, "new": 0, "root": 0, "team": 2000, "night": 1000}
    assert read(registry, "share") == {"default": 1, "new": 1, "root": 1, "team": 1, "night": 2}


def test_what_queues_deserve_and_may_hold_is_of_nodes_that_are_ready() -> None:
    """The share, too; `allocated` counts all pods, as `status.allocated` does."""
    lost = ["lost", 12, "16Gi", {"ready": "Unknown"}]
    team = ["team", {"deserved": {"cpu": 2}}]
    case = {
        "nodes": [["n", 4, "16Gi"], lost],
        "queues": [team],
        "podgroups": [["ns", "train", "team", 1, "Running"]],
        "pods": [
            ["ns", "train-0", "lost", "Running", 12, 0, "train"],
            ["ns", "train-1", "n", "Running", 1, 0, "train"],
        ],
    }
    for plugin, deserved in (("capacity", 2000), ("proportion", 1000)):
        scenario = Scenario(case, config_text([["gang", plugin, "predicates"]]))
        scenario.cycle()
        registry = gauges(scenario.state)
        assert read(registry, "allocated_milli_cpu")["team"] == 13000
        assert read(registry, "deserved_milli_cpu")["team"] == deserved
        assert read(registry, "real_capacity_milli_cpu")["team"] == 4000
        assert read(registry, "share")["team"] == 1000 / deserved


@pytest.mark.parametrize("plugin", ["capacity", "proportion"])
def test_the_share_of_a_queue_is_that_before_the_cycle_whenever_it_is_asked_for(
    plugin: str,
) -> None:
    """It is computed when it is read: then the pod that the cycle has placed is there, and another node."""
    case = {
        "nodes": [["n", 4, "16Gi"]],
        "queues": [["team", {"deserved": {"cpu": 2}}]],
        "podgroups": [["ns", each, "team", 1, "Inqueue"] for each in ("runs", "waits")],
        "pods": [
            ["ns", "runs-0", "n", "Running", 1, 0, "runs"],
            ["ns", "waits-0", "", "Pending", 1, 0, "waits"],
        ],
    }
    scenario = Scenario(case, config_text([["gang", plugin, "predicates"]]))
    assert scenario.cycle().binds
    scenario.state.set_node(node(["m", 4, "16Gi"]))
    assert read(gauges(scenario.state), "share")["team"] == 0.5
