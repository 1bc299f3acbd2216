"""Pods are charged to the queue under which they were bound, whatever becomes of their PodGroup."""

from typing import Any

import pytest

from pumice.scheduler import CycleResult
from tests.unit.scheduler.columns import check_sums
from tests.unit.scheduler.scenarios import (
    Scenario,
    case_id,
    load_document,
    pod_group,
    queue,
)

TABLE = load_document("charges.yaml")
ALLOCATE = """actions: allocate
tiers: [{plugins: [{name: gang}, {name: capacity}, {name: predicates}]}]
"""
RECLAIM = """actions: reclaim
tiers: [{plugins: [{name: gang}, {name: capacity}, {name: predicates}]}]
"""
BEFORE = {key: TABLE[key] for key in ("nodes", "queues", "podgroups", "pods")}
FULL: dict[str, Any] = {
    "nodes": [["n1", 4, "8Gi"]],
    "queues": [["wide"], ["other"], ["deserving", {"deserved": {"cpu": 4}}]],
    "podgroups": [["ns", "a", "wide", 0, "Running"], ["ns", "c", "deserving", 1, "Inqueue"]],
    "pods": [
        [*("ns", "a-0", "n1", "Running", 4, "1Gi", "a"), {"annotations": {"pumice.dev/queue": "wide"}}],
        ["ns", "c-0", "", "Pending", 4, "1Gi", "c"],
    ],
}  # fmt: skip


def changed(before: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """The cluster after what a row says has happened."""
    after = dict(before)
    for kind in ("podgroups", "pods"):
        rows = {row[1]: row for row in [*before[kind], *case.get(kind, [])]}
        after[kind] = [row for row in rows.values() if row[2] is not None]
    return after


def happened(scenario: Scenario, case: dict[str, Any]) -> Scenario:
    """Let a scheduler see it happen."""
    for row in case.get("podgroups", []):
        if row[2] is None:
            scenario.state.remove_pod_group(*row[:2])
        else:
            scenario.state.set_pod_group(pod_group(row))
    for row in case.get("pods", []):
        scenario.add_pod(row)
    return scenario


def held(scenario: Scenario) -> dict[str, int]:
    """What queues hold, in cpu."""
    scenario.state.settle()
    check_sums(scenario.state)
    shares, column = scenario.state.shares, scenario.state.axis.find("cpu")
    amounts = {name: int(shares.allocated[row, column]) for name, row in shares.rows.items()}
    return {name: amount // 1000 for name, amount in amounts.items() if amount}


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "restarted"])
@pytest.mark.parametrize("case", TABLE["cases"], ids=case_id)
def test_what_is_bound_counts_until_it_ends(case: dict[str, Any], seen: bool) -> None:
    if seen:
        scenario = happened(Scenario(BEFORE, ALLOCATE), case)
    else:
        scenario = Scenario(changed(BEFORE, case), ALLOCATE)
    assert held(scenario) == case["held"]
    assert scenario.cycle().binds == case.get("binds", {})


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "restarted"])
@pytest.mark.parametrize("case", TABLE["victims"], ids=case_id)
def test_it_is_a_victim_like_others_of_that_queue(case: dict[str, Any], seen: bool) -> None:
    if seen:
        scenario = happened(Scenario(FULL, RECLAIM), case)
    else:
        scenario = Scenario(changed(FULL, case), RECLAIM)
    assert scenario.cycle().evicted == case["evicted"]
    check_sums(scenario.state)


def bound_under_narrow() -> tuple[Scenario, CycleResult]:
    """A scheduler that has just decided about four pods."""
    pods = [["ns", f"a-{index}", "", "Pending", 1, "1Gi", "a"] for index in range(4)]
    scenario = Scenario(BEFORE | {"pods": pods}, ALLOCATE)
    return scenario, scenario.cycle()


def test_a_binding_that_is_under_way_counts_in_the_queue_that_it_names() -> None:
    """The PodGroup names another queue before the API server shows the binding."""
    scenario, result = bound_under_narrow()
    assert len(result.binds) == 4
    assert {scenario.state.tasks[key].charge for key in result.binds} == {"narrow"}
    scenario.state.set_pod_group(pod_group(["ns", "a", "wide", 4, "Running"]))
    assert held(scenario) == {"narrow": 4}


def test_a_binding_that_was_refused_is_forgotten() -> None:
    scenario, result = bound_under_narrow()
    scenario.state.set_pod_group(pod_group(["ns", "a", "wide", 4, "Running"]))
    for key in result.binds:
        scenario.state.pods.forget(key, "")
    assert held(scenario) == {}
    assert scenario.cycle().binds == result.binds
    assert held(scenario) == {"wide": 4}


def test_queues_that_go_and_come_back_get_their_pods_again() -> None:
    scenario = happened(Scenario(BEFORE, ALLOCATE), {"podgroups": [["ns", "a", None]]})
    scenario.state.remove_queue("narrow")
    assert held(scenario) == {"default": 4}
    scenario.state.set_queue(queue(["narrow", {"capability": {"cpu": 4}}]))
    assert held(scenario) == {"narrow": 4}
    assert scenario.cycle().binds == {}


def test_a_podgroup_that_comes_back_takes_its_pods_again() -> None:
    scenario = happened(Scenario(BEFORE, ALLOCATE), {"podgroups": [["ns", "a", None]]})
    scenario.state.set_pod_group(pod_group(["ns", "a", "narrow", 4, "Inqueue"]))
    assert held(scenario) == {"narrow": 4}
    scenario.cycle()
    assert scenario.phase("ns/a") == "Running"
    assert [key for key in scenario.state.jobs if key.startswith("@")] == []
