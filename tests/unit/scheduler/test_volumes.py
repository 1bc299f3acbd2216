"""Pods whose claims wait: where they are placed, and what their claims are to be bound to."""

from typing import Any

import pytest

from tests.unit.scheduler.scenarios import load_cases
from tests.unit.scheduler.volume_scenarios import choices, scenario_of

CASES = load_cases("volumes.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_a_pod_goes_where_its_claims_can_be_bound(case: dict[str, Any]) -> None:
    scenario = scenario_of(case)
    result = scenario.cycle()
    binds = {key.removeprefix("ns/"): node for key, node in result.binds.items()}
    if "reason" in case:
        assert binds == {}
        assert choices(scenario) == {}
        assert case["reason"] in result.pending["ns/pg"].message
        return
    assert "ns/pg" not in result.pending
    assert binds == case["binds"] if "binds" in case else len(binds) == len(case["pods"])
    if "choices" in case:
        assert choices(scenario) == case["choices"]


def test_a_claim_whose_selector_is_too_long_is_not_compared_with_volumes() -> None:
    absent = [{"key": f"k{number}", "operator": "DoesNotExist"} for number in range(200)]
    for number, is_placed in ((10, True), (200, False)):
        selector = {"matchExpressions": absent[:number]}
        case = {
            "volumes": {"a": ["share", 20]},
            "claims": {"data": {"class": "share", "selector": selector}},
            "pods": {"p": ["data"]},
        }
        scenario = scenario_of(case)
        result = scenario.cycle()
        assert bool(result.binds) is is_placed
        refused = '"data" has a selector of more than 4 KiB, which is not read; shorten it'
        assert is_placed or refused in result.pending["ns/pg"].message
