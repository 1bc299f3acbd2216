"""A gang that finds no nodes in its order is tried once more with its largest pods first."""

from typing import Any

import pytest

from pumice.scheduler import CycleResult, load_config
from tests.unit.scheduler.scenarios import Scenario, config_text

CONFIG = load_config(config_text([["priority", "gang"], ["predicates", "nodeorder"]], ["allocate"]))


def _placed(nodes: list[int], cpus: list[Any], minimum: int = 0, **options: Any) -> CycleResult:
    """A gang of pods that ask for so many cpus, on nodes that have so many."""
    cluster = {
        "nodes": [[f"n{number}", cpu, "64Gi"] for number, cpu in enumerate(nodes)],
        "podgroups": [["ns", "g", "default", minimum or len(cpus), "Inqueue"]],
        "pods": [
            ["ns", f"g-{number}", "", "Pending", cpu, 0, "g", options]
            for number, cpu in enumerate(cpus)
        ],
    }
    return Scenario(cluster, CONFIG).cycle()


def test_small_pods_do_not_take_the_only_room_for_a_large_one() -> None:
    """In their order the first two would have a node each, and no room would be left for the last."""
    result = _placed([2, 2], [1, 1, 2])
    assert result.binds == {"ns/g-2": "n0", "ns/g-0": "n1", "ns/g-1": "n1"}
    assert result.pending == {}
    assert result.decided == 6


@pytest.mark.parametrize(
    ("nodes", "cpus", "minimum", "tried"),
    [
        pytest.param([2, 2], [2, 1, 1], 0, 3, id="it-fits-at-once"),
        pytest.param([2, 1], [1, 1, 1, 1], 0, 4, id="its-pods-are-equal"),
        pytest.param([1, 1, 1], [1, 1, 2], 0, 3, id="no-node-has-room-for-one-of-them"),
        pytest.param([2, 2], [1, 1, 2], 2, 3, id="it-does-not-need-all-its-pods"),
    ],
)
def test_no_gang_is_tried_once_more_that_this_cannot_help(
    nodes: list[int], cpus: list[int], minimum: int, tried: int
) -> None:
    assert _placed(nodes, cpus, minimum).decided == tried


def test_a_gang_that_does_not_fit_either_way_says_what_it_said() -> None:
    result = _placed([3, 3], [2, 2, 1, 2])
    assert result.binds == {}
    assert result.pending["ns/g"].message.startswith(
        "1/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; "
        "Pending: 1 Unschedulable, 3 Schedulable. Origin reason is g-3"
    )
