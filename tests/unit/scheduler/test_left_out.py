"""Gangs that wait are left out of preempt and reclaim while no running pod may go for them, and cost next to nothing."""

from typing import Any

import pytest

from pumice.scheduler import builtin_registry, load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.candidates import Candidates, Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from tests.unit.scheduler.scenarios import (
    NOW,
    Scenario,
    config_text,
    node,
    pod,
    with_plugins,
)

GANGS, RUNNING = 200, 8


class Sparing:
    """Spares the pods that are more important than 0, and counts what it is asked."""

    def __init__(self, *, lasts: bool = False) -> None:
        self.asked: list[str] = []
        self.lasts = lasts

    def build(self, _arguments: Arguments) -> "Sparing":
        return self

    def open(self, _session: SessionView, register: Registrar) -> None:
        register.preemptable(self._may_go, by=self._class_of, lasts=self.lasts)
        register.reclaimable(self._may_go, by=self._class_of, lasts=self.lasts)
        register.job_order(self._order)
        register.job_starving(self._is_starving)

    def _may_go(self, _: Preemptor, candidates: Candidates) -> Bools:
        self.asked.append("may go")
        return candidates.of_tasks(lambda task: task.priority) <= 0

    def _class_of(self, _: Preemptor) -> None:
        self.asked.append("class")

    def _order(self, _: JobInfo) -> int:
        self.asked.append("order")
        return 0

    def _is_starving(self, job: JobInfo) -> bool:
        self.asked.append("starving")
        return job.ready < job.min_member


@pytest.mark.parametrize("lasts", [False, True])
@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_an_event_asks_plugins_once_for_all_gangs_for_which_no_pod_may_go(
    action: str, *, lasts: bool
) -> None:
    sparing = Sparing(lasts=lasts)
    registry = with_plugins(
        builtin_registry(), PluginSpec("sparing", "A test's plugin.", sparing.build)
    )
    config = load_config(
        config_text(
            [[{"gang": ["JobReady", "JobPipelined"]}, "sparing", "predicates"]],
            ["allocate", action],
        ),
        registry,
    )
    theirs = "q" if action == "preempt" else "default"
    cluster = {
        "queues": [["q"], ["default"]],
        "nodes": [[f"n{number}", 4, "8Gi"] for number in range(RUNNING)],
        "podgroups": [
            ["ns", "old", theirs, 1, "Running"],
            *(["ns", f"g{number}", "q", 2, "Inqueue"] for number in range(GANGS)),
        ],
        "pod_sets": [
            {"pg": f"g{number}", "count": 2, "cpu": 1 + number / 1000} for number in range(GANGS)
        ],
        "pods": [
            ["ns", f"old-{number}", f"n{number}", "Running", 4, 0, "old", {"prio": 1}]
            for number in range(RUNNING)
        ],
    }
    scenario = Scenario(cluster, config)
    for number in range(4):
        scenario.cycle(NOW + 60 * number)
    scenario.state.set_node(node(["n0", "4", "10Gi"]))
    scenario.cycle(NOW + 240)
    sparing.asked.clear()
    scenario.state.set_node(node(["n0", "4", "9Gi"]))  # too little for any of them
    scenario.cycle(NOW + 300)
    explained = 3  # few have their reasons renewed, so that they tell of the node as it is
    assert sparing.asked.count("may go") == 1
    assert sparing.asked.count("starving") <= 4 * explained
    assert sparing.asked.count("order") <= 4 * explained
    classes = sparing.asked.count("class")
    assert classes <= 8 * explained if lasts else classes >= GANGS - explained

    scenario.state.set_pod(pod(["ns", "old-1", "n1", "Running", 4, 0, "old", {"prio": 0}]))
    result = scenario.cycle(NOW + 302)
    assert result.evicted == ["ns/old-1"], "the pod may go now, and a gang that was left out asks"


LOW = {"preemptable": False}


def _two_gangs(new: list[Any]) -> Scenario:
    """Nodes full of pods of a gang that are not preemptable, and a gang of higher priority."""
    cluster = {
        "nodes": [["n1", 4, "8Gi"], ["n2", 2, "8Gi", {"labels": {"pool": "a"}}]],
        "classes": {"low": 1, "high": 10},
        "podgroups": [
            ["ns", "old", "default", 1, "Running", {"prio": "low"}],
            ["ns", "new", "default", 1, "Inqueue", {"prio": "high"}],
        ],
        "pods": [
            *(["ns", f"old-{number}", "n1", "Running", 2, 0, "old", LOW] for number in range(2)),
            ["ns", "old-2", "n2", "Running", 2, 0, "old", LOW],
            new,
        ],
    }
    scenario = Scenario(cluster, load_config())
    for number in range(3):
        assert scenario.cycle(NOW + number * 60).evicted == []
    return scenario


def test_what_is_kept_of_the_pods_of_a_gang_ends_with_their_change() -> None:
    scenario = _two_gangs(
        ["ns", "new-0", "", "Pending", 2, 0, "new", {"prio": 10, "policy": "Never"}]
    )
    scenario.state.set_pod(pod(["ns", "other", "n1", "Running", 0, 0, ""]))
    assert scenario.cycle(NOW + 180).evicted == []
    scenario.add_pod(["ns", "new-0", "", "Pending", 2, 0, "new", {"prio": 10}])
    assert scenario.cycle(NOW + 240).evicted == []
    scenario.add_pod(["ns", "old-0", "n1", "Running", 2, 0, "old"])
    assert scenario.cycle(NOW + 300).evicted == ["ns/old-0"]


def test_a_pod_that_may_go_from_a_node_that_the_gang_cannot_use_is_none() -> None:
    waiting = ["ns", "new-0", "", "Pending", 2, 0, "new", {"prio": 10, "selector": {"pool": "a"}}]
    scenario = _two_gangs(waiting)
    scenario.add_pod(["ns", "old-0", "n1", "Running", 2, 0, "old"])
    assert scenario.cycle(NOW + 180).evicted == []
    scenario.add_pod(["ns", "old-2", "n2", "Running", 2, 0, "old"])
    assert scenario.cycle(NOW + 240).evicted == ["ns/old-2"]
