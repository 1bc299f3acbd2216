"""The budget of a cycle: it ends between two gangs, no gang is starved, and no namespace delays another.

The clock of these tests advances by a second whenever it is read, so a budget is a number of steps.
"""

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.scheduler import Budget, builtin_registry, load_config, run_cycle
from pumice.scheduler.budget import MAX_GANGS, Rounds
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from tests.kit.examples import examples
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.events import changes, in_turns
from tests.unit.scheduler.scenarios import (
    NOW,
    WITHOUT_SHARES,
    Scenario,
    config_text,
    pod,
    pod_group,
    queue,
)
from tests.unit.scheduler.test_properties import clusters

PREEMPTING = config_text(
    [
        ["priority", {"gang": ["JobOrder", "JobReady", "JobPipelined", "JobStarving"]}],
        ["predicates"],
    ],
    ["allocate", "preempt"],
)


def _budget(seconds: float) -> Budget:
    return Budget(seconds, count().__next__)


def _gangs(namespace: str, number: int, size: int = 1, **options: Any) -> dict[str, Any]:
    """Gangs of one namespace with the pods that they need."""
    names = [f"{namespace}{index:03}" for index in range(number)]
    return {
        "podgroups": [[namespace, name, "default", size, "Inqueue", options] for name in names],
        "pod_sets": [{"ns": namespace, "pg": name, "count": size} for name in names],
    }


def _cluster(*parts: dict[str, Any], cpu: int = 1000, **rest: Any) -> dict[str, Any]:
    lists = ("podgroups", "pod_sets")
    joined = {key: [row for part in parts for row in part[key]] for key in lists}
    return {"nodes": [["n", cpu, "1000Gi", {"pods": 1000}]], **joined, **rest}


def _bound(scenario: Scenario, budget: Budget, cycles: int) -> list[list[str]]:
    """What each cycle binds."""
    return [sorted(scenario.cycle(budget=budget).binds) for _ in range(cycles)]


def test_a_cycle_ends_between_two_gangs_and_the_next_one_continues_behind_it() -> None:
    scenario = Scenario(_cluster(_gangs("ns", 30, 2)), WITHOUT_SHARES)
    budget, bound, cycles = _budget(20), dict[str, str](), 0
    while True:
        result = scenario.cycle(budget=budget)
        cycles += 1
        gangs = [key.rpartition("-")[0] for key in result.binds]
        assert all(gangs.count(gang) == 2 for gang in gangs)
        assert not bound.keys() & result.binds.keys()
        bound |= result.binds
        assert result.unreached == 30 - len(bound) // 2
        if not result.unreached:
            break
        assert scenario.state.settled is None
    assert len(bound) == 60
    assert 3 < cycles < 30


def test_without_a_budget_a_cycle_reaches_every_gang() -> None:
    scenario = Scenario(_cluster(_gangs("ns", 30, 2)), WITHOUT_SHARES)
    result = scenario.cycle()
    assert (len(result.binds), result.unreached) == (60, 0)


def test_gangs_that_find_no_node_do_not_starve_those_behind_them() -> None:
    """Gangs that find no node come first in every cycle; the cycle still reaches the others."""
    hopeless = _gangs("ns", 40, 2, prio="high")
    for row in hopeless["pod_sets"]:
        row |= {"cpu": 600}
    late = {
        "podgroups": [["ns", "late", "default", 1, "Inqueue"]],
        "pod_sets": [{"ns": "ns", "pg": "late", "count": 1}],
    }
    scenario = Scenario(_cluster(hopeless, late, classes={"high": 10}), WITHOUT_SHARES)
    bound = [key for keys in _bound(scenario, _budget(20), 40) for key in keys]
    assert bound == ["ns/late-0"]


def test_a_namespace_does_not_delay_another_one() -> None:
    """A hundred gangs of higher priority in one namespace, and one gang of another, in one queue."""
    first = _gangs("evil", 100, 2, prio="high")
    scenario = Scenario(_cluster(first, _gangs("good", 1), classes={"high": 10}), WITHOUT_SHARES)
    cycles = _bound(scenario, _budget(30), 3)
    assert "good/good000-0" in cycles[0]
    assert all(len(keys) > 1 for keys in cycles)


def test_a_namespace_that_comes_later_is_reached_in_the_next_cycle() -> None:
    scenario = Scenario(_cluster(_gangs("evil", 100, 2)), WITHOUT_SHARES)
    budget = _budget(30)
    _bound(scenario, budget, 2)
    scenario.state.set_pod_group(pod_group(["good", "g", "default", 1, "Inqueue"]))
    scenario.add_pod(["good", "g-0", "", "Pending", 1, "1Gi", "g"])
    cycles = _bound(scenario, budget, 2)
    assert "good/g-0" in cycles[0]
    assert all(any(key.startswith("evil/") for key in keys) for keys in cycles)


def test_what_a_gang_uses_beyond_the_share_of_its_namespace_is_subtracted_later() -> None:
    """Each gang of the first namespace takes more than a whole cycle; those of the other one go on meanwhile."""
    first = _gangs("evil", 5, 40, prio="high")
    scenario = Scenario(_cluster(first, _gangs("good", 40), classes={"high": 10}), WITHOUT_SHARES)
    cycles = _bound(scenario, _budget(30), 40)
    flat = [key for keys in cycles for key in keys]
    assert len(flat) == len(set(flat)) == 240
    assert sum(key.startswith("evil/") for key in cycles[0]) == 40
    reached = next(at for at, keys in enumerate(cycles) if "good/good000-0" in keys)
    again = next(at for at, keys in enumerate(cycles) if "evil/evil001-0" in keys)
    assert reached <= 1 < again


def test_a_namespace_with_very_many_gangs_has_all_of_them_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pumice.scheduler.budget.MAX_GANGS", 4)
    scenario = Scenario(_cluster(_gangs("ns", 40), _gangs("b", 13)), WITHOUT_SHARES)
    cycles = _bound(scenario, _budget(60), 20)
    flat = [key for keys in cycles for key in keys]
    assert len(flat) == len(set(flat)) == 53
    assert max(map(len, cycles[1:])) <= 8


def test_a_round_has_a_limited_number_of_gangs_of_each_namespace() -> None:
    """So what a cycle sorts and looks at is bounded by the number of namespaces, however many gangs one of them has."""
    keys = [f"ns/{number:04}" for number in range(MAX_GANGS + 2)]
    jobs: list[Any] = [SimpleNamespace(namespace="ns", key=key) for key in keys]
    jobs += [SimpleNamespace(namespace="b", key="b/0")]
    rounds = Rounds()
    assert rounds.choose(jobs) == (set(), frozenset())  # the first cycle may reach all of them
    rounds.end_cycle(frozenset(keys), frozenset())
    assert rounds.choose(jobs) == (set(keys[MAX_GANGS:]), frozenset())


def test_a_gang_that_alone_takes_three_budgets_is_set_aside() -> None:
    scenario = Scenario(_cluster(_gangs("ns", 1, 60), _gangs("other", 2)), WITHOUT_SHARES)
    key = "ns/ns000"
    result = run_cycle(scenario.state, scenario.config, NOW, budget=_budget(10))
    assert list(result.errors) == [key]
    assert result.pending[key].reason == "SchedulingTooSlow"
    assert "took more than 30 s" in result.pending[key].message
    assert scenario.state.jobs[key].counts[SchedulingStatus.PENDING] == 60
    bound = dict(result.binds)
    for _ in range(3):
        bound |= run_cycle(scenario.state, scenario.config, NOW, budget=_budget(10)).binds
    assert sorted(bound) == ["other/other000-0", "other/other001-0"]
    assert dump(scenario.state)["nodes"]["n"]["used"]["cpu"] == 2000
    assert scenario.state.gangs.release(key)
    assert len(scenario.cycle(budget=_budget(100)).binds) == 60


def test_plugins_hear_that_an_interrupted_gang_has_no_places() -> None:
    held: dict[str, int] = {"ns": 0, "other": 0}

    class Counts:
        """Counts the pods that have places in a session."""

        def open(self, _session: SessionView, register: Registrar) -> None:
            register.on_allocate(lambda task, _node: self.add(task, 1))
            register.on_deallocate(lambda task, _node: self.add(task, -1))

        def add(self, task: TaskInfo, count: int) -> None:
            held[task.namespace] += count

    spec = PluginSpec(name="counts", summary="Counts.", build=lambda _arguments: Counts())
    text = config_text([["gang", "counts"], ["predicates"]], ["allocate"])
    config = load_config(text, builtin_registry().extended(plugins=[spec]))
    scenario = Scenario(_cluster(_gangs("ns", 1, 60), _gangs("other", 2)), config)
    result = run_cycle(scenario.state, config, NOW, budget=_budget(10))
    assert list(result.errors) == ["ns/ns000"]
    assert held["ns"] == 0


@pytest.mark.parametrize("change", [{"annotations": {"a": "b"}}, {"prio": "high"}, {"minimum": 59}])
def test_no_change_of_a_gang_that_is_too_slow_has_it_tried_again(change: dict[str, Any]) -> None:
    scenario = Scenario(_cluster(_gangs("ns", 1, 60), classes={"high": 10}), WITHOUT_SHARES)
    run_cycle(scenario.state, scenario.config, NOW, budget=_budget(10))
    options = dict(change)
    minimum = options.pop("minimum", 60)
    scenario.state.set_pod_group(pod_group(["ns", "ns000", "default", minimum, "Inqueue", options]))
    result = run_cycle(scenario.state, scenario.config, NOW, budget=_budget(10))
    assert (dict(result.binds), dict(result.errors)) == ({}, {})


def test_a_gang_that_was_not_reached_is_tried_after_a_change_that_only_that_cycle_saw() -> None:
    """Its queue gets nodes before a cycle that has no time for the gang: the next one tries it all the same."""
    case = _cluster(_gangs("b", 1), _gangs("a", 40))
    case["nodes"][0][3]["labels"] = {"volcano.sh/nodegroup-name": "late"}
    case["queues"] = [["default", _affinity("early")]]
    config = config_text([["priority", "gang"], ["predicates", {"nodegroup": None}]], ["allocate"])
    scenario = Scenario(case, config)
    assert not scenario.cycle().binds
    assert not scenario.cycle().binds
    for row in _gangs("b", 30)["podgroups"][1:]:
        scenario.state.set_pod_group(
            pod_group([*row[:4], "Inqueue", {"created": "2020-01-01T00:00:00Z"}])
        )
        scenario.add_pod(["b", f"{row[1]}-0", "", "Pending", 2000, "1Gi", row[1]])
    scenario.state.set_queue(queue(["default", _affinity("late")]))
    budget, bound = _budget(16), list[str]()
    for _ in range(200):
        bound += scenario.cycle(budget=budget).binds
    assert "b/b000-0" in bound
    assert len(bound) == 41


def _affinity(group: str) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [group]}
    return {"affinity": {"nodeGroupAffinity": required}}


def test_nothing_is_evicted_for_a_gang_that_allocate_has_not_reached() -> None:
    """There is room for every gang, so nothing has to go, however many cycles it takes to find that."""
    urgent = _gangs("ns", 30, 2, prio="high")
    cheap = {
        "podgroups": [["ns", "cheap", "default", 1, "Running"]],
        "pods": [["ns", "cheap-0", "n", "Running", 1, "1Gi", "cheap"]],
        "pod_sets": [],
    }
    case = _cluster(urgent, cheap, classes={"high": 10}) | {"pods": cheap["pods"]}
    scenario = Scenario(case, PREEMPTING)
    budget, searches, bound = _budget(20), 0, list[str]()
    for step in range(40):
        result = scenario.cycle(NOW + step, budget=budget)
        searches += result.preemptions
        bound += result.binds
    assert (searches, len(bound)) == (0, 60)


def test_gangs_of_a_fifo_queue_do_not_overtake_one_that_was_not_reached() -> None:
    case = _cluster(_gangs("a", 20, 2), _gangs("b", 20, 2))
    case["queues"] = [["default", {"dequeueStrategy": "fifo"}]]
    scenario = Scenario(case, config_text([["gang"], ["predicates"]]))
    budget, order = _budget(30), list[str]()
    for _ in range(60):
        result = scenario.cycle(budget=budget)
        order += [key for key in result.binds if key.endswith("-0")]
    assert order == sorted(order)
    assert len(order) == 40


def test_gangs_enter_their_queue_over_several_cycles() -> None:
    case = _cluster(_gangs("a", 40), _gangs("b", 1))
    for row in case["podgroups"]:
        row[4:] = ["Pending", {"minRes": {"cpu": "1"}}]
    case["pod_sets"] = []
    scenario = Scenario(case, config_text([["gang"], ["overcommit"]], ["enqueue", "allocate"]))
    budget, entered = _budget(20), list[list[str]]()
    for _ in range(20):
        entered.append(sorted(scenario.cycle(budget=budget).pod_groups))
    assert "b/b000" in [*entered[0], *entered[1]]
    assert sorted(key for keys in entered for key in keys) == sorted(
        f"{row[0]}/{row[1]}" for row in case["podgroups"]
    )
    assert entered[2]


@examples(40)
@given(st.data(), clusters(), clusters(), st.randoms(use_true_random=False), st.integers(3, 40))
def test_no_gang_is_starved_and_no_change_is_lost(
    data: st.DataObject, first: dict[str, Any], second: dict[str, Any], dice: Any, seconds: int
) -> None:
    """Whatever happens between cut cycles, in the end no gang waits that a cycle without a limit would place."""
    scenario, budget = Scenario(first), _budget(seconds)
    for _ in in_turns(data, dice, changes(first, second), scenario):
        result = run_cycle(scenario.state, scenario.config, NOW, budget=budget)
        assert result.error is None
    cycles = 0
    while result.unreached or scenario.state.settled is None:
        for key in list(scenario.state.gangs.quarantined):
            scenario.state.gangs.release(key)
        result = run_cycle(scenario.state, scenario.config, NOW + cycles, budget=budget)
        assert result.error is None
        cycles += 1
        if cycles % 10 == 0:  # a gang that takes several budgets is never placed with them
            budget = _budget(seconds := seconds * 2)
        assert cycles < 100
    scenario.wake_all()
    result = scenario.cycle(NOW + cycles)
    assert (result.binds, result.evicted) == ({}, [])


def test_a_pod_beyond_the_minimum_is_tried_in_the_next_cycle() -> None:
    scenario = Scenario(_cluster(_gangs("ns", 1, 1)), WITHOUT_SHARES)
    for index in range(1, 40):
        scenario.state.set_pod(pod(["ns", f"ns000-{index}", "", "Pending", 1, "1Gi", "ns000"]))
    budget, bound = _budget(20), list[str]()
    for _ in range(20):
        bound += scenario.cycle(budget=budget).binds
    assert len(bound) == len(set(bound)) == 40


def test_a_gang_that_fits_in_no_domain_is_set_aside_once_it_has_taken_too_long() -> None:
    racks, parts = 20, 50
    policy = {
        "name": "w",
        "matchLabelKeys": ["volcano.sh/partition-id"],
        "subGroupSize": 2,
        "minSubGroups": 0,
    }
    pods = []
    for index in range(2 * parts):
        labels = {"volcano.sh/partition-id": str(index // 2)}
        memory = f"{1000 + index // 2}Mi"  # so that no two partitions are alike
        pods.append(["ns", f"p{index}", "", "Pending", 5, memory, "g", {"labels": labels}])
    options = {"policies": [policy], "topology": {"mode": "hard", "highestTierAllowed": 1}}
    case = {
        "nodes": [[f"n{index}", 8, f"{100000 + index}Mi"] for index in range(racks)],
        "hyper_nodes": {f"s{index}": {"tier": 1, "nodes": [f"n{index}"]} for index in range(racks)},
        "podgroups": [["ns", "g", "default", 1, "Inqueue", options]],
        "pods": pods,
    }
    text = config_text([["gang"], ["predicates", "network-topology-aware"]], ["allocate"])
    scenario = Scenario(case, text)
    result = run_cycle(scenario.state, scenario.config, NOW, budget=_budget(100))
    assert (result.binds, list(result.errors)) == ({}, ["ns/g"])
    assert result.pending["ns/g"].reason == "SchedulingTooSlow"
