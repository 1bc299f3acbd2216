"""Rules of pods that rule out nodes: those that are not supported are refused, bound claims are followed."""

from typing import Any

import msgspec
import pytest

from pumice.api.podgroups import PodGroup
from pumice.api.volumes import PersistentVolume, PersistentVolumeClaim
from tests.unit.scheduler.scenarios import Scenario, case_id, config_text, load_cases

NODES = [
    [
        "n1",
        4,
        "8Gi",
        {"labels": {"kubernetes.io/hostname": "n1", "topology.kubernetes.io/zone": "a"}},
    ],
    [
        "n2",
        4,
        "8Gi",
        {
            "labels": {
                "kubernetes.io/hostname": "n2",
                "topology.kubernetes.io/zone": "b",
                "failure-domain.beta.kubernetes.io/zone": "c",
            }
        },
    ],
]


DEVICES = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}


def _scenario(case: dict[str, Any]) -> Scenario:
    arguments = dict.fromkeys(case.get("disabled", ()), False)
    return Scenario(
        {
            **case,
            "nodes": NODES,
            "podgroups": [["ns", "pg", "default", 1, "Inqueue"]],
            "pods": [["ns", "p", "", "Pending", 1, "1Gi", "pg", {"spec": case["spec"]}]],
        },
        config_text([["gang", {"predicates": None, "args": arguments}]]),
    )


@pytest.mark.parametrize("case", load_cases("hard_rules.yaml"), ids=case_id)
def test_a_pod_is_placed_as_its_rules_say_or_not_at_all(case: dict[str, Any]) -> None:
    result = _scenario(case).cycle()
    if "node" in case:
        assert result.binds == {"ns/p": case["node"]}
    else:
        assert result.binds == {}
        assert case["reason"] in result.pending["ns/pg"].message


def test_a_pod_is_placed_once_its_claim_and_the_volume_are_there() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    scenario = _scenario({"spec": {"volumes": volumes}})
    assert scenario.cycle().binds == {}
    claim = {
        "metadata": {"namespace": "ns", "name": "data"},
        "spec": {"volumeName": "disk"},
        "status": {"phase": "Bound"},
    }
    assert scenario.state.set_claim(msgspec.convert(claim, PersistentVolumeClaim))
    assert scenario.cycle().binds == {}
    assert scenario.state.set_volume(
        msgspec.convert({"metadata": {"name": "disk"}}, PersistentVolume)
    )
    assert scenario.cycle().binds == {"ns/p": "n1"}


def test_the_rest_of_a_gang_does_not_go_without_the_pod_that_is_refused() -> None:
    case = {
        "nodes": NODES,
        "podgroups": [["ns", "pg", "default", 2, "Inqueue"]],
        "pods": [
            ["ns", "p-0", "", "Pending", 1, "1Gi", "pg"],
            ["ns", "p-1", "", "Pending", 1, "1Gi", "pg", {"spec": DEVICES}],
        ],
    }
    scenario = Scenario(case, config_text([["gang", "predicates"]]))
    result = scenario.cycle()
    assert result.binds == {}
    assert "a claim to devices (spec.resourceClaims)" in result.pending["ns/pg"].message


TERM = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "none"}}}
SPREAD = {**TERM, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}


@pytest.mark.parametrize(
    ("field", "rules", "switch"),
    [
        (
            "affinity",
            {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM] * 100}},
            "predicate.PodAffinityEnable",
        ),
        ("topologySpreadConstraints", [SPREAD] * 100, "predicate.PodTopologySpreadEnable"),
    ],
)
def test_a_pod_with_thousands_of_rules_about_others_is_refused_and_not_looked_at(
    field: str, rules: Any, switch: str
) -> None:
    """Also where they are preferences: each rule is compared with all pods and nodes."""
    scenario = _scenario({"spec": {field: rules}})
    result = scenario.cycle()
    assert result.binds == {}
    assert (
        f"more than 4 KiB of rules about other pods (spec.{field})"
        in result.pending["ns/pg"].message
    )
    assert not scenario.state.peers.is_live
    assert _scenario({"spec": {field: rules}, "disabled": [switch]}).cycle().binds == {"ns/p": "n1"}
    few: Any = rules[:10] if isinstance(rules, list) else {}
    assert _scenario({"spec": {field: few}}).cycle().binds == {"ns/p": "n1"}


HARD = "requiredDuringSchedulingIgnoredDuringExecution"
NAMES = [f"node-{number:05}" for number in range(3000)]
ONE_OF = [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1", *NAMES]}]


@pytest.mark.parametrize(
    ("field", "spec", "switch"),
    [
        ("nodeSelector", {"nodeSelector": dict.fromkeys(NAMES, "x")}, "NodeAffinityEnable"),
        (
            "affinity.nodeAffinity",
            {"affinity": {"nodeAffinity": {HARD: {"nodeSelectorTerms": [{"matchExpressions": ONE_OF}]}}}},
            "NodeAffinityEnable",
        ),
        (
            "tolerations",
            {"tolerations": [{"key": each, "operator": "Exists"} for each in NAMES]},
            "TaintTolerationEnable",
        ),
    ],
)  # fmt: skip
def test_a_pod_with_thousands_of_rules_about_nodes_is_refused_and_not_looked_at(
    field: str, spec: dict[str, Any], switch: str
) -> None:
    scenario = _scenario({"spec": spec})
    result = scenario.cycle()
    assert result.binds == {}
    message = result.pending["ns/pg"].message
    assert f"more than 32 KiB of rules about nodes (spec.{field})" in message
    shape = scenario.state.tasks["ns/p"].shape
    assert not any((shape.node_selector, shape.node_affinity, shape.tolerations))
    is_off = _scenario({"spec": spec, "disabled": [f"predicate.{switch}"]})
    assert is_off.cycle().binds == {"ns/p": "n1"}


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
@pytest.mark.parametrize("rule", [{}, DEVICES], ids=["without", "with a claim to devices"])
def test_nobody_is_evicted_for_a_gang_with_a_pod_that_is_refused(
    action: str, rule: dict[str, Any]
) -> None:
    case = {
        "nodes": [["n1", 2, "8Gi"]],
        "queues": [["q"]],
        "classes": {"high": 10, "low": 1},
        "podgroups": [
            ["ns", "low", "default", 1, "Running", {"prio": "low"}],
            [
                "ns",
                "high",
                "default" if action == "preempt" else "q",
                2,
                "Inqueue",
                {"prio": "high"},
            ],
        ],
        "pods": [
            *(
                ["ns", f"low-{place}", "n1", "Running", 1, "1Gi", "low", {"prio": 1}]
                for place in range(2)
            ),
            ["ns", "high-0", "", "Pending", 0.5, "1Gi", "high", {"prio": 10}],
            ["ns", "high-1", "", "Pending", 0.5, "1Gi", "high", {"prio": 10, "spec": rule}],
        ],
    }
    tiers = [["priority", "conformance", "gang", "proportion", "predicates"]]
    result = Scenario(case, config_text(tiers, ["allocate", action])).cycle()
    assert len(result.evicted) == (0 if rule else 1)


def test_a_pod_without_requests_is_refused_too() -> None:
    """Also by action backfill."""
    case = {
        "nodes": NODES,
        "podgroups": [["ns", "pg", "default", 1, "Inqueue"]],
        "pods": [["ns", "p", "", "Pending", 0, 0, "pg", {"spec": DEVICES}]],
    }
    config = config_text([["gang", "predicates"]], ["allocate", "backfill"])
    result = Scenario(case, config).cycle()
    assert result.binds == {}
    assert "a claim to devices (spec.resourceClaims)" in result.pending["ns/pg"].message


NEAR = {"name": "b", "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        ({"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}, True),
        ({"networkTopology": {"highestTierAllowed": 1}}, True),
        ({"networkTopology": {"mode": "soft"}}, False),
        ({"subGroupPolicy": [{"name": "a"}, NEAR]}, True),
        ({"subGroupPolicy": [{"name": "a"}]}, False),
    ],
    ids=["hard", "no mode", "soft", "hard in a sub-group", "sub-groups"],
)
def test_without_its_plugin_a_gang_that_must_be_near_in_the_network_waits(
    spec: dict[str, Any], refused: bool
) -> None:
    case = {
        "nodes": NODES,
        "podgroups": [["ns", "pg", "default", 1, "Inqueue"]],
        "pods": [["ns", "p", "", "Pending", 1, "1Gi", "pg"]],
    }
    for arguments in ({}, {"predicate.NetworkTopologyEnable": False}):
        scenario = Scenario(case, config_text([["gang", {"predicates": None, "args": arguments}]]))
        group = msgspec.to_builtins(scenario.state.jobs["ns/pg"].group)
        scenario.state.set_pod_group(
            msgspec.convert({**group, "spec": group["spec"] | spec}, PodGroup)
        )
        result = scenario.cycle()
        if refused and not arguments:
            assert result.binds == {}
            assert "network-topology-aware" in result.pending["ns/pg"].message
        else:
            assert result.binds == {"ns/p": "n1"}
