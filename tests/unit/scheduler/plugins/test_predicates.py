"""Nodes that a pod may not use, and what is said about them."""

from typing import Any

import pytest

from tests.unit.scheduler.answers import ask
from tests.unit.scheduler.scenarios import Scenario, case_id, config_text, load_cases, node


def _scenario(case: dict[str, Any], config: str | None = None) -> Scenario:
    options = {key: value for key, value in case.get("pod", {}).items() if key != "selector_not"}
    terms = [{"matchExpressions": term} for term in case.get("required", [])]
    if "fields" in case:
        terms.append({"matchFields": case["fields"]})
    if terms:
        selector = {"nodeSelectorTerms": terms}
        options["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}
        }
    return Scenario(
        {
            "nodes": case["nodes"],
            "podgroups": [["ns", "pg", "default", 1, "Inqueue"]],
            "pods": [
                *case.get("others", []),
                ["ns", "p", "", "Pending", 1, "1Gi", "pg", options],
            ],
        },
        config or config_text([["gang", "predicates"]]),
    )


@pytest.mark.parametrize("case", load_cases("predicates.yaml"), ids=case_id)
def test_nodes(case: dict[str, Any]) -> None:
    scenario = _scenario(case)
    assert ask(scenario, "ns/p").allowed == [bool(each) for each in case["allowed"]]
    result = scenario.cycle()
    if "message" in case:
        assert result.pods["ns/p"].message == case["message"]
        assert result.binds == {}
    elif any(case["allowed"]):
        names = [row[0] for row in case["nodes"]]
        assert result.binds == {"ns/p": names[case["allowed"].index(1)]}
    else:
        assert result.binds == {}


@pytest.mark.parametrize(
    ("argument", "case"),
    [
        ("predicate.NodeAffinityEnable", {"pod": {"selector": {"disk": "ssd"}}}),
        ("predicate.NodePortsEnable", {"pod": {"ports": [80]}}),
        ("predicate.TaintTolerationEnable", {}),
    ],
)
def test_a_filter_can_be_turned_off(argument: str, case: dict[str, Any]) -> None:
    taint = {"key": "t", "effect": "NoSchedule"}
    options = {"taints": [taint]} if "Taint" in argument else {}
    case = case | {
        "nodes": [["n1", 4, "8Gi", options]],
        "others": [["kube-system", "web", "n1", "Running", 0, 0, "", {"ports": [80]}]],
    }
    assert _scenario(case).cycle().binds == {}
    off = config_text([["gang", {"predicates": None, "args": {argument: False}}]])
    assert _scenario(case, off).cycle().binds == {"ns/p": "n1"}


def test_pods_of_one_gang_do_not_share_a_host_port() -> None:
    scenario = Scenario(
        {
            "nodes": [["n1", 4, "8Gi"], ["n2", 4, "8Gi"]],
            "podgroups": [["ns", "pg", "default", 2, "Inqueue"]],
            "pods": [
                ["ns", f"p{i}", "", "Pending", 1, "1Gi", "pg", {"ports": [80]}] for i in (1, 2)
            ],
        }
    )
    assert scenario.cycle().binds == {"ns/p1": "n1", "ns/p2": "n2"}


def test_a_port_is_free_again_when_its_gang_is_undone() -> None:
    """Gang a needs the port three times and there are two nodes; b comes after it."""
    pods = [["ns", f"a{i}", "", "Pending", 1, "1Gi", "a", {"ports": [80]}] for i in range(3)]
    scenario = Scenario(
        {
            "nodes": [["n1", 4, "8Gi"], ["n2", 4, "8Gi"]],
            "podgroups": [
                ["ns", "a", "default", 3, "Inqueue"],
                ["ns", "b", "default", 1, "Inqueue"],
            ],
            "pods": [*pods, ["ns", "b0", "", "Pending", 1, "1Gi", "b", {"ports": [80]}]],
        }
    )
    result = scenario.cycle()
    assert result.binds == {"ns/b0": "n1"}
    assert "2 node(s) didn't have free ports" in result.pending["ns/a"].message


def test_masks_follow_labels_and_taints() -> None:
    """A node that gains the label is used in the next cycle; one that loses it is not."""
    case: dict[str, Any] = {"nodes": [["n1", 4, "8Gi"]], "pod": {"selector": {"disk": "ssd"}}}
    scenario = _scenario(case)
    assert scenario.cycle().binds == {}
    scenario.state.set_node(
        node(["n1", 4, "8Gi", {"labels": {"disk": "ssd"}, "unschedulable": True}])
    )
    assert "1 node(s) were unschedulable" in scenario.cycle().pods["ns/p"].message
    scenario.state.set_node(node(["n1", 4, "8Gi", {"labels": {"disk": "ssd"}}]))
    assert scenario.cycle().binds == {"ns/p": "n1"}


def test_hundreds_of_labels_in_a_selector_are_not_kept_and_still_follow_nodes() -> None:
    labels = {f"label-{place:04}": "x" for place in range(400)}
    case: dict[str, Any] = {"nodes": [["n1", 4, "8Gi"]], "pod": {"selector": labels}}
    scenario = _scenario(case)
    assert scenario.cycle().binds == {}
    affinity = [[{"key": key, "operator": "Exists"}] for key in labels]
    other = _scenario({"nodes": [["n1", 4, "8Gi"]], "required": affinity})
    assert other.cycle().binds == {}
    assert len(other.state.facts._labels) < 100
    last = {"label-0399": "x"}
    other.state.set_node(node(["n1", 4, "8Gi", {"labels": last}]))
    assert other.cycle().binds == {"ns/p": "n1"}
    scenario.state.set_node(node(["n1", 4, "8Gi", {"labels": last}]))
    assert scenario.cycle().binds == {}
    scenario.state.set_node(node(["n1", 4, "8Gi", {"labels": labels}]))
    assert scenario.cycle().binds == {"ns/p": "n1"}
