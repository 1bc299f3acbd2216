"""Whole clusters: the expected placement, then five more cycles that must change nothing."""

from typing import Any

import pytest

from pumice.scheduler import CycleResult
from tests.unit.scheduler.scenes import Scene, case_id, config_text, load_cases

MORE_CYCLES = 5


def _check(scene: Scene, result: CycleResult, expect: dict[str, Any]) -> None:
    assert result.binds == expect.get("binds", {})
    assert result.pipelined == expect.get("pipelined", {})
    assert result.evicted == []
    pending = {key: reason.reason for key, reason in result.pending.items()}
    assert pending == expect.get("pending", {})
    for key, phase in expect.get("phase", {}).items():
        assert scene.phase(key) == phase, key
    for key, conditions in expect.get("conditions", {}).items():
        assert scene.conditions(key) == conditions, key
    for key, message in expect.get("message", {}).items():
        assert result.pending[key].message == message
    for key, verdict in expect.get("verdicts", {}).items():
        assert result.pods[key].reason == verdict


@pytest.mark.parametrize(
    "case", [*load_cases("allocate.yaml"), *load_cases("enqueue.yaml")], ids=case_id
)
def test_scenario(case: dict[str, Any]) -> None:
    config = None
    if "plugins" in case:
        config = config_text(case["plugins"], case.get("actions", ("enqueue", "allocate")))
    scene = Scene(case, config)
    result = scene.cycle()
    _check(scene, result, case["expect"])
    scene.start(result)
    if "then" in case["expect"]:
        result = scene.cycle()
        assert result.binds == case["expect"]["then"]["binds"]
        scene.start(result)
    scene.cycle()
    settled = {key: reason.reason for key, reason in scene.cycle().pending.items()}
    for _ in range(MORE_CYCLES):
        again = scene.cycle()
        assert (again.binds, again.pipelined, again.pod_groups) == ({}, {}, {})
        assert (again.pods, again.events) == ({}, [])
        assert {key: reason.reason for key, reason in again.pending.items()} == settled
