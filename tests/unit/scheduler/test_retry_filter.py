"""Gangs that wait cost nothing while nothing happens that could help them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from pumice.scheduler import builtin_registry, load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.points import FilterResult, PodClass
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.reports import ReportDelays
from pumice.scheduler.results import Reason
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from tests.unit.scheduler.scenes import (
    NOW,
    Scene,
    config_text,
    node,
    pod,
    pod_group,
    queue,
    with_plugins,
)

WAITING = 200
"""Gangs: several times as many as any bound below allows to be tried."""


class Counting:
    """Counts what it is asked; one object serves every session."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.scope: Any = "fixed"
        self.by_rules = False
        self.closed = False
        self.refusal: Reason | None = None

    def build(self, _arguments: Arguments) -> "Counting":
        return self

    def open(self, _session: SessionView, register: Registrar) -> None:
        def judge(_pods: PodClass, rows: Rows) -> FilterResult:
            self.asked.append("filter")
            return FilterResult(np.full(len(rows), int(self.closed)), ("node(s) were closed",))

        def allocatable(_queue: object, _task: object) -> Reason | None:
            self.asked.append("allocatable")
            return self.refusal

        register.node_filter(judge, scope=self.scope, by_rules=self.by_rules)
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


def test_an_event_that_helps_no_pod_asks_no_plugin_and_writes_nothing() -> None:
    counting = Counting()
    scene = _cluster(counting)
    scene.state.set_pod_group(pod_group(["ns", "runs", "default", 2, "Running"]))
    result = scene.cycle()
    assert counting.asked_since() == 0
    assert list(result.pod_groups) in ([], ["ns/runs"])
    assert len(result.pending) == WAITING


def test_a_pod_that_goes_on_running_helps_no_pod() -> None:
    counting = Counting()
    scene = _cluster(counting, 5)
    scene.state.set_pod(pod(["ns", "runs-0", "n1", "Running", 1, "1Gi", "runs", {"prio": 3}]))
    scene.cycle()
    assert counting.asked_since() == 0


def test_room_for_no_pod_that_waits_helps_no_pod() -> None:
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


def test_of_two_shapes_each_is_counted_alone() -> None:
    """8 pods of 1 cpu, one of 2 cpu and 4 cpu free: a place more is not enough for the 8."""
    counting = Counting()
    scene = _cluster(counting, 1)
    scene.add_pod(["ns", "g0-large", "", "Pending", 2, "1Gi", "g0"])
    scene.cycle()
    counting.asked_since()
    _gone(scene, 0)
    assert scene.cycle().binds == {}
    assert counting.asked_since() == 0


def test_one_place_may_be_enough_where_each_of_several_shapes_has_room_alone() -> None:
    """3 pods of 1 cpu and one of 2 cpu fit each, but not together on the 4 cpu that are free."""
    counting = Counting()
    scene = _cluster(counting, 0)
    scene.state.set_pod_group(pod_group(["ns", "mixed", "default", 4, "Inqueue"]))
    for name, cpu in (("a", 1), ("b", 1), ("c", 1), ("large", 2)):
        scene.add_pod(["ns", f"mixed-{name}", "", "Pending", cpu, "1Gi", "mixed"])
    assert scene.cycle().binds == {}
    scene.cycle()
    counting.asked_since()
    scene.cycle()
    assert counting.asked_since() == 0
    _gone(scene, 0)
    assert len(scene.cycle().binds) == 4


def test_of_many_equal_gangs_the_first_says_for_all_that_there_are_too_few_places() -> None:
    counting = Counting()
    scene = _cluster(counting)
    scene.state.set_node(node(["n3", 1, "8Gi"]))
    scene.cycle()
    assert counting.asked_since() < 20


@pytest.mark.parametrize("name", ["n2", "n3"], ids=["a node grows", "a node comes"])
def test_a_node_with_room_for_what_is_lacking_helps(name: str) -> None:
    counting = Counting()
    scene = _cluster(counting, 5)
    scene.state.set_node(node([name, 8, "16Gi"]))
    result = scene.cycle()
    assert sorted(result.binds) == [f"ns/g0-{number}" for number in range(8)]


SHAPES: dict[str, dict[str, Any]] = {"labels": {"pool": "a"}}


def _shapes(
    counting: Counting,
    size: int,
    options: Mapping[str, Any] | None = None,
    *,
    at_least: int = 2 * WAITING,
) -> Scene:
    """A full node, and many gangs of as many pods that ask for 1 cpu and more, each for something else."""
    spec = PluginSpec("counting", "A test's plugin.", counting.build)
    config = load_config(
        config_text([["gang", "predicates", "counting"]]), with_plugins(builtin_registry(), spec)
    )
    groups = [["ns", f"g{number:03}", "default", size, "Inqueue"] for number in range(WAITING)]
    scene = Scene(
        {
            "nodes": [["n1", 2, "64Gi", SHAPES]],
            "podgroups": groups,
            "pods": [["ns", "runs", "n1", "Running", 2, "1Gi", ""]],
            "pod_sets": [
                {
                    "pg": f"g{number:03}",
                    "count": size,
                    "cpu": f"{1001 + number}m",
                    "memory": "1Mi",
                    **(options or {}),
                }
                for number in range(WAITING)
            ],
        },
        config,
        delays=ReportDelays(numbers=30.0, counts=30.0),
    )
    while scene.cycle().pod_groups:
        pass
    assert counting.asked_since() >= at_least
    return scene


NODES: dict[str, list[Any]] = {
    "grows too little": ["n1", 3, "64Gi", SHAPES],
    "grows by fewer places than are lacking": ["n1", 14, "64Gi", SHAPES],
    "is labelled": ["n1", 2, "64Gi", {"labels": {"pool": "b"}}],
    "comes with fewer places than are lacking": ["n2", 7, "64Gi", SHAPES],
    "comes cordoned": ["n2", 64, "64Gi", SHAPES | {"unschedulable": True}],
    "comes tainted": [
        "n2",
        64,
        "64Gi",
        SHAPES | {"taints": [{"key": "t", "effect": "NoSchedule"}]},
    ],
}


@pytest.mark.parametrize("row", NODES.values(), ids=NODES)
def test_gangs_of_different_shapes_are_not_tried_for_a_node_that_cannot_help(row: Any) -> None:
    counting = Counting()
    scene = _shapes(counting, 20)
    scene.state.set_node(node(row))
    has_room = row[1] == 64
    counting.asked_since()
    assert scene.cycle().binds == {}
    assert counting.asked_since() <= (WAITING if has_room else 0)


@pytest.mark.parametrize("size", [1, 20])
def test_a_node_of_another_pool_is_refused_by_its_row_alone(size: int) -> None:
    """A filter is asked once about each gang, for one row; nothing is scored, explained or written."""
    counting = Counting()
    scene = _shapes(counting, size, {"selector": {"pool": "a"}})
    scene.state.set_node(node(["n2", 64, "64Gi", {"labels": {"pool": "b"}}]))
    result = scene.cycle()
    assert (result.binds, list(result.pod_groups)) == ({}, [])
    assert counting.asked_since() <= WAITING


def _a_node_of_another_pool_comes(scene: Scene) -> None:
    scene.state.set_node(node(["n2", 64, "64Gi", {"labels": {"pool": "b"}}]))


def _the_queue_changes(scene: Scene) -> None:
    scene.state.set_queue(queue(["default", {"weight": 7}]))


@pytest.mark.parametrize("happens", [_a_node_of_another_pool_comes, _the_queue_changes])
def test_a_filter_that_reads_rules_alone_is_asked_once_for_gangs_that_differ_in_their_requests(
    happens: Callable[[Scene], None],
) -> None:
    """Once for all, and not once for each gang."""
    counting = Counting()
    counting.by_rules = True
    scene = _shapes(counting, 1, {"selector": {"pool": "a"}}, at_least=1)
    happens(scene)
    counting.asked_since()
    assert scene.cycle().binds == {}
    assert counting.asked.count("filter") <= 1


def test_of_gangs_of_different_shapes_those_behind_the_room_are_not_tried() -> None:
    """An empty node of 8 cpu: seven gangs of one pod of 1,001 to 1,007 milli-cpu take it, the others ask nothing."""
    counting = Counting()
    scene = _shapes(counting, 1)
    scene.state.set_node(node(["n2", 8, "64Gi", SHAPES]))
    result = scene.cycle()
    assert sorted(result.binds) == [f"ns/g{number:03}-0" for number in range(7)]
    assert counting.asked_since() <= 60


def test_reasons_of_gangs_that_were_not_tried_are_renewed_a_few_a_cycle() -> None:
    """Every gang says in the end that there are two nodes."""
    counting = Counting()
    scene = _shapes(counting, 20)
    scene.state.set_node(node(["n2", 1, "64Gi", SHAPES]))
    now, written = NOW, 0
    for _ in range(WAITING):
        now += 30.0
        result = scene.cycle(now)
        assert len(result.pod_groups) <= 10
        written += len(result.pod_groups)
    assert written == WAITING
    assert all("0/2 nodes" in reason.message for reason in result.pending.values())
    assert scene.state.is_settled(scene.config, now)


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


def test_gangs_that_a_filter_refuses_whose_answers_depend_on_all_nodes_are_tried_in_every_cycle() -> (
    None
):
    counting = Counting()
    counting.scope = "all"
    scene = _cluster(counting, 5)
    counting.closed = True
    for number in range(5):
        scene.state.set_pod_group(pod_group(["ns", f"g{number}", "default", 4, "Inqueue"]))
    assert scene.cycle().binds == {}
    counting.asked_since()
    scene.state.set_pod_group(pod_group(["ns", "runs", "default", 2, "Running"]))
    assert scene.cycle().binds == {}
    assert counting.asked_since() >= 5
    counting.closed = False
    scene.state.set_pod_group(pod_group(["ns", "runs", "default", 3, "Running"]))
    assert len(scene.cycle().binds) == 4


def test_too_little_room_is_too_little_whatever_such_a_filter_says() -> None:
    counting = Counting()
    counting.scope = "all"
    scene = _cluster(counting, 5)
    scene.state.set_pod_group(pod_group(["ns", "runs", "default", 2, "Running"]))
    scene.cycle()
    assert counting.asked_since() == 0
