"""Whole clusters: the expected placement, then five more cycles that must change nothing."""

from typing import Any

import pytest

from pumice.scheduler import CycleResult
from tests.unit.scheduler.scenarios import Scenario, case_config, case_id, load_cases

MORE_CYCLES = 5


def _check(scenario: Scenario, result: CycleResult, expect: dict[str, Any]) -> None:
    assert result.binds == expect.get("binds", {})
    assert result.pipelined == expect.get("pipelined", {})
    assert result.evicted == []
    pending = {key: reason.reason for key, reason in result.pending.items()}
    assert pending == expect.get("pending", {})
    for key, phase in expect.get("phase", {}).items():
        assert scenario.phase(key) == phase, key
    for key, conditions in expect.get("conditions", {}).items():
        assert scenario.conditions(key) == conditions, key
    for key, message in expect.get("message", {}).items():
        assert result.pending[key].message == message
    for key, summary in expect.get("summary", {}).items():
        assert result.pending[key].summary == summary
    for key, verdict in expect.get("verdicts", {}).items():
        assert result.pods[key].reason == verdict


FILES = ("allocate", "enqueue", "proportion", "queue_votes", "backfill")


CASES = [case for file in FILES for case in load_cases(f"{file}.yaml")]
CASES += load_cases("sub_groups.yaml", "placement")


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_scenario(case: dict[str, Any]) -> None:
    scenario = Scenario(case, case_config(case))
    result = scenario.cycle()
    _check(scenario, result, case["expect"])
    scenario.start(result)
    if "then" in case["expect"]:
        result = scenario.cycle()
        assert result.binds == case["expect"]["then"]["binds"]
        scenario.start(result)
    scenario.cycle()
    settled = {key: reason.reason for key, reason in scenario.cycle().pending.items()}
    for _ in range(MORE_CYCLES):
        again = scenario.cycle()
        assert (again.binds, again.pipelined, again.pod_groups) == ({}, {}, {})
        assert (again.pods, again.events) == ({}, [])
        assert {key: reason.reason for key, reason in again.pending.items()} == settled
