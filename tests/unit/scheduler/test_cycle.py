"""The cycle as a whole: what it reports, what it leaves out, what it costs to do nothing."""

import gc
from typing import Any

import pytest
from msgspec.structs import fields

from pumice.scheduler import CycleResult, builtin_registry, load_config, run_cycle
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from tests.unit.scheduler.scenarios import (
    NOW,
    WITHOUT_SHARES,
    Scenario,
    config_text,
    node,
    pod_group,
    with_plugins,
)

WAITING: dict[str, Any] = {
    "nodes": [["n1", 1, "8Gi"]],
    "podgroups": [
        ["ns", "fits", "default", 1, "Pending"],
        ["ns", "waits", "default", 2, "Pending"],
    ],
    "pod_sets": [{"pg": "fits", "count": 1}, {"pg": "waits", "count": 2}],
}


def test_only_what_changed_is_reported() -> None:
    scenario = Scenario(WAITING, WITHOUT_SHARES)
    first = scenario.cycle()
    assert sorted(first.pod_groups) == ["ns/fits", "ns/waits"]
    assert sorted(first.all_pod_groups) == ["ns/fits", "ns/waits"]
    assert first.decided == 2
    scenario.cycle()
    third = scenario.cycle(NOW + 100)
    assert third.pod_groups == {}
    assert sorted(third.all_pod_groups) == ["ns/fits", "ns/waits"]
    assert list(third.pending) == ["ns/waits"]


def test_what_a_cycle_needed_is_freed_without_the_garbage_collector() -> None:
    alike = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}
    near = {"weight": 1, "podAffinityTerm": alike}
    spread = [
        alike | {"maxSkew": 1, "whenUnsatisfiable": each}
        for each in ("DoNotSchedule", "ScheduleAnyway")
    ]
    spec = {
        "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [near]}},
        "topologySpreadConstraints": spread,
    }
    cluster = {
        "nodes": [["n1", 4, "8Gi", {"labels": {"zone": "z"}}]],
        "classes": {"high": 9},
        "podgroups": [
            ["ns", "runs", "default", 1, "Running"],
            ["ns", "fits", "default", 1, "Pending", {"minRes": {"cpu": 1}}],
            ["ns", "asks", "default", 1, "Pending", {"minRes": {"cpu": 1}, "prio": "high"}],
        ],
        "pods": [["ns", "r", "n1", "Running", 2, "1Gi", "runs", {"preemptable": True}]],
        "pod_sets": [
            {"pg": "fits", "count": 1, "labels": {"app": "a"}, "spec": spec},
            {"pg": "asks", "count": 1, "cpu": 3, "prio": 9},
        ],
    }
    tiers = [["priority", "conformance"], ["overcommit", "proportion", "predicates", "nodeorder"]]
    scenario = Scenario(
        cluster, config_text(tiers, ["enqueue", "allocate", "preempt", "reclaim", "backfill"])
    )
    gc.collect()
    gc.disable()
    try:
        result = scenario.cycle()
        assert result.binds
        assert result.evicted
        scenario.wake_all()
        scenario.cycle(NOW + 2)  # until then, what the first one has published is kept
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_cycle_after_which_nothing_changed_is_not_run() -> None:
    scenario = Scenario(WAITING)
    scenario.cycle()
    scenario.cycle()
    scenario.cycle()
    cycles = scenario.state.cycles
    again = scenario.cycle()
    assert scenario.state.cycles == cycles
    assert again.decided == 0
    assert list(again.pending) == ["ns/waits"]


def test_another_configuration_is_a_change() -> None:
    scenario = Scenario(WAITING)
    for _ in range(4):
        scenario.cycle()
    cycles = scenario.state.cycles
    run_cycle(scenario.state, load_config("actions: allocate"), NOW)
    assert scenario.state.cycles == cycles + 1


def test_pods_of_a_task_for_which_no_node_was_found_are_tried_once_a_turn() -> None:
    """The first turn lasts until the minimum is placed, the second until nothing is left."""
    asked: list[str] = []

    class Noting(_Silent):
        def open(self, _session: SessionView, register: Registrar) -> None:
            register.allocatable(lambda _queue, task: asked.append(task.role))

    spec = PluginSpec("noting", "A test's plugin.", Noting)
    config = load_config(
        config_text([["gang", "noting", "predicates"]]), with_plugins(builtin_registry(), spec)
    )
    cluster = {
        "nodes": [["n1", 4, "8Gi"]],
        "podgroups": [["ns", "g", "default", 3, "Inqueue", {"minTask": {"ps": 2, "w": 2}}]],
        "pod_sets": [
            {"pg": "g", "role": "ps", "count": 3},
            {"pg": "g", "role": "w", "count": 9, "cpu": 5},
        ],
    }
    scenario = Scenario(cluster, config)
    assert sorted(scenario.cycle().binds) == ["ns/g-ps-0", "ns/g-ps-1", "ns/g-ps-2"]
    assert (asked.count("ps"), asked.count("w")) == (3, 2)


@pytest.mark.parametrize("count", [5, 50])
def test_of_pods_that_others_may_help_one_is_tried_before_and_one_after_them(count: int) -> None:
    """They want to be near to pods that there are not; one pod of their gang is placed."""
    asked: list[str] = []

    class Noting(_Silent):
        def open(self, _session: SessionView, register: Registrar) -> None:
            register.allocatable(lambda _queue, task: asked.append(task.name[0]))

    spec = PluginSpec("noting", "A test's plugin.", Noting)
    config = load_config(
        config_text([["gang", "noting", "predicates"]]), with_plugins(builtin_registry(), spec)
    )
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "none"}}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    waiting = [
        ["ns", f"w-{place}", "", "Pending", 1, "1Gi", "g", {"spec": {"affinity": near}}]
        for place in range(count)
    ]
    cluster = {
        "nodes": [["n1", 4, "8Gi", {"labels": {"zone": "a"}}]],
        "podgroups": [["ns", "g", "default", count + 1, "Inqueue"]],
        "pods": [*waiting, ["ns", "x-0", "", "Pending", 1, "1Gi", "g"]],
    }
    assert Scenario(cluster, config).cycle().binds == {}
    # Before x, after it, and once more because x had been placed in the round before.
    assert (asked.count("w"), asked.count("x")) == (3, 1)


def test_pods_without_requests_for_which_no_node_was_found_are_tried_once() -> None:
    cluster = {
        "nodes": [["n1", 4, "8Gi"]],
        "podgroups": [["ns", "g", "default", 1, "Inqueue"]],
        "pod_sets": [
            {"pg": "g", "count": 2, "cpu": 0, "memory": 0},
            {
                "pg": "g",
                "role": "w",
                "count": 9,
                "cpu": 0,
                "memory": 0,
                "selector": {"disk": "none"},
            },
        ],
    }
    text = config_text([["gang", "predicates"]], ["enqueue", "allocate", "backfill"])
    result = Scenario(cluster, text).cycle()
    assert sorted(result.binds) == ["ns/g-0", "ns/g-1"]
    assert result.decided == 11


def test_new_room_wakes_up_who_waits() -> None:
    scenario = Scenario(WAITING)
    for _ in range(4):
        scenario.cycle()
    scenario.state.set_node(node(["n2", 2, "8Gi"]))
    result = scenario.cycle()
    assert result.binds == {"ns/waits-0": "n2", "ns/waits-1": "n2"}
    assert result.pending == {}
    assert scenario.conditions("ns/waits") == {"Unschedulable": "False", "Scheduled": "True"}


def test_a_status_that_could_not_be_written_is_reported_again() -> None:
    """The writer shows the state what the API server has, and the next cycle says it once more."""
    scenario = Scenario(WAITING)
    first = scenario.cycle()
    scenario.state.set_pod_group(pod_group(["ns", "fits", "default", 1, "Pending"]))
    assert scenario.cycle().pod_groups["ns/fits"].phase == first.pod_groups["ns/fits"].phase


def test_a_life_from_queue_to_completion() -> None:
    scenario = Scenario(
        {**WAITING, "podgroups": WAITING["podgroups"][:1], "pod_sets": WAITING["pod_sets"][:1]}
    )
    result = scenario.cycle()
    assert scenario.phase("ns/fits") == "Inqueue"
    scenario.start(result)
    running = scenario.cycle()
    assert running.pod_groups["ns/fits"].phase == "Running"
    assert running.pod_groups["ns/fits"].running == 1
    scenario.add_pod(["ns", "fits-0", "n1", "Succeeded", 1, "1Gi", "fits"])
    done = scenario.cycle()
    assert done.pod_groups["ns/fits"].phase == "Completed"
    assert (done.pod_groups["ns/fits"].running, done.pod_groups["ns/fits"].succeeded) == (0, 1)


def test_a_gang_that_loses_pods_while_running_is_unknown() -> None:
    scenario = Scenario(
        {
            "nodes": [["n1", 2, "8Gi"]],
            "podgroups": [["ns", "g", "default", 2, "Running"]],
            "pods": [
                ["ns", "g-0", "n1", "Running", 2, "1Gi", "g"],
                ["ns", "g-1", "", "Pending", 2, "1Gi", "g"],
            ],
        }
    )
    result = scenario.cycle()
    assert result.pod_groups["ns/g"].phase == "Unknown"
    assert result.pending["ns/g"].reason == "NotEnoughResources"


def test_a_failed_gang_is_completed_and_waits_for_nothing() -> None:
    scenario = Scenario(
        {
            "nodes": [["n1", 2, "8Gi"]],
            "podgroups": [["ns", "g", "default", 2, "Running"]],
            "pods": [["ns", f"g-{i}", "n1", "Failed", 2, "1Gi", "g"] for i in range(2)],
        }
    )
    result = scenario.cycle()
    assert result.pod_groups["ns/g"].phase == "Completed"
    assert result.pending == {}


def test_a_pod_has_the_reason_why_it_waits_where_the_cause_is_its_own() -> None:
    """The others of the gang wait because the gang does, which its PodGroup says."""
    scenario = Scenario(
        {
            "nodes": [["n1", 1, "8Gi"]],
            "podgroups": [["ns", "g", "default", 3, "Inqueue"]],
            "pod_sets": [{"pg": "g", "count": 3}],
            "pods": [
                ["ns", "lost", "", "Pending", 1, "1Gi", "nowhere"],
                ["ns", "g-9", "", "Pending", 1, "1Gi", "g", {"gates": ["hold"]}],
            ],
        }
    )
    assert {key: (each.reason, each.message) for key, each in scenario.cycle().pods.items()} == {
        "ns/g-1": ("Unschedulable", "0/1 nodes are unavailable: 1 Insufficient cpu."),
        "ns/g-9": (
            "SchedulingGated",
            "Scheduling is blocked due to non-empty scheduling gates",
        ),
        "ns/lost": ("Unschedulable", "PodGroup ns/nowhere does not exist; 1 pod names it"),
    }


def test_reasons_come_as_data_too() -> None:
    reason = Scenario(WAITING).cycle().pending["ns/waits"]
    assert reason.reason == "NotEnoughResources"
    assert reason.details == {
        "minMember": 2,
        "tasks": 2,
        "schedulable": 0,
        "pending": {"Schedulable": 0, "SchedulingGated": 0, "Unschedulable": 2},
        "pod": "ns/waits-0",
        "nodes": 1,
        "reasons": [{"reason": "Insufficient cpu", "count": 1, "examples": ["n1"]}],
    }


def test_reasons_go_with_their_gang() -> None:
    scenario = Scenario(WAITING)
    scenario.cycle()
    scenario.state.remove_pod_group("ns", "waits")
    assert scenario.cycle().pending["ns/waits"].reason == "PodGroupNotFound"
    for index in range(2):
        scenario.state.remove_pod("ns", f"waits-{index}")
    assert scenario.cycle().pending == {}


def test_the_result_has_no_other_fields_than_documented() -> None:
    documented = CycleResult.__doc__ or ""
    assert all(f"    {field.name}: " in documented for field in fields(CycleResult))


def test_that_a_queue_does_not_exist_is_reported_before_pods_that_are_missing() -> None:
    cluster = {
        "nodes": [["n1", 4, "8Gi"]],
        "podgroups": [["ns", "g", "nowhere", 3, "Inqueue"]],
        "pods": [["ns", "g-0", "", "Pending", 1, 0, "g"]],
    }
    assert Scenario(cluster).cycle().pending["ns/g"].reason == "QueueNotFound"


class _Silent:
    def __init__(self, _arguments: Arguments) -> None:
        pass

    def open(self, _session: SessionView, _register: Registrar) -> None:
        pass
