"""Gangs that wait cost nothing while nothing happens that could help them."""

from collections.abc import Callable
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


def _gone(scene: Scene, number: int) -> None:
    scene.state.remove_pod("ns", f"runs-{number}")


def _going(scene: Scene, number: int) -> None:
    row = ["ns", f"runs-{number}", "n1", "Running", 1, "1Gi", "runs", {"deleting": True}]
    scene.state.set_pod(pod(row))


def _done(scene: Scene, number: int) -> None:
    scene.state.set_pod(pod(["ns", f"runs-{number}", "n1", "Succeeded", 1, "1Gi", "runs"]))


@pytest.mark.parametrize("event", [_gone, _going, _done])
def test_gangs_are_tried_again_when_as_many_places_are_free_as_they_were_short_of(
    event: Callable[[Scene, int], None],
) -> None:
    """Of 8 pods 4 have found a place; the nodes gain one place at a time."""
    counting = Counting()
    scene = _cluster(counting, 5)
    for number in range(3):
        event(scene, number)
        assert scene.cycle().binds == {}
        assert counting.asked_since() == 0
    event(scene, 3)
    result = scene.cycle()
    assert counting.asked_since() > 0
    assert (len(result.binds), len(result.pipelined)) == ((0, 4) if event is _going else (8, 0))


def test_one_place_may_be_enough_for_pods_of_several_shapes() -> None:
    counting = Counting()
    scene = _cluster(counting, 1)
    scene.add_pod(["ns", "g0-large", "", "Pending", 2, "1Gi", "g0"])
    scene.cycle()
    counting.asked_since()
    _gone(scene, 0)
    scene.cycle()
    assert counting.asked_since() > 0


def test_of_many_equal_gangs_the_first_says_for_all_that_there_are_too_few_places() -> None:
    counting = Counting()
    scene = _cluster(counting)
    scene.state.set_node(node(["n3", 1, "8Gi"]))
    scene.cycle()
    assert counting.asked_since() < 20


@pytest.mark.parametrize("name", ["n1", "n3"], ids=["a node grows", "a node comes"])
def test_a_change_of_a_node_may_help_all_of_them(name: str) -> None:
    counting = Counting()
    scene = _cluster(counting, 5)
    scene.state.set_node(node([name, 5, "8Gi"]))
    scene.cycle()
    assert counting.asked_since() > 0


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
