"""Gangs that wait cost nothing while nothing happens that could help them."""

from typing import Any

import numpy as np
import pytest

from pumice.scheduler import builtin_registry, load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.nodes import Rows
from pumice.scheduler.points import PodClass, Verdict
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.results import Reason
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from tests.unit.scheduler.scenes import Scene, config_text, node, pod, pod_group, with_plugins

WAITING = 500


class Counting:
    """Counts what it is asked; one object serves every session."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.scope: Any = "fixed"
        self.refusal: Reason | None = None

    def build(self, _arguments: Arguments) -> "Counting":
        return self

    def open(self, _session: SessionView, register: Registrar) -> None:
        def judge(_pods: PodClass, rows: Rows) -> Verdict:
            self.asked.append("filter")
            return Verdict(np.zeros(len(rows), dtype=np.int64), ())

        def allocatable(_queue: object, _task: object) -> Reason | None:
            self.asked.append("allocatable")
            return self.refusal

        register.node_filter(judge, scope=self.scope)
        register.allocatable(allocatable)

    def asked_since(self) -> int:
        count = len(self.asked)
        self.asked.clear()
        return count


def _cluster(counting: Counting, waiting: int = WAITING) -> Scene:
    """Two nodes of 4 cpus, one of which is full, and gangs of 8 that wait."""
    spec = PluginSpec("counting", "A test's plugin.", counting.build)
    config = load_config(
        config_text([["gang", "predicates", "counting"]]), with_plugins(builtin_registry(), spec)
    )
    groups = [["ns", f"g{number}", "default", 8, "Inqueue"] for number in range(waiting)]
    scene = Scene(
        {
            "nodes": [["n1", 4, "8Gi"], ["n2", 4, "8Gi"]],
            "podgroups": [*groups, ["ns", "runs", "default", 1, "Running"]],
            "pods": [
                ["ns", f"runs-{number}", "n1", "Running", 1, "1Gi", "runs"] for number in range(4)
            ],
            "pod_sets": [{"pg": f"g{number}", "count": 8} for number in range(waiting)],
        },
        config,
    )
    while scene.cycle().pod_groups:
        pass
    assert counting.asked_since() >= waiting
    return scene


def test_an_event_that_helps_nobody_asks_no_plugin_and_writes_nothing() -> None:
    counting = Counting()
    scene = _cluster(counting)
    scene.state.set_pod_group(pod_group(["ns", "runs", "default", 2, "Running"]))
    result = scene.cycle()
    assert counting.asked_since() == 0
    assert list(result.pod_groups) in ([], ["ns/runs"])
    assert len(result.pending) == WAITING


def test_a_pod_that_goes_on_running_helps_nobody() -> None:
    counting = Counting()
    scene = _cluster(counting, 5)
    scene.state.set_pod(pod(["ns", "runs-0", "n1", "Running", 1, "1Gi", "runs", {"prio": 3}]))
    scene.cycle()
    assert counting.asked_since() == 0


def test_room_for_no_pod_that_waits_helps_nobody() -> None:
    counting = Counting()
    scene = _cluster(counting, 5)
    scene.state.set_pod(pod(["ns", "small", "n1", "Running", "100m", "1Mi", ""]))
    scene.cycle()
    counting.asked_since()
    scene.state.remove_pod("ns", "small")
    scene.cycle()
    assert counting.asked_since() == 0


@pytest.mark.parametrize(
    "event",
    [
        lambda state: state.remove_pod("ns", "runs-0"),
        lambda state: state.set_pod(
            pod(["ns", "runs-0", "n1", "Running", 1, "1Gi", "runs", {"deleting": True}])
        ),
        lambda state: state.set_pod(pod(["ns", "runs-0", "n1", "Succeeded", 1, "1Gi", "runs"])),
        lambda state: state.set_node(node(["n1", 5, "8Gi"])),
        lambda state: state.set_node(node(["n3", 1, "8Gi"])),
    ],
    ids=["a pod goes", "a pod is about to go", "a pod is done", "a node grows", "a node comes"],
)
def test_new_room_lets_all_of_them_try_again(event: Any) -> None:
    counting = Counting()
    scene = _cluster(counting, 5)
    event(scene.state)
    scene.cycle()
    assert counting.asked_since() >= 5


def test_a_gang_that_changes_is_tried_alone() -> None:
    counting = Counting()
    scene = _cluster(counting, 5)
    scene.state.set_pod_group(pod_group(["ns", "g3", "default", 4, "Inqueue"]))
    result = scene.cycle()
    assert sorted(result.binds) == [f"ns/g3-{number}" for number in range(4)]


def test_what_a_plugin_refuses_is_asked_about_again() -> None:
    """A refusal by a plugin may end for reasons that nothing else knows."""
    counting = Counting()
    scene = _cluster(counting, 1)
    counting.refusal = Reason("Closed", "not now")
    scene.state.set_pod_group(pod_group(["ns", "g0", "default", 4, "Inqueue"]))
    assert scene.cycle().binds == {}
    counting.refusal = None
    scene.state.set_pod_group(pod_group(["ns", "runs", "default", 2, "Running"]))
    assert len(scene.cycle().binds) == 4


def test_with_a_filter_whose_answers_depend_on_all_nodes_everything_is_tried() -> None:
    counting = Counting()
    counting.scope = "all"
    scene = _cluster(counting, 5)
    scene.state.set_pod_group(pod_group(["ns", "runs", "default", 2, "Running"]))
    scene.cycle()
    assert counting.asked_since() >= 5
