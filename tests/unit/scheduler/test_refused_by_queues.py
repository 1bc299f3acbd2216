"""Gangs that their queue refused are tried again when it has room for them, and otherwise cost nothing."""

from typing import Any

import pytest

from pumice.scheduler.reports import ReportDelays
from tests.unit.scheduler.scenes import NOW, Scene, config_text, pod, queue

EVERY = 30.0
SHARING = pytest.mark.parametrize("plugin", ["proportion", "capacity"])


def _cluster(plugin: Any, gangs: int = 50, minimum: int = 4) -> Scene:
    """Queue `team` may have 4 cpus, of which it holds 3; gangs of 4 pods wait in it."""
    scene = Scene(
        {
            "nodes": [["n", 64, "64Gi"]],
            "queues": [["team", {"capability": {"cpu": 4}}]],
            "podgroups": [
                ["ns", "runs", "team", 1, "Running"],
                *(["ns", f"g{number}", "team", minimum, "Inqueue"] for number in range(gangs)),
            ],
            "pods": [["ns", f"runs-{n}", "n", "Running", 1, 0, "runs"] for n in range(3)],
            "pod_sets": [{"pg": f"g{number}", "count": 4, "memory": 0} for number in range(gangs)],
        },
        config_text([["gang", "predicates", plugin]]),
        delays=ReportDelays(numbers=EVERY),
    )
    assert scene.cycle().decided >= gangs
    while scene.cycle().pod_groups:
        pass
    return scene


def _stir(scene: Scene, number: int) -> None:
    """Something that helps no gang."""
    scene.state.set_pod(pod(["ns", f"other-{number}", "n", "Running", "100m", "1Mi", ""]))


@SHARING
def test_what_helps_none_of_them_is_no_reason_to_try_them(plugin: str) -> None:
    scene = _cluster(plugin)
    _stir(scene, 0)
    result = scene.cycle()
    assert result.decided == 0
    assert len(result.pending) == 50


@SHARING
def test_a_pod_that_goes_makes_room_for_too_few_of_them(plugin: str) -> None:
    scene = _cluster(plugin)
    scene.state.remove_pod("ns", "runs-0")
    assert scene.cycle().decided == 0
    scene.state.remove_pod("ns", "runs-1")
    scene.state.remove_pod("ns", "runs-2")
    assert sorted(scene.cycle().binds) == [f"ns/g0-{number}" for number in range(4)]


@SHARING
def test_a_higher_limit_makes_room(plugin: str) -> None:
    scene = _cluster(plugin, 2)
    scene.state.set_queue(queue(["team", {"capability": {"cpu": 7}}]))
    assert len(scene.cycle().binds) == 4


@SHARING
def test_a_pod_beyond_the_minimum_needs_room_for_itself(plugin: str) -> None:
    """Each gang has its minimum of one pod placed, as far as there is room."""
    scene = _cluster(plugin, 2, minimum=1)
    _stir(scene, 0)
    assert scene.cycle().decided == 0
    scene.state.remove_pod("ns", "runs-0")
    assert len(scene.cycle().binds) == 1


@SHARING
def test_the_numbers_in_the_reason_are_renewed_now_and_then(plugin: str) -> None:
    scene = _cluster(plugin, 1)
    before = scene.state.pending["ns/g0"].message
    assert before.endswith("queue team: 3 of 4 cpu used, 1 more allowed, needs 4")
    scene.state.remove_pod("ns", "runs-0")
    while scene.cycle(NOW + 1).pod_groups:
        pass
    assert scene.state.pending["ns/g0"].message == before
    scene.cycle(NOW + 1)
    cycles = scene.state.cycles
    scene.cycle(NOW + EVERY - 1)
    assert scene.state.cycles == cycles
    after = scene.cycle(NOW + EVERY).pending["ns/g0"].message
    assert after.endswith("queue team: 2 of 4 cpu used, 2 more allowed, needs 4")


@SHARING
def test_a_gang_that_changes_is_tried_at_once(plugin: str) -> None:
    scene = _cluster(plugin, 3)
    scene.state.remove_pod("ns", "g1-3")
    assert scene.cycle().decided == 0  # three pods are too few for its minimum
    scene.state.remove_pod_group("ns", "g1")
    scene.add_pod(["ns", "g2-9", "", "Pending", 1, 0, "g2"])
    assert scene.cycle().decided > 0


@pytest.mark.parametrize("switches", [["Allocatable"], ["Overused", "Allocatable"]])
def test_whichever_check_refuses_them(switches: list[str]) -> None:
    scene = _cluster({"proportion": switches}, 3)
    for number in range(3):
        scene.state.remove_pod("ns", f"runs-{number}")
    assert len(scene.cycle().binds) == 4


def test_what_is_kept_for_others_counts_as_used() -> None:
    """Of 8 cpus, 4 are kept for another queue until that uses them."""
    waits = [["ns", f"g{number}", "team", 4, "Inqueue"] for number in range(5)]
    scene = Scene(
        {
            "nodes": [["n", 8, "64Gi"]],
            "queues": [["team"], ["kept", {"guarantee": {"resource": {"cpu": 4}}}]],
            "podgroups": [["ns", "runs", "team", 1, "Running"], *waits],
            "pods": [["ns", "runs-0", "n", "Running", 1, 0, "runs"]],
            "pod_sets": [{"pg": f"g{number}", "count": 4, "memory": 0} for number in range(5)],
        },
        config_text([["gang", "predicates", "capacity"]]),
        delays=ReportDelays(numbers=EVERY),
    )
    while scene.cycle().pod_groups:
        pass
    message = scene.state.pending["ns/g0"].message
    text = "queue team: the cluster has 1 of 8 cpu used, 4 kept for guarantees of other queues, 3 more allowed, needs 4"
    assert message.endswith(text)
    _stir(scene, 0)
    assert scene.cycle().decided == 0
    scene.state.remove_pod("ns", "runs-0")
    assert sorted(scene.cycle().binds) == [f"ns/g0-{number}" for number in range(4)]
