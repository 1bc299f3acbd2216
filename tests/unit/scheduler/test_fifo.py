"""Queues that take their gangs in order: the first that does not fit holds up those behind it."""

from typing import Any

import pytest

from tests.unit.scheduler.scenes import Scene, config_text, pod_group

PLUGINS: list[Any] = [["priority", "gang"], ["capacity", "predicates", "nodeorder"]]


def _cluster(strategy: str, phase: str = "Inqueue") -> dict[str, Any]:
    """A small gang behind one for which the node is too small; another queue beside them."""
    return {
        "nodes": [["n", 4, "8Gi"]],
        "queues": [["q", {"dequeueStrategy": strategy, "capability": {"cpu": 6}}], ["other"]],
        "podgroups": [
            ["ns", name, queue, size, phase, {"created": f"2024-01-0{day}T00:00:00Z", **needs}]
            for day, (name, queue, size, needs) in enumerate(
                [
                    ("big", "q", 5, {"minRes": {"cpu": 5 if phase == "Inqueue" else 7}}),
                    ("small", "q", 2, {"minRes": {"cpu": 2}}),
                    ("beside", "other", 1, {}),
                ],
                1,
            )
        ],
        "pod_sets": [
            {"pg": "big", "count": 5},
            {"pg": "small", "count": 2},
            {"pg": "beside", "count": 1},
        ],
    }


@pytest.mark.parametrize("phase", ["Inqueue", "Pending"])
@pytest.mark.parametrize(
    ("strategy", "placed"),
    [("fifo", ["ns/beside-0"]), ("traverse", ["ns/beside-0", "ns/small-0", "ns/small-1"])],
)
def test_the_first_gang_that_does_not_fit(strategy: str, placed: list[str], phase: str) -> None:
    scene = Scene(_cluster(strategy, phase), config_text(PLUGINS))
    bound: list[str] = []
    for _ in range(2):  # the gang that found no node is not worth another try, and still is ahead
        result = scene.cycle()
        bound += result.binds
    assert sorted(bound) == placed
    if strategy == "fifo":
        reason = result.pending["ns/small"]
        assert reason.reason == "BehindInQueue"
        assert reason.details == {"queue": "q", "ahead": "ns/big"}


def test_gangs_go_on_when_the_one_ahead_is_gone() -> None:
    scene = Scene(_cluster("fifo"), config_text(PLUGINS))
    scene.cycle()
    for number in range(5):
        scene.state.remove_pod("ns", f"big-{number}")
    scene.state.remove_pod_group("ns", "big")
    assert sorted(scene.cycle().binds) == ["ns/small-0", "ns/small-1"]


def test_gangs_go_on_when_the_one_ahead_fits() -> None:
    scene = Scene(_cluster("fifo"), config_text(PLUGINS))
    scene.cycle()
    scene.state.set_pod_group(
        pod_group(["ns", "big", "q", 1, "Inqueue", {"created": "2024-01-01T00:00:00Z"}])
    )
    assert sorted(scene.cycle().binds) == ["ns/big-0", "ns/small-0", "ns/small-1"]


def test_pods_beyond_the_minimum_of_a_gang_hold_up_no_other() -> None:
    cluster = _cluster("fifo")
    cluster["nodes"][0][1] = 5
    cluster["podgroups"][0][3] = 1
    cluster["queues"][0][1]["capability"] = {}
    cluster["pod_sets"][0]["cpu"] = 2
    scene = Scene(cluster, config_text(PLUGINS))
    assert "ns/small-0" in scene.cycle().binds
