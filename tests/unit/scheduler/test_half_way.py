"""What a feed of the scheduler's state does when the state fails at an object half-way: nothing is left, and a retry heals."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.scheduler import ClusterState
from pumice.scheduler.worker.feeds import _told
from tests.kit.builders import node, pod, pod_group
from tests.unit.scheduler.columns import dump

STEPS = (
    "shapes.use",
    "peers.use",
    "claims.undecide",
    "claims.mention",
    "claims.unmention",
    "nodes.add",
    "nodes.discard",
    "peers.join",
    "peers.part",
    "gangs.touch",
    "gangs._index",
    "pods._index_nominee",
    "pods._leave_node",
    "shapes.release",
    "peers.release",
)
"""Steps of taking a pod in, and of removing one."""

SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
]


def a_pod(name: str, version: int, **fields: Any) -> Pod:
    made = pod(name, group="g", labels={"app": "x"}, **fields)
    made["metadata"]["resourceVersion"] = str(version)
    made["spec"]["topologySpreadConstraints"] = SPREAD
    made["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    return msgspec.convert(made, Pod)


def fed() -> tuple[ClusterState, Callable[..., None]]:
    """A state with a node, a gang and another pod, and the subscriber that feeds pods."""
    state = ClusterState()
    state.set_node(msgspec.convert(node("n1"), Node))
    state.set_pod_group(msgspec.convert(pod_group("g", 1), PodGroup))
    state.set_pod(a_pod("other", 1, node="n1"))
    state.settle()

    def drop(meta: Any) -> bool:
        return state.remove_pod(meta.namespace, meta.name)

    return state, _told(state.set_pod, drop, asyncio.Event())


def break_once(state: ClusterState, step: str, *, after: bool, monkeypatch: Any) -> list[str]:
    """Have a step of the state fail once, before or after its work."""
    *path, name = step.split(".")
    owner = type(getattr(state, path[0]) if path else state)
    works = getattr(owner, name)
    failed: list[str] = []

    def fail(*arguments: Any) -> Any:
        if failed:
            return works(*arguments)
        if after:
            works(*arguments)
        failed.append(step)
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(owner, name, fail)
    return failed


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("change", ["added", "placed", "moved", "deleted"])
@pytest.mark.parametrize("after", [False, True])
def test_a_step_that_fails_once(
    step: str, change: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {
        "added": None,
        "placed": a_pod("p", 2),
        "moved": a_pod("p", 2, node="n1"),
        "deleted": a_pod("p", 2, node="n1"),
    }[change]
    new = {
        "added": a_pod("p", 3, cpu="2"),
        "placed": a_pod("p", 3, node="n1"),
        "moved": a_pod("p", 3, node="n1", phase="Succeeded"),
        "deleted": None,
    }[change]
    expected, tell = fed()
    if old is not None:
        tell(None, old)
    tell(old, new)
    state, tell = fed()
    if old is not None:
        tell(None, old)
    with monkeypatch.context() as patched:
        failed = break_once(state, step, after=after, monkeypatch=patched)
        try:
            tell(old, new)
        except ZeroDivisionError:
            tell(old, new)
            assert failed
    assert dump(state) == dump(expected)
    # Nothing is left of it once it is gone.
    bare, _ = fed()
    tell(new or old, None)
    assert dump(state)["on"] == dump(bare)["on"]
    assert dump(state)["nodes"] == dump(bare)["nodes"]
    assert state.tasks.keys() == bare.tasks.keys()
    assert state.jobs["default/g"].counts == bare.jobs["default/g"].counts


def test_an_earlier_state_of_a_restored_server_is_taken_in_without_what_was_assumed() -> None:
    state, tell = fed()
    earlier, later = a_pod("p", 2), a_pod("p", 5, node="n1")
    tell(None, earlier)
    tell(earlier, later)
    assert state.tasks["default/p"].node == "n1"
    tell(later, earlier)
    assert state.tasks["default/p"].node == ""


def test_nothing_of_an_object_is_there_while_it_is_set_aside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state, tell = fed()
    bare, _ = fed()

    def fail(_: object) -> None:
        raise ZeroDivisionError("oh")

    with monkeypatch.context() as patched:
        patched.setattr(state.pods, "_index_nominee", fail)
        with pytest.raises(ZeroDivisionError):
            tell(None, a_pod("p", 2, node="n1"))
    assert dump(state) == dump(bare)
