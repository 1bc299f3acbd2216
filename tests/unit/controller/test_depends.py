"""Launch order inside a Job."""

from typing import Any

import msgspec
import pytest

from pumice.api.pods import Pod
from pumice.controller.depends import held_tasks, is_ready
from pumice.controller.subject import read
from tests.builders import job, pod, task

Raw = dict[str, Any]


def _pods(role: str, *phases: str, ready: bool = True) -> list[Pod]:
    found = []
    for index, phase in enumerate(phases):
        raw = pod(f"j-{role}-{index}", role=role, phase=phase)
        raw["status"]["containerStatuses"] = [{"name": "main", "ready": ready}]
        found.append(msgspec.convert(raw, Pod))
    return found


def _held(*names: str, iteration: str = "", pods: list[Pod], **fields: Any) -> list[str]:
    depends = {"name": list(names), "iteration": iteration}
    tasks = [task("a", 2), task("b", 1), task("c", 1, dependsOn=depends, **fields)]
    return [each.message for each in held_tasks(read(job("j", tasks, uid="u")), pods)]


@pytest.mark.parametrize(
    ("replicas", "minimum", "pods", "ready"),
    [
        (2, 2, _pods("a", "Succeeded", "Succeeded"), True),
        (1, 1, _pods("a", "Running"), True),
        (1, 1, _pods("a", "Running", ready=False), False),
        (2, 2, _pods("a", "Running"), False),
        (2, 1, _pods("a", "Running", "Failed"), True),
        (1, 1, _pods("a", "Pending"), False),
    ],
    ids=["AC-32", "AC-33", "AC-34", "XAC-1", "enough", "pending"],
)
def test_is_ready(replicas: int, minimum: int, pods: list[Pod], ready: bool) -> None:
    subject = read(job("j", [task("a", replicas, minAvailable=minimum)], uid="u")).tasks[0]
    assert is_ready(subject, pods) is ready


def test_a_pod_that_is_being_removed_is_not_ready() -> None:
    raw = pod("j-a-0", role="a", phase="Running")
    raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    subject = read(job("j", [task("a", 1)], uid="u")).tasks[0]
    assert not is_ready(subject, [msgspec.convert(raw, Pod)])


def test_all_means_each_of_them() -> None:
    """XAC-3; what is no word for `any` means all."""
    pods = _pods("a", "Running", "Running")
    expected = ["task c waits for task b (0 of 1 pods ready)"]
    for iteration in ("", "all", "whatever"):
        assert _held("a", "b", iteration=iteration, pods=pods) == expected
    assert _held("a", "b", pods=pods + _pods("b", "Succeeded")) == []


def test_any_means_one_of_several() -> None:
    """XAC-2."""
    assert _held("a", "b", iteration="any", pods=_pods("b", "Running")) == []
    assert _held("a", "b", iteration="any", pods=[]) == [
        "task c waits for task a (0 of 2 pods ready) and task b (0 of 1 pods ready)"
    ]


def test_any_of_one_means_that_one() -> None:
    """XAC-4."""
    assert _held("b", iteration="any", pods=[]) == ["task c waits for task b (0 of 1 pods ready)"]


def test_a_task_that_does_not_exist_holds_for_ever_and_says_so() -> None:
    assert _held("ghost", pods=[]) == ["task c waits for task ghost, which does not exist"]


def test_tasks_without_dependencies_are_never_held() -> None:
    assert held_tasks(read(job("j", [task("a", 2)], uid="u")), []) == ()


def test_it_is_known_whether_a_held_task_has_started() -> None:
    depends = {"name": ["a"]}
    subject = read(job("j", [task("a", 1), task("c", 2, dependsOn=depends)], uid="u"))
    assert [each.started for each in held_tasks(subject, [])] == [False]
    assert [each.started for each in held_tasks(subject, _pods("c", "Running"))] == [True]
