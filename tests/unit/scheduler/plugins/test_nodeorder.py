"""kube-scheduler's scores."""

from typing import Any

import numpy as np
import pytest

from pumice.scheduler.model.rows import Rows
from pumice.scheduler.plugins.nodeorder import SPEC, percent
from tests.unit.scheduler.answers import ask, open_session
from tests.unit.scheduler.scenarios import Scenario, case_id, config_text, load_cases

WEIGHTS = {argument.name: 0 for argument in SPEC.arguments if not argument.is_absent}


def _scenario(case: dict[str, Any]) -> Scenario:
    pod = dict(case.get("pod", {}))
    cpu, memory = pod.pop("cpu", 1), pod.pop("memory", "1Gi")
    return Scenario(
        {
            "nodes": case["nodes"],
            "podgroups": [["c1", "pg1", "default", 0, "Inqueue"]],
            "pods": [["c1", "p1", "", "Pending", cpu, memory, "pg1", pod]],
        },
        config_text([["gang", {"nodeorder": None, "args": WEIGHTS | case["args"]}]]),
    )


@pytest.mark.parametrize("case", load_cases("node_order.yaml"), ids=case_id)
def test_scores(case: dict[str, Any]) -> None:
    scenario = _scenario(case)
    assert ask(scenario, "c1/p1").score == [score * case["weight"] for score in case["score"]]
    assert scenario.cycle().binds == {"c1/p1": case["bind"]}


@pytest.mark.parametrize(
    "case", load_cases("node_order_pods.yaml"), ids=lambda case: str(case["id"])
)
def test_other_pods(case: dict[str, Any]) -> None:
    pods = [
        ["c1", name, place, "Running", 0, 0, "", {"labels": labels, "spec": (rest or [{}])[0]}]
        for name, (place, labels, *rest) in case.get("running", {}).items()
    ]
    options = {"labels": case.get("labels", {}), "spec": case.get("spec", {})}
    scenario = Scenario(
        {
            "nodes": case["nodes"],
            "podgroups": [["c1", "pg1", "default", 0, "Inqueue"]],
            "pods": [*pods, ["c1", "p", "", "Pending", 1, "1Gi", "pg1", options]],
        },
        config_text([["gang", {"nodeorder": None, "args": WEIGHTS | case["args"]}]]),
    )
    assert ask(scenario, "c1/p").score == [score * case["weight"] for score in case["score"]]
    assert scenario.cycle().binds == {"c1/p": case["bind"]}


@pytest.mark.parametrize("has", [1, 3, 7, 32_000, 2**37, 2**40 + 1, 2**42 - 1, 2**46 - 1])
def test_percent_are_those_of_whole_numbers(has: int) -> None:
    """Also where what is left is a unit more or less than a whole percent."""
    whole = {part * has // 100 + more for part in range(101) for more in (-1, 0, 1)}
    left = np.array(sorted(each for each in whole if 0 <= each <= has), dtype=np.int64)
    allocatable = np.full((len(left), 1), has, dtype=np.int64)
    nothing = np.zeros_like(allocatable)
    rows = Rows(slice(0, len(left)), allocatable, nothing, nothing, nothing)
    assert percent(left, rows, 0).tolist() == [part * 100 // has for part in left.tolist()]


SPREAD = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
WITH_A_RULE = {"spec": {"topologySpreadConstraints": [SPREAD]}}


def test_weights_of_zero_register_nothing() -> None:
    case: dict[str, Any] = {"nodes": [["n1", 2, "4Gi"]], "args": {}, "pod": WITH_A_RULE}
    extensions = open_session(_scenario(case)).extensions
    assert (extensions.node_score, extensions.domain_score) == ([], [])


def test_default_weights_register_load_affinity_taints_and_other_pods() -> None:
    """Of the reference's row NO-8 only image locality is left out; other pods are while no pod has rules about them."""
    for pod, about_pods in ({}, 0), (WITH_A_RULE, 2):
        scenario = Scenario(
            {"nodes": [["n1", 2, "4Gi"]], "pods": [["c1", "p", "", "Pending", 1, "1Gi", "", pod]]},
            config_text([["nodeorder"]]),
        )
        extensions = open_session(scenario).extensions
        assert (len(extensions.node_score), len(extensions.domain_score)) == (3, about_pods)
