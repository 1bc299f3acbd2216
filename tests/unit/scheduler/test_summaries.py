"""The sentence for people, and that it costs the API server nothing."""

from typing import Any

import pytest

from pumice.scheduler import Reason
from tests.unit.scheduler.scenarios import (
    NOW,
    Scenario,
    case_config,
    case_id,
    load_cases,
    node,
    pod,
)


def scenario_of(case: dict[str, Any]) -> Scenario:
    group = ["ns", "g", case.get("queue", "default"), case.get("min", 1), "Inqueue"]
    case = {"queues": [["default"]], "podgroups": [group]} | case
    return Scenario(case, case_config(case))


@pytest.mark.parametrize("case", load_cases("summaries.yaml"), ids=case_id)
def test_summaries(case: dict[str, Any]) -> None:
    reason = scenario_of(case).cycle().pending["ns/g"]
    assert reason.summary == case["expect"]
    if "numbers" in case:
        assert reason.numbers == case["numbers"]
    if "victims" in case:
        assert reason.numbers["victims"] == case["victims"]


def test_without_a_sentence_of_its_own_the_message_is_the_summary() -> None:
    assert Reason("No", "no").summary == "no"
    assert Reason("No", "no", plain="not now").summary == "not now"


def test_a_change_of_the_sentence_alone_writes_nothing() -> None:
    """Its numbers are not in the PodGroup's condition, so a larger free place is no reason for a write."""
    scenario = scenario_of(
        {
            "nodes": [["a", 4, "8Gi"]],
            "pods": [["ns", "other", "a", "Running", 3, 0, ""]],
            "pod_sets": [{"pg": "g", "count": 1, "cpu": 3}],
        }
    )
    assert "1 cpu (a)" in scenario.cycle().pending["ns/g"].summary
    scenario.state.set_node(node(["a", 5, "8Gi"]))
    result = scenario.cycle(NOW + 60)
    assert "2 cpu (a)" in result.pending["ns/g"].summary
    assert (result.pod_groups, result.pods, result.events) == ({}, {}, [])


def test_a_pod_beyond_the_minimum_of_a_gang_that_runs_does_not_wait_for_its_gang() -> None:
    """It had a reason of its own, which another pod of the gang has now."""
    pods = [
        ["ns", "g-0", "a", "Running", 2, 0, "g"],
        ["ns", "g-5", "", "Pending", 1, 0, "g"],
    ]
    scenario = scenario_of({"nodes": [["a", 2, "8Gi"]], "pods": pods})
    assert "Insufficient cpu" in scenario.cycle().pods["ns/g-5"].message
    scenario.state.set_pod(pod(["ns", "g-1", "", "Pending", 1, 0, "g"]))
    told = scenario.cycle(NOW + 1).pods["ns/g-5"].message
    assert told.startswith("its gang has its minimum without this pod")
