"""How full nodes would be."""

from typing import Any

import pytest

from pumice.scheduler.arguments import Arguments
from pumice.scheduler.plugins.binpack import SPEC, resource_weights
from tests.unit.scheduler.answers import ask
from tests.unit.scheduler.scenarios import Scenario, config_text, load_cases


@pytest.mark.parametrize(
    "case", load_cases("binpack.yaml", "arguments"), ids=lambda case: str(case["id"])
)
def test_arguments(case: dict[str, Any]) -> None:
    assert resource_weights(Arguments(case["in"], SPEC.arguments)) == case["out"]


@pytest.mark.parametrize(
    "case", load_cases("binpack.yaml", "scores"), ids=lambda case: str(case["id"])
)
def test_scores(case: dict[str, Any]) -> None:
    scenario = Scenario(
        {"nodes": load_cases("binpack.yaml", "nodes"), "pods": load_cases("binpack.yaml", "pods")},
        config_text([[{"binpack": None, "args": case["args"]}]]),
    )
    for pod, scores in case["expect"].items():
        assert ask(scenario, f"ns/{pod}").score == pytest.approx(scores, abs=1e-6), pod


def test_the_fuller_node_is_taken() -> None:
    scenario = Scenario(
        {
            "nodes": [["n1", 8, "16Gi"], ["n2", 4, "8Gi"]],
            "podgroups": [["ns", "pg", "default", 1, "Inqueue"]],
            "pods": [["ns", "p", "", "Pending", 2, "4Gi", "pg"]],
        },
        config_text([["binpack"]]),
    )
    assert scenario.cycle().binds == {"ns/p": "n2"}
