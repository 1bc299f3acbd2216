"""Pods that are not evicted: those whose eviction the API server refused a moment ago, and those that plugins spare."""

import numpy as np
import pytest

from pumice.scheduler import CycleResult, SchedulerRegistry, builtin_registry, load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.candidates import Candidates, Preemptor, any_preemptor
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement
from pumice.scheduler.specs import ActionSpec, PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause
from tests.unit.scheduler.scenarios import NOW, Scenario, config_text, pod, with_plugins


def _evict_all(session: Session, _arguments: Arguments) -> None:
    """Evict every running pod that is not spared."""
    statement: Statement = session.statement()
    for task in list(session.state.tasks.values()):
        if task.status.name == "RUNNING" and not session.view.is_spared(task):
            statement.evict(task)
    session.commit(statement)


@pytest.fixture
def scenario() -> Scenario:
    """Two pods on a node, and an action that evicts what it may."""
    known = builtin_registry()
    action = ActionSpec("evict-all", "A test's action.", _evict_all, ())
    registry = SchedulerRegistry(known.plugins, {**known.actions, action.name: action})
    config = load_config(config_text([["gang"]], ["evict-all"]), registry)
    rows = [["ns", f"p{number}", "n1", "Running", 1, "1Gi", ""] for number in range(2)]
    return Scenario({"nodes": [["n1", 4, "8Gi"]], "pods": rows}, config)


def _victims(result: CycleResult) -> list[str]:
    return sorted(result.evicted)


def test_a_refused_victim_is_left_out_until_its_time_has_come(scenario: Scenario) -> None:
    assert _victims(scenario.cycle()) == ["ns/p0", "ns/p1"]
    scenario.state.pods.spare("ns/p0", "", NOW + 60)
    for moment in (NOW + 1, NOW + 30, NOW + 59.9):
        assert _victims(scenario.cycle(moment)) == []
    assert scenario.state.is_settled(scenario.config, NOW + 59.9)
    assert not scenario.state.is_settled(scenario.config, NOW + 60)
    assert _victims(scenario.cycle(NOW + 60)) == ["ns/p0"]


VICTIMS = {
    "preempt": [["gang", "priority"], ["predicates"]],
    "reclaim": [["gang", "proportion"], ["predicates"]],
}


@pytest.mark.parametrize("action", VICTIMS)
def test_another_pod_goes_where_the_eviction_of_the_first_was_refused(action: str) -> None:
    """The pods are equal, and the nodes, too."""
    theirs = "q" if action == "preempt" else "default"
    cluster = {
        "classes": {"high": 100},
        "queues": [["q"], ["default"]],
        "nodes": [["n1", 4, "8Gi"], ["n2", 4, "8Gi"]],
        "podgroups": [
            ["ns", "old", theirs, 0, "Running"],
            ["ns", "new", "q", 1, "Inqueue", {"prio": "high"}],
        ],
        "pods": [
            *(["ns", f"old-{n}", f"n{n}", "Running", 4, 0, "old"] for n in (1, 2)),
            ["ns", "new-0", "", "Pending", 4, 0, "new", {"prio": 100}],
        ],
    }
    pair = Scenario(cluster, config_text(VICTIMS[action], ["allocate", action]))
    ((first,), other) = pair.cycle().evicted, {"ns/old-1", "ns/old-2"}
    pair.state.pods.spare(first, pair.state.tasks[first].uid, NOW + 60)
    assert set(pair.cycle(NOW + 1).evicted) == other - {first}


def test_shuffle_leaves_a_refused_victim_out() -> None:
    class Choosing:
        def __init__(self, _arguments: Arguments) -> None:
            pass

        def open(self, session: SessionView, register: Registrar) -> None:
            register.victim_tasks(lambda: session.jobs["ns/old"].tasks.values())

    registry = with_plugins(builtin_registry(), PluginSpec("choosing", "A test's.", Choosing))
    config = load_config(config_text([["gang", "choosing"]], ["shuffle"]), registry)
    cluster = {
        "nodes": [["n1", 4, "8Gi"]],
        "podgroups": [["ns", "old", "default", 0, "Running"]],
        "pods": [["ns", f"old-{n}", "n1", "Running", 1, 0, "old"] for n in (1, 2)],
    }
    shuffled = Scenario(cluster, config)
    assert _victims(shuffled.cycle()) == ["ns/old-1", "ns/old-2"]
    for number in (1, 2):
        key = f"ns/old-{number}"
        shuffled.state.pods.spare(key, shuffled.state.tasks[key].uid, NOW + 60 * number)
    assert _victims(shuffled.cycle(NOW + 1)) == []
    assert _victims(shuffled.cycle(NOW + 61)) == ["ns/old-1"]


def test_a_pod_that_is_gone_is_spared_no_longer(scenario: Scenario) -> None:
    scenario.cycle()
    scenario.state.pods.spare("ns/p0", "", NOW + 60)
    scenario.state.remove_pod("ns", "p0")
    scenario.state.set_pod(pod(["ns", "p0", "n1", "Running", 1, "1Gi", ""]))
    assert _victims(scenario.cycle(NOW + 1)) == ["ns/p0"]


def test_an_eviction_is_room_for_gangs_that_wait(scenario: Scenario) -> None:
    scenario.cycle()
    scenario.state.parked.begin({}, (), ())
    assert scenario.state.parked.events & Cause.NODES


def test_a_pod_of_another_uid_is_not_spared(scenario: Scenario) -> None:
    scenario.cycle()
    scenario.state.pods.spare("ns/p0", "another", NOW + 60)
    assert scenario.state.pods.spared == {}


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_plugins_are_asked_about_running_pods_once_however_many_gangs_wait(action: str) -> None:
    asked: list[int] = []

    class Sparing:
        """Lets no pod go, whichever pod asks."""

        def __init__(self, _arguments: Arguments) -> None:
            pass

        def open(self, _session: SessionView, register: Registrar) -> None:
            register.preemptable(self._none, by=any_preemptor)
            register.reclaimable(self._none, by=any_preemptor)

        def _none(self, _: Preemptor, candidates: Candidates) -> Bools:
            asked.append(len(candidates))
            return np.zeros(len(candidates), dtype=np.bool_)

    registry = with_plugins(builtin_registry(), PluginSpec("sparing", "A test's plugin.", Sparing))
    config = load_config(
        config_text([["gang", "sparing", "predicates"]], ["allocate", action]), registry
    )
    waiting = [["ns", f"g{number}", "q", 2, "Inqueue"] for number in range(30)]
    queue = "q" if action == "preempt" else "default"
    cluster = {
        "queues": [["q"], ["default"]],
        "nodes": [["n1", 4, "8Gi"], ["n2", 4, "8Gi"]],
        "podgroups": [["ns", "old", queue, 1, "Running"], *waiting],
        "pod_sets": [{"pg": f"g{n}", "count": 2, "cpu": 1 + n / 100} for n in range(30)],
        "pods": [["ns", f"old-{n}", f"n{n % 2 + 1}", "Running", 4, 0, "old"] for n in range(2)],
    }
    pending = Scenario(cluster, config).cycle().pending
    assert asked == [2], "both running pods, for thirty gangs whose pods differ"
    assert {reason.numbers["victims"][0]["sparedBy"]["sparing"] for reason in pending.values()} == {
        2
    }


def test_plugins_are_asked_about_all_running_pods_once_when_each_of_many_equal_gangs_evicts() -> (
    None
):
    asked: list[int] = []

    class Yielding:
        """Lets every pod go, whichever pod asks."""

        def __init__(self, _arguments: Arguments) -> None:
            pass

        def open(self, _session: SessionView, register: Registrar) -> None:
            register.preemptable(self._all, by=any_preemptor)

        def _all(self, _: Preemptor, candidates: Candidates) -> Bools:
            asked.append(len(candidates))
            return np.ones(len(candidates), dtype=np.bool_)

    registry = with_plugins(builtin_registry(), PluginSpec("yielding", "A test's.", Yielding))
    gang = {"gang": ["JobOrder", "JobReady", "JobPipelined", "JobStarving"]}
    config = load_config(
        config_text([[gang, "yielding"], ["predicates"]], ["allocate", "preempt"]), registry
    )
    nodes = [f"n{number}" for number in range(20)]
    cluster = {
        "queues": [["q"]],
        "nodes": [[name, 4, "8Gi"] for name in nodes],
        "podgroups": [
            ["ns", "old", "q", 1, "Running"],
            *(["ns", f"g{number}", "q", 2, "Inqueue"] for number in range(8)),
        ],
        "pod_sets": [{"pg": f"g{number}", "count": 2, "cpu": 4} for number in range(8)],
        "pods": [["ns", f"old-{name}", name, "Running", 4, 0, "old"] for name in nodes],
    }
    assert len(Scenario(cluster, config).cycle().evicted) == 16
    assert [count for count in asked if count > 1] == [20]
