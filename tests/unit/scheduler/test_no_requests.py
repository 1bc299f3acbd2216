"""Pods that ask for nothing but a slot: part of their gang like any other pod, whatever actions are configured."""

from typing import Any

import pytest

from tests.unit.scheduler.scenarios import NOW, Scenario, case_id, config_text, load_cases

CYCLES = 5
PLUGINS: list[Any] = [["priority", "gang"], ["predicates"]]


def _rows() -> list[Any]:
    return [
        pytest.param(
            case, backfills, id=f"{case_id(case)}-{'with' if backfills else 'without'}-backfill"
        )
        for case in load_cases("no_requests.yaml")
        for backfills in (True, False)
        if case.get("backfill", backfills) is backfills
    ]


@pytest.mark.parametrize(("case", "backfills"), _rows())
def test_cycles(case: dict[str, Any], *, backfills: bool) -> None:
    actions = ["allocate", *(["backfill"] if backfills else []), *case.get("actions", [])]
    scenario = Scenario(case, config_text(case.get("plugins", PLUGINS), actions))
    expected = [*case.get("cycles", []), *[{}] * CYCLES]
    for number, expect in enumerate(expected):
        result = scenario.cycle(NOW + number)
        assert result.binds == expect.get("binds", {})
        assert result.pipelined == expect.get("pipelined", {})
        assert result.evicted == expect.get("evicted", [])
        scenario.start(result)
    waiting = {
        key: each.message
        for key, each in result.pending.items()
        if scenario.state.jobs[key].has_pending
    }
    assert waiting.keys() == case.get("then", {}).keys()
    for key, message in case.get("then", {}).items():
        assert message in waiting[key]
