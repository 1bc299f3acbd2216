"""Which pods go for which, row by row; then they are gone, and five more cycles evict nobody."""

from typing import Any

import numpy as np
import pytest

from pumice.scheduler import builtin_registry, load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.points import FilterResult, PodClass
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from tests.unit.scheduler.scenarios import (
    NOW,
    Scenario,
    case_id,
    config_text,
    load_document,
    with_plugins,
)

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
    case = {"classes": document["classes"]} | case
    scenario = Scenario(case, config_text(_tiers(case), case.get("actions", [action])))
    result, expect = scenario.cycle(), case["expect"]
    assert sorted(result.evicted) == sorted(expect.get("evicted", []))
    assert result.pipelined == expect.get("pipelined", {})
    assert result.binds == expect.get("binds", {})
    nominated = result.pipelined if result.evicted else {}
    assert result.nominations == expect.get("nominations", nominated)
    told = {f"{event.namespace}/{event.name}" for event in result.events if event.kind == "Pod"}
    assert told == set(result.evicted)
    for number in range(MORE_CYCLES):
        scenario.start(result)
        result = scenario.cycle(NOW + 1 + number)
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


class _WaitsForOne:
    """`preemptor` may use a node only when `preemptee` does not run there."""

    def __init__(self, _: Arguments) -> None:
        pass

    def open(self, session: SessionView, register: Registrar) -> None:
        def judge(_: PodClass, rows: Rows) -> FilterResult:
            runs = {
                task.node for task in session.running.tasks if task and task.name == "preemptee"
            }
            codes = np.array([name in runs for name in session.node_names], dtype=np.int64)
            return FilterResult(codes[rows.index], ("preemptee is there",))

        register.node_filter(judge, scope="row")


@pytest.mark.parametrize("preemptable", [True, False])
def test_filters_are_asked_again_after_an_eviction(*, preemptable: bool) -> None:
    """PE-14: the pod has room, but a filter keeps it off the node until another pod leaves."""
    case = {
        "classes": PREEMPT["classes"],
        "nodes": [["n1", 2, "2G"]],
        "queues": [["q1"]],
        "podgroups": [
            ["c1", "pg-low", "q1", 1, "Inqueue", {"prio": "low-priority"}],
            ["c1", "pg-high", "q1", 1, "Inqueue", {"prio": "high-priority"}],
        ],
        "pods": [
            ["c1", "preemptee", "n1", "Running", 1, "1G", "pg-low", {"preemptable": preemptable}],
            ["c1", "preemptor", "", "Pending", 1, "1G", "pg-high"],
        ],
    }
    tiers = [
        [
            {"conformance": ["Preemptable"]},
            {"gang": ["JobPipelined", "JobStarving"]},
            {"priority": ["TaskOrder", "JobOrder", "Preemptable", "JobPipelined", "JobStarving"]},
            {"waits": ["Predicate"]},
        ]
    ]
    registry = with_plugins(
        builtin_registry(), PluginSpec("waits", "A test's plugin.", _WaitsForOne)
    )
    scenario = Scenario(case, load_config(config_text(tiers, ["preempt"]), registry))
    assert scenario.cycle().evicted == (["c1/preemptee"] if preemptable else [])


def test_of_many_pods_of_a_node_none_goes_in_vain() -> None:
    """What the queue may have is too little, which half of the pods do not change; the node has room."""
    options: Any = {"prio": 10}
    amounts = [("100m", 0), (0, "100Mi")] * 60
    pods = [
        ["c1", f"low-{index:03}", "n1", "Running", *amount, "pg-low", options]
        for index, amount in enumerate(amounts)
    ]
    case = {
        "classes": PREEMPT["classes"],
        "nodes": [["n1", 64, "64Gi", {"pods": 300}]],
        "queues": [["q1", {"capability": {"cpu": "6"}}]],
        "podgroups": [
            ["c1", "pg-low", "q1", 0, "Running", {"prio": "low-priority"}],
            ["c1", "pg-high", "q1", 1, "Inqueue", {"prio": "high-priority"}],
        ],
        "pods": [*pods, ["c1", "preemptor", "", "Pending", 3, 0, "pg-high"]],
    }
    scenario = Scenario(
        case, config_text([["priority", "gang"], ["predicates", "capacity"]], ["preempt"])
    )
    evicted = scenario.cycle().evicted
    assert len(evicted) == 30
    assert {int(key[-3:]) % 2 for key in evicted} == {0}


@pytest.mark.parametrize("action", ["preempt", "reclaim", "gangpreempt", "gangreclaim"])
def test_a_gang_for_which_there_is_room_is_bound_in_whatever_order_the_actions_come(
    action: str,
) -> None:
    case = {
        "nodes": [["n", 8, "8Gi"]],
        "podgroups": [["ns", "g", "default", 2, "", {}]],
        "pod_sets": [{"pg": "g", "count": 2}],
    }
    scenario = Scenario(case, config_text([["gang", "priority"]], ["enqueue", action, "allocate"]))
    assert sorted(scenario.cycle().binds) == ["ns/g-0", "ns/g-1"]
