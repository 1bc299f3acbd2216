"""What holds of every decision that evicts for gangs as a whole, in clusters of any kind."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.scheduler import CycleResult, load_config
from pumice.scheduler.model.tasks import SchedulingStatus
from tests.kit.examples import examples
from tests.unit.scheduler.scenarios import NOW, Scenario, config_text
from tests.unit.scheduler.test_rest import CONFIGS, clusters, full_clusters, last_eviction

Raw = dict[str, Any]

PLUGINS = [["priority", "gang", "conformance"], ["predicates", "nodeorder"]]
PREEMPT = load_config(config_text(PLUGINS, ["enqueue", "allocate", "gangpreempt"]))
BREAKING = load_config(
    "actions: enqueue, allocate, preempt\n"
    "tiers: [{plugins: [{name: priority}, {name: gang, enablePreemptable: false}]}, {plugins: [{name: predicates}]}]"
)
_FOR = re.compile(r"to make room for PodGroup (\S+) of queue (\S+) \((\w+)\)")
CYCLES = 4


def _decisions(result: CycleResult) -> dict[str, tuple[str, str]]:
    """For which gang, and by which action, each pod was evicted."""
    found = {}
    for event in result.events:
        if event.reason == "Preempted":
            match = _FOR.search(event.message)
            assert match is not None
            found[f"{event.namespace}/{event.name}"] = match[1], match[3]
    return found


def _check(scenario: Scenario, result: CycleResult) -> None:
    state = scenario.state
    decisions = _decisions(result)
    assert sorted(decisions) == sorted(result.evicted)
    for pod, (gang, action) in decisions.items():
        victim, winner = state.jobs[state.tasks[pod].job], state.jobs[gang]
        assert victim is not winner
        if action == "gangpreempt":
            assert victim.order_priority < winner.order_priority
            assert victim.queue == winner.queue
    for gang in {gang for gang, _ in decisions.values()}:
        winner = state.jobs[gang]
        promised = sum(task in result.pipelined for task in winner.tasks)
        assert promised + winner.ready >= winner.min_member
    lost = {state.tasks[pod].job for pod in decisions}
    for job in [state.jobs[key] for key in lost]:
        held = [task for task in job.tasks.values() if task.node]
        stays = [task for task in held if task.status is not SchedulingStatus.RELEASING]
        assert job.ready >= job.min_member or not stays or job.ready + len(held) < job.min_member


@pytest.mark.parametrize("config", ["preempt", "gangs", "gangs, capacity"])
@examples(150, always_the_same=False)
@given(cluster=st.one_of(clusters(), full_clusters()))
def test_gangs_go_for_more_important_ones_that_get_their_minimum(config: str, cluster: Raw) -> None:
    scenario = Scenario(cluster, PREEMPT if config == "preempt" else CONFIGS[config])
    for number in range(CYCLES):
        result = scenario.cycle(NOW + 2 * number)
        _check(scenario, result)
        scenario.start(result)


@examples(60, always_the_same=False)
@given(
    gangs=st.integers(2, 5),
    size=st.integers(1, 3),
    wants=st.integers(1, 6),
    nodes=st.sampled_from([1, 2, 4]),
)
def test_no_more_gangs_are_broken_than_pod_by_pod(
    gangs: int, size: int, wants: int, nodes: int
) -> None:
    """Gangs of equal size fill equal nodes, their pods in turn."""
    total = gangs * size
    room = -(-total // nodes)
    groups = [["ns", f"g{n}", "q", size, "Running", {"prio": "low"}] for n in range(gangs)]
    pods = [
        ["ns", f"g{n % gangs}-{n // gangs}", f"n{n // room}", "Running", 1, 0, f"g{n % gangs}"]
        for n in range(total)
    ]
    pods += [["ns", f"new-{n}", "", "Pending", 1, 0, "new"] for n in range(wants)]
    cluster = {
        "nodes": [[f"n{n}", room, "100Gi"] for n in range(nodes)],
        "queues": [["q"]],
        "classes": {"low": 1, "high": 100},
        "podgroups": [*groups, ["ns", "new", "q", wants, "Inqueue", {"prio": "high"}]],
        "pods": pods,
    }
    broken = []
    for config in (PREEMPT, BREAKING):
        result = Scenario(cluster, config).cycle()
        broken.append(len({pod.rpartition("-")[0] for pod in result.evicted}))
    assert broken[0] <= broken[1]


def test_ten_places_cost_one_gang_of_ten() -> None:
    """Ten gangs of ten pods have one pod on each of ten nodes; pod by pod, a gang of ten would cost more than one."""
    pods = [
        ["ns", f"g{gang}-{n}", f"n{n}", "Running", 1, 0, f"g{gang}"]
        for gang in range(10)
        for n in range(10)
    ]
    cluster = {
        "nodes": [[f"n{n}", 10, "100Gi"] for n in range(10)],
        "queues": [["q"]],
        "classes": {"low": 1, "high": 100},
        "podgroups": [
            *(["ns", f"g{n}", "q", 10, "Running", {"prio": "low"}] for n in range(10)),
            ["ns", "new", "q", 10, "Inqueue", {"prio": "high"}],
        ],
        "pods": [*pods, *(["ns", f"new-{n}", "", "Pending", 1, 0, "new"] for n in range(10))],
    }
    result = Scenario(cluster, PREEMPT).cycle()
    assert sorted(result.evicted) == [f"ns/g9-{n}" for n in range(10)]


@st.composite
def racked(draw: st.DrawFn) -> Raw:
    """Racks of two nodes on which pods of 1 cpu of some gangs run, and a gang that must be in one rack."""
    count = draw(st.integers(1, 3))
    names = [f"{rack}{node}" for rack in range(count) for node in range(2)]
    groups: list[Any] = []
    pods: list[Any] = []
    free = dict.fromkeys(names, 2)
    for number in range(draw(st.integers(1, 4))):
        places = []
        for name in draw(st.lists(st.sampled_from(names), max_size=4)):
            if free[name]:
                free[name] -= 1
                places.append(name)
        minimum = draw(st.integers(0, len(places)))
        options = {"prio": draw(st.sampled_from(["low", "mid", "high"]))}
        groups.append(["ns", f"g{number}", "q", minimum, "Running", options])
        for index, node in enumerate(places):
            pods.append(["ns", f"g{number}-{index}", node, "Running", 1, 0, f"g{number}"])
    size = draw(st.integers(1, 4))
    near = {"mode": "hard", "highestTierAllowed": 1}
    groups.append(["ns", "new", "q", size, "Inqueue", {"prio": "high", "topology": near}])
    pods += [["ns", f"new-{n}", "", "Pending", 1, 0, "new"] for n in range(size)]
    return {
        "nodes": [[name, 2, "100Gi"] for name in names],
        "queues": [["q"]],
        "classes": {"low": 1, "mid": 10, "high": 100},
        "hyper_nodes": {
            f"rack{rack}": {"tier": 1, "nodes": [f"{rack}0", f"{rack}1"]} for rack in range(count)
        },
        "podgroups": groups,
        "pods": pods,
    }


def _least(cluster: Raw) -> tuple[int, int] | None:
    """Highest priority of a victim, and victims, in the best rack for the gang that waits; None if no rack can be had."""
    gangs = {row[1]: (cluster["classes"][row[5]["prio"]], row[3]) for row in cluster["podgroups"]}
    priority, size = gangs.pop("new")
    found = []
    for rack in cluster["hyper_nodes"].values():
        inside = [row[6] for row in cluster["pods"] if row[2] in rack["nodes"]]
        lacks = size - (4 - len(inside))
        going: list[int] = []
        for gang, (value, minimum) in gangs.items():
            ready = sum(row[6] == gang for row in cluster["pods"])
            if value < priority:
                going += [value] * min(inside.count(gang), max(ready - minimum, 0))
        if size <= 4 and lacks <= len(going):
            going = sorted(going)[: max(lacks, 0)]
            found.append((max(going, default=0), len(going)))
    return min(found, default=None)


@examples(150, always_the_same=False)
@given(cluster=racked())
def test_preempt_makes_room_in_the_rack_where_it_costs_least(cluster: Raw) -> None:
    plugins = [["priority", "gang", "conformance"], ["predicates", "network-topology-aware"]]
    scenario = Scenario(cluster, config_text(plugins, ["allocate", "preempt"]))
    result = scenario.cycle()
    least = _least(cluster)
    jobs, tasks = scenario.state.jobs, scenario.state.tasks
    values = [jobs[tasks[pod].job].order_priority for pod in result.evicted]
    if least is None:
        assert [*result.evicted, *result.binds] == []
        return
    assert (max(values, default=0), len(values)) == least
    places = result.nominations if values else result.binds
    if values:
        assert not result.binds
        scenario.start(result)
        assert scenario.cycle(NOW + 2).binds == places
    assert len(places) == jobs["ns/new"].min_member
    assert len({node[0] for node in places.values()}) == 1


_WANTING = (
    *(("q0", 8, 8, "low", True), ("q0", 8, 4, "mid", True), ("q0", 8, 6, "low", True)),
    *(("q1", 8, 2, "low", True), ("q1", 10, 10, "low", False), ("q1", 6, 6, "high", False)),
    *(("q0", 9, 3, "high", False), ("q1", 4, 4, "mid", False), ("q0", 12, 12, "mid", False)),
)
"""Queue, pods, minimum and priority of gangs of which those fill the cluster that run."""


@pytest.mark.parametrize("lingering", [1, 2])
@pytest.mark.parametrize("config", ["gangs", "gangs, capacity"])
def test_a_closed_system_comes_to_rest_for_a_thousand_cycles(config: str, lingering: int) -> None:
    groups: list[Any] = []
    pods: list[Any] = []
    for number, (queue, size, minimum, priority, runs) in enumerate(_WANTING):
        options = {"prio": priority, "created": f"2023-01-01T00:00:0{number}Z"}
        phase = "Running" if runs else "Inqueue"
        groups.append(["ns", f"g{number}", queue, minimum, phase, options])
        for index in range(size):
            node, status = (f"n{index % 4}", "Running") if runs else ("", "Pending")
            pods.append(["ns", f"g{number}-{index}", node, status, 1, 0, f"g{number}"])
    cluster = {
        "nodes": [[f"n{n}", 8, "100Gi"] for n in range(4)],
        "queues": [
            ["q0", {"weight": 1, "deserved": {"cpu": 12}}],
            ["q1", {"weight": 2, "deserved": {"cpu": 20}}],
        ],
        "classes": {"low": 1, "mid": 10, "high": 100},
        "podgroups": groups,
        "pods": pods,
    }
    assert 0 <= last_eviction(cluster, config, lingering, rounds=1000) < 40
