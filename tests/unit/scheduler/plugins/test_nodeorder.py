"""kube-scheduler's scores."""

from typing import Any

import numpy as np
import pytest

from pumice.scheduler.model.nodes import Rows
from pumice.scheduler.plugins.nodeorder import SPEC, percent
from tests.unit.scheduler.answers import ask, open_session
from tests.unit.scheduler.scenes import Scene, case_id, config_text, load_cases

WEIGHTS = {argument.name: 0 for argument in SPEC.arguments if not argument.is_absent}


def _scene(case: dict[str, Any]) -> Scene:
    pod = dict(case.get("pod", {}))
    cpu, memory = pod.pop("cpu", 1), pod.pop("memory", "1Gi")
    return Scene(
        {
            "nodes": case["nodes"],
            "podgroups": [["c1", "pg1", "default", 0, "Inqueue"]],
            "pods": [["c1", "p1", "", "Pending", cpu, memory, "pg1", pod]],
        },
        config_text([["gang", {"nodeorder": None, "args": WEIGHTS | case["args"]}]]),
    )


@pytest.mark.parametrize("case", load_cases("node_order.yaml"), ids=case_id)
def test_scores(case: dict[str, Any]) -> None:
    scene = _scene(case)
    assert ask(scene, "c1/p1").score == [score * case["weight"] for score in case["score"]]
    assert scene.cycle().binds == {"c1/p1": case["bind"]}


@pytest.mark.parametrize("has", [1, 3, 7, 32_000, 2**37, 2**40 + 1, 2**42 - 1, 2**46 - 1])
def test_percent_are_those_of_whole_numbers(has: int) -> None:
    """Also where what is left is a unit more or less than a whole percent."""
    whole = {part * has // 100 + more for part in range(101) for more in (-1, 0, 1)}
    left = np.array(sorted(each for each in whole if 0 <= each <= has), dtype=np.int64)
    allocatable = np.full((len(left), 1), has, dtype=np.int64)
    nothing = np.zeros_like(allocatable)
    rows = Rows(slice(0, len(left)), allocatable, nothing, nothing, nothing)
    assert percent(left, rows, 0).tolist() == [part * 100 // has for part in left.tolist()]


def test_weights_of_zero_register_nothing() -> None:
    case: dict[str, Any] = {"nodes": [["n1", 2, "4Gi"]], "args": {}}
    assert open_session(_scene(case)).extensions.scores == []


def test_default_weights_register_load_affinity_and_taints() -> None:
    scene = Scene({"nodes": [["n1", 2, "4Gi"]]}, config_text([["nodeorder"]]))
    assert len(open_session(scene).extensions.scores) == 3
