"""Rules about other pods: which nodes they leave, and the reasons in the words of kube-scheduler."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from pumice.api.nodes import Namespace
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.peer_reference import (
    AFFINITY,
    ANTI_AFFINITY,
    MISSING,
    SKEW,
    SYMMETRY,
    refusals,
)
from tests.unit.scheduler.scenarios import Scenario, case_id, config_text, load_cases

Raw = dict[str, Any]

REASONS = {
    "affinity": AFFINITY,
    "anti-affinity": ANTI_AFFINITY,
    "symmetry": SYMMETRY,
    "skew": SKEW,
    "missing": MISSING,
    "taint": "node(s) had untolerated taint {t: }",
    "node affinity": "node(s) didn't match Pod's node affinity/selector",
}
OTHERS = (REASONS["taint"], REASONS["node affinity"])
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _scenario(case: Raw, nodes: list[Any], pods: list[Any]) -> Scenario:
    arguments = dict.fromkeys(case.get("disabled", ()), False)
    document = {
        "nodes": nodes,
        "podgroups": [["ns", "g", "default", 1, "Inqueue"]],
        "pods": pods,
    }
    scenario = Scenario(document, config_text([["gang", {"predicates": None, "args": arguments}]]))
    for name, labels in case.get("namespaces", {}).items():
        manifest = {"metadata": {"name": name, "labels": labels}}
        scenario.state.set_namespace(msgspec.convert(manifest, Namespace))
    return scenario


def _check(case: Raw, nodes: list[Any], pods: list[Any]) -> None:
    """What the ranking says, what the rules of the documentation say, and what a cycle does, are all what the case says."""
    wanted = {name: REASONS[word] for name, word in case["refused"].items()}
    scenario = _scenario(case, nodes, pods)
    session = open_session(scenario)
    ranking = session.ranking(scenario.state.tasks["ns/p"], "default")
    assert dict(ranking.why_not().refusals.counts) == dict(Counter(wanted.values()))
    if "disabled" not in case:
        facts = {row[0]: row[3] for row in nodes}
        manifests = list(scenario.pods.values())
        said = refusals(scenario.pods["ns/p"], facts, manifests, case.get("namespaces", {}))
        others = [name for name, reason in wanted.items() if reason in OTHERS]
        said |= {name: wanted[name] for name in others}
        assert {name: reason for name, reason in said.items() if reason} == wanted
    session.close()
    result = scenario.cycle()
    if len(wanted) < len(nodes):
        assert result.binds["ns/p"] not in wanted
    else:
        assert not result.binds
        for reason, count in Counter(wanted.values()).items():
            assert f"{count} {reason}" in result.pending["ns/g"].message


def _spec(row: Raw) -> Raw:
    affinity = {}
    for word, side in (("near", "podAffinity"), ("apart", "podAntiAffinity")):
        if word in row:
            affinity[side] = {REQUIRED: row[word]}
    return {"affinity": affinity} if affinity else {}


@pytest.mark.parametrize("case", load_cases("inter_pod.yaml"), ids=case_id)
def test_pod_affinity(case: Raw) -> None:
    nodes = [[name, 4, "8Gi", {"labels": labels}] for name, labels in case["nodes"].items()]
    pods = []
    for name, row in case.get("pods", {}).items():
        options = {key: row[key] for key in ("labels", "scheduler", "deleting") if key in row}
        phase = row.get("phase", "Running")
        options["spec"] = _spec(row)
        pods.append([row.get("ns", "ns"), name, row["node"], phase, 0, 0, "", options])
    options = {"labels": case["pod"].get("labels", {}), "spec": _spec(case["pod"])}
    options["spec"] |= case.get("spec", {})
    _check(case, nodes, [*pods, ["ns", "p", "", "Pending", 1, "1Gi", "g", options]])


@pytest.mark.parametrize("case", load_cases("topology_spread.yaml"), ids=case_id)
def test_topology_spread(case: Raw) -> None:
    nodes = []
    for name, facts in case["nodes"].items():
        options = facts if "labels" in facts else {"labels": facts}
        options = {**options, "labels": {key: str(each) for key, each in options["labels"].items()}}
        nodes.append([name, 4, "8Gi", options])
    pods: list[Any] = []
    for name, count in case.get("pods", {}).items():
        options = {"labels": {"app": "a"}, "deleting": case.get("deleting", False)}
        ns = case.get("ns", "ns")
        pods += [[ns, f"{name}-{i}", name, "Running", 0, 0, "", options] for i in range(count)]
    usual = {
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    spec = {"topologySpreadConstraints": [usual | each for each in case["spread"]]}
    options = {"labels": case.get("labels", {"app": "a"}), "spec": spec | case.get("spec", {})}
    pods.append(["ns", "p", "", "Pending", 1, "1Gi", "g", options])
    _check(case, nodes, pods)
