"""Gangs that their queue refused are tried again when it has room for them, and otherwise cost nothing."""

from typing import Any

import pytest

from pumice.scheduler.reports import Pace
from tests.unit.scheduler.scenes import NOW, Scene, config_text, pod, queue

EVERY = 30.0


def _cluster(gangs: int = 50, minimum: int = 4, **plugins: Any) -> Scene:
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
        config_text(plugins.get("tiers", [["gang", "predicates", "proportion"]])),
        pace=Pace(numbers=EVERY),
    )
    assert scene.cycle().decided >= gangs
    while scene.cycle().pod_groups:
        pass
    return scene


def _stir(scene: Scene, number: int) -> None:
    """Something that helps no gang."""
    scene.state.set_pod(pod(["ns", f"other-{number}", "n", "Running", "100m", "1Mi", ""]))


def test_what_helps_none_of_them_is_no_reason_to_try_them() -> None:
    scene = _cluster()
    _stir(scene, 0)
    result = scene.cycle()
    assert result.decided == 0
    assert len(result.pending) == 50


def test_a_pod_that_goes_makes_room_for_too_few_of_them() -> None:
    scene = _cluster()
    scene.state.remove_pod("ns", "runs-0")
    assert scene.cycle().decided == 0
    scene.state.remove_pod("ns", "runs-1")
    scene.state.remove_pod("ns", "runs-2")
    assert sorted(scene.cycle().binds) == [f"ns/g0-{number}" for number in range(4)]


def test_a_higher_limit_makes_room() -> None:
    scene = _cluster(2)
    scene.state.set_queue(queue(["team", {"capability": {"cpu": 7}}]))
    assert len(scene.cycle().binds) == 4


def test_a_pod_beyond_the_minimum_needs_room_for_itself() -> None:
    """Each gang has its minimum of one pod placed, as far as there is room."""
    scene = _cluster(2, minimum=1)
    _stir(scene, 0)
    assert scene.cycle().decided == 0
    scene.state.remove_pod("ns", "runs-0")
    assert len(scene.cycle().binds) == 1


def test_the_numbers_in_the_reason_are_renewed_now_and_then() -> None:
    scene = _cluster(1)
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


def test_a_gang_that_changes_is_tried_at_once() -> None:
    scene = _cluster(3)
    scene.state.remove_pod("ns", "g1-3")
    assert scene.cycle().decided == 0  # three pods are too few for its minimum
    scene.state.remove_pod_group("ns", "g1")
    scene.add_pod(["ns", "g2-9", "", "Pending", 1, 0, "g2"])
    assert scene.cycle().decided > 0


@pytest.mark.parametrize("switches", [["Allocatable"], ["Overused", "Allocatable"]])
def test_whichever_check_refuses_them(switches: list[str]) -> None:
    scene = _cluster(3, tiers=[["gang", "predicates", {"proportion": switches}]])
    for number in range(3):
        scene.state.remove_pod("ns", f"runs-{number}")
    assert len(scene.cycle().binds) == 4
