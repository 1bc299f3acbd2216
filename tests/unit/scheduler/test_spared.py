"""A pod whose eviction the API server refused is no victim for a while."""

import pytest

from pumice.scheduler import CycleResult, Registry, builtin_registry, load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.session import Session
from pumice.scheduler.specs import ActionSpec
from pumice.scheduler.statement import Statement
from tests.unit.scheduler.scenes import NOW, Scene, config_text, pod


def _evict_all(session: Session, _arguments: Arguments) -> None:
    """Evict every running pod that is not spared."""
    statement: Statement = session.statement()
    for task in list(session.state.tasks.values()):
        if task.status.name == "RUNNING" and not session.view.is_spared(task):
            statement.evict(task)
    session.commit(statement)


@pytest.fixture
def scene() -> Scene:
    """Two pods on a node, and an action that evicts what it may."""
    known = builtin_registry()
    action = ActionSpec("evict-all", "A test's action.", _evict_all, ())
    registry = Registry(known.plugins, {**known.actions, action.name: action})
    config = load_config(config_text([["gang"]], ["evict-all"]), registry)
    rows = [["ns", f"p{number}", "n1", "Running", 1, "1Gi", ""] for number in range(2)]
    return Scene({"nodes": [["n1", 4, "8Gi"]], "pods": rows}, config)


def _victims(result: CycleResult) -> list[str]:
    return sorted(result.evicted)


def test_a_refused_victim_is_left_out_until_its_time_has_come(scene: Scene) -> None:
    assert _victims(scene.cycle()) == ["ns/p0", "ns/p1"]
    scene.state.spare("ns/p0", "", NOW + 60)
    for moment in (NOW + 1, NOW + 30, NOW + 59.9):
        assert _victims(scene.cycle(moment)) == []
    assert scene.state.is_settled(scene.config, NOW + 59.9)
    assert not scene.state.is_settled(scene.config, NOW + 60)
    assert _victims(scene.cycle(NOW + 60)) == ["ns/p0"]


def test_a_pod_that_is_gone_is_spared_no_longer(scene: Scene) -> None:
    scene.cycle()
    scene.state.spare("ns/p0", "", NOW + 60)
    scene.state.remove_pod("ns", "p0")
    scene.state.set_pod(pod(["ns", "p0", "n1", "Running", 1, "1Gi", ""]))
    assert _victims(scene.cycle(NOW + 1)) == ["ns/p0"]


def test_an_eviction_is_room_for_gangs_that_wait(scene: Scene) -> None:
    scene.cycle()
    assert list(scene.state.gains.nodes) == ["n1"]


def test_a_pod_of_another_uid_is_not_spared(scene: Scene) -> None:
    scene.cycle()
    scene.state.spare("ns/p0", "another", NOW + 60)
    assert scene.state.spared == {}
