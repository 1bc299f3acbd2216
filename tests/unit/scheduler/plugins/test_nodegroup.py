"""Which node groups a queue may use and prefers."""

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.scheduler import builtin_registry, load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.plugins.nodegroup import NodeGroup, _read_limits
from tests.unit.scheduler.answers import ask, open_session, queue_rules
from tests.unit.scheduler.scenarios import (
    Scenario,
    config_text,
    load_cases,
    load_document,
    pod_group,
    with_plugins,
)

LABEL = "volcano.sh/nodegroup-name"
POD = ["c1", "p1", "", "Pending", 2, "4Gi", "pg1"]
NODES = [["n1", 2, "4Gi", {"labels": {LABEL: "group1"}}]] + [
    [f"n{number}", 4, "16Gi", {"labels": {LABEL: f"group{number}"}}] for number in (2, 3, 4)
]
NODES.append(["n5", 4, "16Gi"])


def _queue(name: str, rules: dict[str, Any]) -> list[Any]:
    parent = rules.get("parent", "")
    wishes = {key: value for key, value in rules.items() if key != "parent"}
    return [name, {"parent": parent} | ({"affinity": queue_rules(**wishes)} if wishes else {})]


CASES = [(case, mode) for case in load_cases("node_groups.yaml", "cases") for mode in case["modes"]]


@pytest.mark.parametrize(
    ("case", "mode"), CASES, ids=[f"{case['id']}-{mode}" for case, mode in CASES]
)
def test_wishes(case: dict[str, Any], mode: str) -> None:
    rules = load_document("node_groups.yaml")["queues"]
    on = ["Predicate", "NodeOrder"] + (["Hierarchy"] if case.get("hierarchy") else [])
    arguments = case.get("args", {}) | {"nodegroup.mode": mode}
    scenario = Scenario(
        {
            "nodes": NODES,
            "queues": [_queue(name, dict(rules[name])) for name in rules],
            "podgroups": [["c1", "pg1", case["queue"], 1, "Inqueue"]],
            "pods": [POD],
        },
        config_text([[{"nodegroup": on, "args": arguments}]]),
    )
    answers = ask(scenario, "c1/p1", case["queue"])
    assert answers.allowed == [bool(each) for each in case["allowed"]]
    assert answers.score == case["score"]


@pytest.mark.parametrize(
    "case", load_cases("node_groups.yaml", "limits"), ids=lambda case: str(case["id"])
)
def test_limits(case: dict[str, Any]) -> None:
    scenario = _limited(case["limits"])
    if node := case.get("running"):
        scenario.add_pod(["c1", "r1", node, "Running", 2, "4Gi", "pg1"])
    assert ask(scenario, "c1/p1", "q").allowed == [bool(each) for each in case["allowed"]]


def test_limits_are_kept_current_while_pods_are_placed() -> None:
    """The first pod fits the limit of group1, the second one has to go elsewhere."""
    scenario = _limited('{"group1": {"cpu": "3", "memory": "8Gi"}}')
    scenario.add_pod(["c1", "p2", *POD[2:]])
    result = scenario.cycle()
    assert result.binds == {"c1/p1": "n1", "c1/p2": "n2"}


def test_limits_are_those_of_the_queue_as_it_is_when_a_cycle_begins() -> None:
    """The plugin lasts while no queue has limits; it begins anew with the first ones, and lasts again once they are gone."""
    scenario = _limited(None)
    limited = scenario.state.queues["q"]
    annotations = {"volcano.sh/nodegroup-resource-limits": '{"group1": {"cpu": "1"}}'}
    with_limits = replace(limited, metadata=replace(limited.metadata, annotations=annotations))
    for queue, node in ((limited, "n1"), (with_limits, "n2"), (limited, "n1"), (limited, "n1")):
        scenario.state.set_queue(queue)
        assert scenario.cycle().binds == {"c1/p1": node}
        assert (scenario.state.lasting is None) == (queue is with_limits)
        scenario.state.remove_pod("c1", "p1")
        scenario.add_pod(POD)


def test_an_undone_placement_frees_the_limit_again() -> None:
    """The gang of two does not fit; what it took of the limit tentatively is there for the next one."""
    scenario = _limited('{"group1": {"cpu": "3"}, "group2": {"cpu": "1"}}', minimum=2)
    scenario.add_pod(["c1", "p2", *POD[2:]])
    scenario.state.set_pod_group(_group("pg2"))
    scenario.add_pod(["c1", "q1", "", "Pending", 2, "4Gi", "pg2"])
    result = scenario.cycle()
    assert result.binds == {"c1/q1": "n1"}
    assert "node group limits of queue q exceeded" in result.pending["c1/pg1"].message


def test_a_preferred_group_comes_before_all_other_scores() -> None:
    """By load, everything speaks for n2; the queue speaks for group1."""
    scenario = _limited(None)
    scenario.add_pod(["c1", "other", "n2", "Running", 8, "32Gi", ""])
    assert scenario.cycle().binds == {"c1/p1": "n1"}


def test_an_avoided_group_is_used_when_nothing_else_has_room() -> None:
    affinity = queue_rules(anti_pref=["group1"])
    scenario = Scenario(
        {
            "nodes": NODES[:2],
            "queues": [["q", {"affinity": affinity}]],
            "podgroups": [["c1", "pg1", "q", 3, "Inqueue"]],
            "pods": [["c1", f"p{index}", *POD[2:]] for index in range(3)],
        }
    )
    assert scenario.cycle().binds == {"c1/p0": "n2", "c1/p1": "n2", "c1/p2": "n1"}


def _group(name: str, minimum: int = 1) -> Any:
    return pod_group(["c1", name, "q", minimum, "Inqueue"])


def _limited(limits: str | None, minimum: int = 1) -> Scenario:
    affinity = queue_rules(aff_req=["group1", "group2"], aff_pref=["group1"])
    annotations = {"volcano.sh/nodegroup-resource-limits": limits} if limits else {}
    return Scenario(
        {
            "nodes": [
                [f"n{number}", 16, "64Gi", {"pods": 32, "labels": {LABEL: f"group{number}"}}]
                for number in (1, 2)
            ],
            "queues": [["q", {"affinity": affinity, "annotations": annotations}]],
            "podgroups": [["c1", "pg1", "q", minimum, "Inqueue"]],
            "pods": [POD],
        }
    )


@pytest.mark.parametrize("text", ["[" * 1100, "[" + "1," * 40_000 + "1]"])
def test_limits_of_any_depth_and_size_are_read_over(text: str) -> None:
    assert _read_limits(text) is None


def test_what_queues_with_limits_hold_is_counted_from_columns() -> None:
    """As counted pod by pod: what runs, is bound or is being bound, by queue and group."""
    queues = [
        [name, {"annotations": {"volcano.sh/nodegroup-resource-limits": "{}"}}] for name in "ab"
    ]
    placed = [
        ("a", "n1", "Running"),
        ("a", "n1", "Pending"),
        ("a", "n2", "Running"),
        ("b", "n2", "Running"),
        ("b", "n5", "Running"),
        ("b", "n1", "Succeeded"),
        ("free", "n1", "Running"),
    ]
    scenario = Scenario(
        {
            "nodes": NODES,
            "queues": [*queues, ["free"]],
            "podgroups": [["c1", name, name, 0, "Running"] for name in ("a", "b", "free")],
            "pods": [
                ["c1", f"{queue}-{number}", node, phase, 1, "1Gi", queue]
                for number, (queue, node, phase) in enumerate(placed)
            ]
            + [["c1", "a-new", "", "Pending", 1, "1Gi", "a", {"selector": {LABEL: "group3"}}]],
        },
        config_text([["predicates"]]),
    )
    assert scenario.cycle().binds == {"c1/a-new": "n3"}
    seen: list[NodeGroup] = []

    class Seen(NodeGroup):
        def __init__(self, arguments: Arguments) -> None:
            super().__init__(arguments)
            seen.append(self)

    spec = replace(builtin_registry().plugins["nodegroup"], build=Seen)
    registry = with_plugins(builtin_registry(), spec)
    scenario.config = load_config(config_text([["nodegroup"]]), registry)
    open_session(scenario)
    held = {key: int(vector[0]) for key, vector in seen[0]._used.items()}
    assert held == {
        ("a", "group1"): 2000,
        ("a", "group2"): 1000,
        ("a", "group3"): 1000,
        ("b", "group2"): 1000,
    }
