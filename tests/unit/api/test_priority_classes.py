"""What pods have by their PriorityClass."""

from typing import Any

import msgspec
import pytest

from pumice.api.nodes import PriorityClass, with_priorities
from pumice.api.pods import Pod
from tests.kit.builders import pod

HIGH = {"metadata": {"name": "high"}, "value": 10, "preemptionPolicy": "PreemptLowerPriority"}
POLITE = {"metadata": {"name": "polite"}, "value": 20, "preemptionPolicy": "Never"}
USUAL = {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True}
QUIET = {
    "metadata": {"name": "quiet"},
    "value": 3,
    "globalDefault": True,
    "preemptionPolicy": "Never",
}


def admitted(spec: dict[str, Any], *classes: dict[str, Any]) -> tuple[int | None, str]:
    """Priority and preemption policy of a pod."""
    pods = msgspec.convert([pod("a", **spec)], list[Pod])
    [found] = with_priorities(pods, msgspec.convert(classes, list[PriorityClass]))
    return found.spec.priority, found.spec.preemption_policy


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"priorityClassName": "high"}, (10, "PreemptLowerPriority")),
        ({"priorityClassName": "polite"}, (20, "Never")),
        ({"priorityClassName": "polite", "priority": 7}, (7, "Never")),
        (
            {"priorityClassName": "polite", "preemptionPolicy": "PreemptLowerPriority"},
            (20, "PreemptLowerPriority"),
        ),
        ({"priorityClassName": "gone"}, (None, "")),
        ({"priorityClassName": "system-node-critical"}, (2_000_001_000, "")),
        ({}, (None, "")),
    ],
)
def test_the_class_that_a_pod_names(spec: dict[str, Any], expected: tuple[int | None, str]) -> None:
    assert admitted(spec, HIGH, POLITE) == expected


def test_the_default_class() -> None:
    assert admitted({}, HIGH, USUAL) == (5, "")
    assert admitted({}, USUAL, QUIET) == (3, "Never")
    assert admitted({"priorityClassName": "high"}, HIGH, QUIET) == (10, "PreemptLowerPriority")
    assert admitted({"priority": 7}, QUIET) == (7, "Never")
