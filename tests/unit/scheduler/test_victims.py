"""Which pods go for which, row by row; then they are gone, and five more cycles evict nobody."""

from typing import Any

import pytest

from pumice.scheduler import builtin_registry
from tests.unit.scheduler.scenes import NOW, Scene, case_id, config_text, load_document

MORE_CYCLES = 5
CONFS = load_document("confs.yaml")
PREEMPT, RECLAIM = load_document("preempt.yaml"), load_document("reclaim.yaml")


def _tiers(case: dict[str, Any]) -> Any:
    if "plugins" in case:
        return case["plugins"]
    only = case.get("only")
    return [
        [each for each in tier if only is None or not only or set(each) & set(only)]
        for tier in CONFS[case["conf"]]
    ]


def _run(case: dict[str, Any], document: dict[str, Any], action: str) -> None:
    lacking = set(case.get("needs", ())) - set(builtin_registry().plugins)
    if lacking:
        pytest.skip(f"needs plugins {', '.join(sorted(lacking))}")
    case = {"classes": document["classes"]} | case
    scene = Scene(case, config_text(_tiers(case), case.get("actions", [action])))
    result, expect = scene.cycle(), case["expect"]
    assert sorted(result.evicted) == sorted(expect.get("evicted", []))
    assert result.pipelined == expect.get("pipelined", {})
    assert result.binds == expect.get("binds", {})
    nominated = result.pipelined if result.evicted else {}
    assert result.nominations == expect.get("nominations", nominated)
    told = {f"{event.namespace}/{event.name}" for event in result.events if event.kind == "Pod"}
    assert told == set(result.evicted)
    for number in range(MORE_CYCLES):
        scene.start(result)
        result = scene.cycle(NOW + 1 + number)
        assert (result.evicted, result.nominations) == ([], {})


@pytest.mark.parametrize("case", PREEMPT["cases"], ids=case_id)
def test_preempt(case: dict[str, Any]) -> None:
    _run(case, PREEMPT, "preempt")


@pytest.mark.parametrize(
    "case", [each for each in PREEMPT["cases"] if each.get("conf") == "PREEMPT"], ids=case_id
)
def test_preempt_with_the_switches_of_topology_aware_preemption(case: dict[str, Any]) -> None:
    _run(case | {"conf": "PREEMPT_TOPO"}, PREEMPT, "preempt")


@pytest.mark.parametrize("case", RECLAIM["cases"], ids=case_id)
def test_reclaim(case: dict[str, Any]) -> None:
    _run(case, RECLAIM, "reclaim")
