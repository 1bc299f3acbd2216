"""HyperNodes in the scheduler's state: which events wake gangs, and which faults become events."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pumice.api.hypernodes import HyperNode
from pumice.scheduler import ClusterState, load_config, run_cycle
from pumice.scheduler.waiting.parked import Cause, Parked
from tests.unit.scheduler.network_trees import hyper_node
from tests.unit.scheduler.scenarios import NOW, node, pod_group


def _set(state: ClusterState, name: str, **fields: Any) -> bool:
    return state.set_hyper_node(msgspec.convert(hyper_node(name, **fields), HyperNode))


def _node(name: str, rack: str = "r0", **options: Any) -> Any:
    return node([name, 8, "8Gi", {"labels": {"rack": rack}} | options])


@pytest.fixture
def state() -> ClusterState:
    """Two nodes, of which one is in a HyperNode, and a gang that waits for a domain."""
    state = ClusterState()
    state.set_node(_node("n0"))
    state.set_node(_node("n1", "r1"))
    _set(state, "s0", labels={"matchLabels": {"rack": "r0"}})
    state.set_pod_group(pod_group(["ns", "g", "default", 1, "Inqueue"]))
    state.parked.begin({}, (), ())
    state.parked.park("ns/g", Parked(int(Cause.DOMAIN)))
    return state


def _wakes(state: ClusterState) -> bool:
    """Begin a cycle: whether the gang is tried again."""
    state.settle()
    state.levels.settle()
    found, _ = state.parked.begin({"ns/g": state.jobs["ns/g"]}, ["ns/g"], ())
    return bool(found)


def test_what_wakes_a_gang_that_waits_for_a_domain(state: ClusterState) -> None:
    assert not _wakes(state)
    events: tuple[Callable[[], bool], ...] = (
        lambda: _set(state, "s1", nodes=["n1"]),
        lambda: _set(state, "s1", tier=2, nodes=["n1"]),
        lambda: state.set_node(_node("n1", "r0")),
        lambda: state.set_node(_node("n0", ready=False)),
        lambda: state.remove_node("n0"),
        lambda: state.set_node(_node("n0")),
        lambda: state.remove_hyper_node("s0"),
    )
    for happens in events:
        assert happens()
        assert _wakes(state)
        state.parked.park("ns/g", Parked(int(Cause.DOMAIN)))


def test_what_leaves_it_alone(state: ClusterState) -> None:
    version = state.parked.version
    assert not _set(state, "s0", labels={"matchLabels": {"rack": "r0"}})
    assert not state.remove_hyper_node("s9")
    assert state.parked.version == version
    assert state.set_node(_node("n2", "r2"))
    assert state.set_node(_node("n0", unschedulable=True))
    assert not _wakes(state)


def test_what_is_broken_is_told_once() -> None:
    state, config = ClusterState(), load_config(None)
    _set(state, "s1", nodes=["n0"])
    _set(state, "s4", tier=2, below=["s1"], created=1)
    _set(state, "s9", tier=2, below=["s1"], created=2)

    def told() -> list[tuple[str, str, str]]:
        events = run_cycle(state, config, NOW).events
        return [(each.kind, each.name, each.message) for each in events]

    said = "HyperNodes s4 and s9 both claim s1, which stays in s4, the first by age, then by name"
    assert told() == [("HyperNode", "s9", said)]
    state.set_node(_node("n0"))
    assert told() == []
    _set(state, "s9", tier=2, nodes=["n0"], created=2)
    assert told() == []
    _set(state, "s9", tier=2, below=["s1"], created=2)
    assert told() == [("HyperNode", "s9", said)], "it is broken again"


def test_one_mistake_in_hundreds_of_hyper_nodes_is_told_of_a_few() -> None:
    state, config = ClusterState(), load_config(None)
    for index in range(300):
        _set(state, f"s{index}", below=[f"s{index}"])
    told = [each.name for each in run_cycle(state, config, NOW).events]
    assert len(told) == 20
    state.set_node(_node("n0"))
    assert run_cycle(state, config, NOW).events == []
    _set(state, told[0], nodes=["n0"])
    assert len(run_cycle(state, config, NOW).events) == 1
