"""The room that evicted pods leave is held for the pods that they left for."""

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.scheduler import CycleResult
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.scenarios import NOW, Scenario, config_text, pod, pod_group

TIERS = [["priority", "gang", "conformance"], ["predicates", "nodeorder"]]
CONFIG = config_text(TIERS, ["enqueue", "allocate", "preempt"])
QUEUES = [["a"], ["b"]]  # the gangs of queue a have their turn first
CLUSTER: dict[str, Any] = {
    "classes": {"low": 1, "high": 100, "higher": 1000},
    "nodes": [["n1", 4, "8Gi"]],
    "queues": QUEUES,
    "podgroups": [
        ["ns", "old", "b", 0, "Running", {"prio": "low"}],
        ["ns", "new", "b", 1, "Inqueue", {"prio": "high"}],
    ],
    "pods": [
        ["ns", "old-0", "n1", "Running", 2, 0, "old"],
        ["ns", "old-1", "n1", "Running", 2, 0, "old"],
        ["ns", "new-0", "", "Pending", 4, 0, "new"],
    ],
}


@pytest.fixture
def scenario() -> Scenario:
    """A cluster in which two pods have been evicted for a third, and the first of them has left."""
    scenario = Scenario(CLUSTER, CONFIG)
    result = scenario.cycle()
    assert sorted(result.evicted) == ["ns/old-0", "ns/old-1"]
    assert result.nominations == {"ns/new-0": "n1"}
    scenario.state.remove_pod("ns", "old-0")
    return scenario


def _arrive(scenario: Scenario, priority: str, queue: str = "b") -> CycleResult:
    """A gang that needs what the first pod has left."""
    row = ["ns", "other", queue, 1, "Inqueue", {"prio": priority}]
    scenario.state.set_pod_group(pod_group(row))
    scenario.state.set_pod(pod(["ns", "other-0", "", "Pending", 2, 0, "other"]))
    return scenario.cycle(NOW + 1)


def test_a_less_important_gang_does_not_take_the_room(scenario: Scenario) -> None:
    result = _arrive(scenario, "low")
    assert (result.binds, result.evicted) == ({}, [])
    assert result.pipelined == {"ns/new-0": "n1"}
    scenario.state.remove_pod("ns", "old-1")
    result = scenario.cycle(NOW + 2)
    assert result.binds == {"ns/new-0": "n1"}
    assert result.nominations == {}


def test_a_more_important_gang_takes_the_room(scenario: Scenario) -> None:
    result = _arrive(scenario, "higher")
    assert result.binds == {"ns/other-0": "n1"}
    assert result.nominations == {"ns/new-0": ""}
    assert scenario.state.pods.nominees == {}


def test_a_more_important_gang_of_another_queue_does_not_take_the_room(scenario: Scenario) -> None:
    result = _arrive(scenario, "higher", queue="a")
    assert (result.binds, result.evicted) == ({}, [])
    assert result.pipelined == {"ns/new-0": "n1"}


def test_no_other_pod_is_evicted_while_the_pods_leave(scenario: Scenario) -> None:
    scenario.state.set_pod(
        pod(["ns", "new-0", "", "Pending", 4, 0, "new", {"labels": {"seen": "1"}}])
    )
    for second in range(1, 4):
        result = scenario.cycle(NOW + second)
        assert (result.evicted, result.nominations) == ([], {})
    assert set(scenario.state.pods.nominees) == {"ns/new-0"}


def test_a_pod_of_another_scheduler_that_takes_the_room_ends_the_nomination(
    scenario: Scenario,
) -> None:
    scenario.state.remove_pod("ns", "old-1")
    scenario.state.set_pod(
        pod(["ns", "foreign", "n1", "Running", 4, 0, "", {"scheduler": "other"}])
    )
    assert scenario.cycle(NOW + 1).nominations == {"ns/new-0": ""}


def test_a_refused_eviction_ends_the_nomination(scenario: Scenario) -> None:
    scenario.state.pods.forget("ns/old-1", "")
    scenario.state.set_pod(
        pod(["ns", "old-1", "n1", "Running", 2, 0, "old", {"preemptable": False}])
    )
    result = scenario.cycle(NOW + 1)
    assert (result.evicted, result.nominations) == ([], {"ns/new-0": ""})


def test_a_new_scheduler_reads_nominations_from_the_pods() -> None:
    scenario = Scenario(CLUSTER, CONFIG)
    for name in ("old-0", "old-1"):
        scenario.state.remove_pod("ns", name)
    scenario.add_pod(["ns", "old-1", "n1", "Running", 2, 0, "old", {"deleting": True}])
    waiting = pod(["ns", "new-0", "", "Pending", 4, 0, "new"])
    status = replace(waiting.status, nominated_node_name="n1")
    scenario.state.set_pod(replace(waiting, status=status))
    result = _arrive(scenario, "low")
    assert (result.binds, result.pipelined) == ({}, {"ns/new-0": "n1"})


def test_nothing_is_held_between_cycles(scenario: Scenario) -> None:
    before = dump(scenario.state)["nodes"]
    scenario.cycle(NOW + 1)
    assert dump(scenario.state)["nodes"] == before
