"""Gangs that wait are left out of preempt and reclaim while no running pod may go for them, and cost next to nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.scheduler import CycleResult, builtin_registry, load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.config import DEFAULT
from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.candidates import Candidates, Preemptor, any_preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from tests.kit.examples import examples
from tests.unit.scheduler.scenarios import (
    NOW,
    Scenario,
    config_text,
    node,
    pod,
    pod_group,
    queue,
    with_plugins,
)
from tests.unit.scheduler.test_rest import clusters

Raw = dict[str, Any]

GANGS, RUNNING = 200, 8


class Sparing:
    """Spares the pods that are more important than 0, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def build(self, _arguments: Arguments) -> "Sparing":
        return self

    def open(self, _session: SessionView, register: Registrar) -> None:
        register.preemptable(self._may_go, by=any_preemptor)
        register.reclaimable(self._may_go, by=any_preemptor)
        register.job_order(self._order)
        register.job_starving(self._is_starving)

    def _may_go(self, _: Preemptor, candidates: Candidates) -> Bools:
        self.asked.append("may go")
        return candidates.of_tasks(lambda task: task.priority) <= 0

    def _order(self, _: JobInfo) -> int:
        self.asked.append("order")
        return 0

    def _is_starving(self, job: JobInfo) -> bool:
        self.asked.append("starving")
        return job.ready < job.min_member


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_an_event_asks_plugins_once_for_all_gangs_for_which_no_pod_may_go(action: str) -> None:
    sparing = Sparing()
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
    sparing.asked.clear()
    scenario.state.set_node(node(["n0", "4", "9Gi"]))  # too little for any of them
    scenario.cycle(NOW + 300)
    explained = 3  # few have their reasons renewed, so that they tell of the node as it is
    assert sparing.asked.count("may go") == 1
    assert sparing.asked.count("starving") <= 4 * explained
    assert sparing.asked.count("order") <= 4 * explained

    scenario.state.set_pod(pod(["ns", "old-1", "n1", "Running", 4, 0, "old", {"prio": 0}]))
    result = scenario.cycle(NOW + 302)
    assert result.evicted == ["ns/old-1"], "the pod may go now, and a gang that was left out asks"


EVENTS = st.sampled_from(
    (
        "pod goes",
        "pod ends",
        "pod changes",
        "node grows",
        "node comes",
        "node closes",
        "weight",
        "deserved",
        "important",
        "smaller",
    )
)
OF_PODS = st.fixed_dictionaries(
    {},
    optional={
        "preemptable": st.booleans(),
        "policy": st.just("Never"),
        "prio": st.sampled_from((1, 10, 100)),
        "selector": st.just({"pool": "a"}),
    },
)


@st.composite
def crowds(draw: st.DrawFn) -> Raw:
    """Clusters in which some pods are for some nodes only, are not to be evicted, or evict nobody."""
    cluster: Raw = draw(clusters())
    pools = [draw(st.sampled_from("ab")) for _ in cluster["nodes"]]
    cluster["nodes"] = [
        [*row, {"labels": {"pool": pool}}]
        for row, pool in zip(cluster["nodes"], pools, strict=True)
    ]
    cluster["pods"] = [
        [*row, draw(OF_PODS)] if draw(st.integers(0, 2)) == 0 else row for row in cluster["pods"]
    ]
    return cluster


def _happen(scenario: Scenario, cluster: Raw, event: str, number: int) -> None:
    """Let something happen to the object with a number, of those of its kind."""
    state = scenario.state
    keys = sorted(scenario.pods)
    if event.startswith("pod") and keys:
        key = keys[number % len(keys)]
        if event == "pod goes":
            state.remove_pod(*key.split("/"))
            del scenario.pods[key]
            return
        row = next(row for row in cluster["pods"] if row[1] == key.split("/")[1])
        place = state.tasks[key].node
        phase = "Succeeded" if event == "pod ends" else "Running" if place else "Pending"
        options = {} if event == "pod ends" else {"preemptable": number % 3 > 0}
        scenario.add_pod([*row[:2], place, phase, *row[4:7], options])
    elif event.startswith("node"):
        name, cpu, memory, options = cluster["nodes"][number % len(cluster["nodes"])]
        name = "n9" if event == "node comes" else name
        closed = {"unschedulable": event == "node closes"}
        state.set_node(node([name, cpu + number % 4, memory, {**options, **closed}]))
    elif event in ("weight", "deserved"):
        fields: Raw = {"weight": 1 + number % 5} if event == "weight" else {"deserved": {"cpu": 4}}
        state.set_queue(queue([f"q{number % 2}", fields]))
    else:
        row = list(cluster["podgroups"][number % len(cluster["podgroups"])])
        if event == "smaller":
            row[3] = max(row[3] - 1, 1)
        else:
            row[5] = {**row[5], "prio": "high"}
        row[4] = scenario.phase(f"ns/{row[1]}")
        state.set_pod_group(pod_group(row))


def _forget(scenario: Scenario) -> None:
    """Have the next cycle find out everything again."""
    scenario.state.settled = None
    scenario.state.gains.any_gang = True
    for job in scenario.state.jobs.values():
        job.shortage = job.asks = job.asking = None


def _decided(result: CycleResult) -> Any:
    return result.binds, result.evicted, result.nominations


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
@examples(60)
@given(
    cluster=crowds(),
    events=st.lists(st.tuples(EVENTS, st.integers(0, 30)), min_size=2, max_size=8),
)
def test_what_is_remembered_is_what_would_be_found_out_again(
    plugin: str, cluster: Raw, events: list[tuple[str, int]]
) -> None:
    config = load_config(DEFAULT.replace("name: proportion", f"name: {plugin}"))
    thrifty, eager = Scenario(cluster, config), Scenario(cluster, config)
    for number, event in enumerate([None, None, *events, None]):
        found = []
        for scenario in (thrifty, eager):
            if event is not None:
                _happen(scenario, cluster, *event)
            if scenario is eager:
                _forget(scenario)
            thrifty.state.settled = None
            found.append(scenario.cycle(NOW + 60 * number))
            scenario.start(found[-1])
        assert _decided(found[0]) == _decided(found[1])


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
