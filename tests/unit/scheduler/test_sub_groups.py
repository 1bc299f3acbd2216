"""Sub-groups of a gang: which pod belongs to which, their order, and counters that follow the pods."""

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.hypernodes import HyperNode
from pumice.api.podgroups import SubGroupPolicy
from pumice.scheduler import ClusterState
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.sub_groups import MOST_COMPARED, SubGroup, SubGroups
from pumice.scheduler.model.tasks import READY, SchedulingStatus, TaskInfo
from tests.kit.examples import examples
from tests.unit.scheduler.network_trees import hyper_node
from tests.unit.scheduler.scenarios import (
    Scenario,
    case_id,
    config_text,
    load_cases,
    partitions,
    pod,
    pod_group,
)

Raw = dict[str, Any]


def _policies(rows: list[Raw]) -> list[SubGroupPolicy]:
    return msgspec.convert(rows, list[SubGroupPolicy])


def _tasks(labels: list[Raw]) -> list[TaskInfo]:
    state = ClusterState()
    for index, each in enumerate(labels):
        state.set_pod(pod(["ns", f"p-{index}", "", "Pending", 1, 0, "g", {"labels": each}]))
    return list(state.tasks.values())


def _name(group: SubGroup | None) -> Raw | None:
    return None if group is None else {group.of.policy.name: list(group.key)}


@pytest.mark.parametrize("case", load_cases("sub_groups.yaml", "membership"), ids=case_id)
def test_membership(case: Raw) -> None:
    tasks = _tasks(case["pods"])
    groups = SubGroups(_policies(case["policies"]), tasks)
    assert [_name(groups.of(task)) for task in tasks] == case["expect"]
    for task in tasks:
        group = groups.of(task)
        assert group is None or group.tasks[task.key] is task


def _job(case: Raw) -> JobInfo:
    policies = [
        {
            "name": name,
            "labelSelector": {"matchLabels": {"policy": name}},
            "matchLabelKeys": ["number"],
            "subGroupSize": each["size"],
            "minSubGroups": each.get("min"),
        }
        for name, each in case["policies"].items()
    ]
    state = ClusterState()
    state.set_pod_group(pod_group(["ns", "g", "default", 0, "Running", {"policies": policies}]))
    for name, statuses in case["groups"].items():
        policy, number = name.split()
        labels = {"policy": policy, "number": number}
        for index, status in enumerate(statuses):
            key = f"{policy}.{number}.{index}"
            state.set_pod(pod(["ns", key, "", "Pending", 1, 0, "g", {"labels": labels}]))
            state.jobs["ns/g"].move(state.tasks[f"ns/{key}"], SchedulingStatus[status.upper()])
    return state.jobs["ns/g"]


@pytest.mark.parametrize("case", load_cases("sub_groups.yaml", "order"), ids=case_id)
def test_order(case: Raw) -> None:
    groups = _job(case).sub_groups
    assert groups is not None
    ordered = [f"{group.of.policy.name} {group.key[0]}" for group in filter(None, groups.turns())]
    assert ordered == case["expect"]


@pytest.mark.parametrize("case", load_cases("sub_groups.yaml", "checks"), ids=case_id)
def test_checks(case: Raw) -> None:
    groups = _job(case).sub_groups
    assert groups is not None
    invalid = groups.why_invalid()
    assert {
        "ready": groups.is_ready(),
        "pipelined": groups.is_pipelined(),
        "valid": invalid is None,
    } == case["expect"]
    if "message" in case:
        assert invalid is not None
        assert (invalid.reason, invalid.message) == ("NotEnoughPodsOfTask", case["message"])


_STATUSES = st.sampled_from(list(SchedulingStatus))
_STEPS = st.lists(st.tuples(st.integers(0, 7), st.none() | _STATUSES), max_size=40)


@given(size=st.integers(1, 3), minimum=st.integers(0, 3), steps=_STEPS)
def test_counters_are_those_of_the_pods(
    size: int, minimum: int, steps: list[tuple[int, SchedulingStatus | None]]
) -> None:
    policies = _policies([{"matchLabelKeys": ["n"], "subGroupSize": size, "minSubGroups": minimum}])
    tasks = _tasks([{"n": str(index % 3)} for index in range(8)])
    groups = SubGroups(policies, ())
    present: set[int] = set()
    for index, status in steps:
        task = tasks[index]
        if index not in present:
            groups.add(task)
            present.add(index)
        elif status is None:
            groups.discard(task)
            present.remove(index)
        else:
            before, task.status = task.status, status
            groups.move(task, before, status)
    ready = promised = valid = 0
    by_key = {group.key: group for group in groups}
    for number in range(3):
        there = [tasks[index].status for index in present if index % 3 == number]
        group = by_key.get((str(number),))
        assert (group is not None) == bool(there)
        holding = sum(status in READY for status in there)
        pipelined = there.count(SchedulingStatus.PIPELINED)
        waiting = there.count(SchedulingStatus.PENDING)
        if group is not None:
            assert (group.ready, group.pipelined) == (holding, pipelined)
        ready += holding >= size
        promised += holding + pipelined >= size
        valid += holding + pipelined + waiting >= size
    held = sorted(size - group.ready for group in groups if not group.is_ready)
    least = sum([*held, *[size] * minimum][: max(minimum - ready, 0)])
    assert max(minimum - ready, 0) <= groups.lacking() <= least
    assert groups.is_ready() == (ready >= minimum)
    assert groups.is_pipelined() == (promised >= minimum)
    assert (groups.why_invalid() is None) == (valid >= minimum)


def test_pods_that_fail_while_the_gang_begins_count_until_it_has_begun() -> None:
    state = ClusterState()
    options = {"policies": [{"subGroupSize": 2, "minSubGroups": 1}]}
    state.set_pod_group(pod_group(["ns", "g", "default", 2, "Inqueue", options]))
    placed = {"created": "2026-01-01T00:00:00Z", "placed": "2026-01-01T00:00:05Z"}
    state.set_pod(pod(["ns", "p-0", "n", "Failed", 1, 0, "g", placed]))
    job = state.jobs["ns/g"]
    assert job.sub_groups is not None
    assert [group.ready for group in job.sub_groups] == [1]
    state.set_pod(pod(["ns", "p-1", "n", "Running", 1, 0, "g", placed]))
    assert job.sub_groups.is_ready()
    state.set_pod_group(pod_group(["ns", "g", "default", 2, "Running", options]))
    assert not job.sub_groups.is_ready()
    state.remove_pod("ns", "p-0")
    assert [group.ready for group in job.sub_groups] == [1]


def test_a_pod_whose_labels_change_and_policies_that_change() -> None:
    state = ClusterState()
    options: Raw = {"policies": [{"name": "a", "matchLabelKeys": ["n"]}]}
    state.set_pod(pod(["ns", "p", "", "Pending", 1, 0, "g", {"labels": {"n": "1"}}]))
    job = state.jobs["ns/g"]
    for group, labels, expect in (
        ({}, {"n": "1"}, None),
        (options, {"n": "1"}, [("1",)]),
        (options, {"n": "2"}, [("2",)]),
        (options, {}, []),
        ({"policies": [{"name": "a"}]}, {}, [()]),
        ({}, {}, None),
    ):
        state.set_pod(pod(["ns", "p", "", "Pending", 1, 0, "g", {"labels": labels}]))
        state.set_pod_group(pod_group(["ns", "g", "default", 1, "Inqueue", group]))
        groups = job.sub_groups
        assert (groups and [each.key for each in groups]) == expect


def test_a_job_of_a_thousand_tasks_with_partitions_compares_few_labels() -> None:
    policies = _policies(
        [
            {"labelSelector": {"matchLabels": {"task": f"t{index}"}}, "matchLabelKeys": ["n"]}
            for index in range(1000)
        ]
    )
    groups = SubGroups(policies, _tasks([{"task": "t999", "n": "1"}]))
    assert [group.of.place for group in groups] == [999]


def test_policies_that_would_compare_too_many_labels_are_not_read() -> None:
    rows = [
        {"matchLabelKeys": ["n"], "labelSelector": {"matchExpressions": [_exists(index)]}}
        for index in range(MOST_COMPARED)
    ]
    groups = SubGroups(_policies(rows), _tasks([{"n": "1", "l0": ""}]))
    assert list(groups) == []
    invalid = groups.why_invalid()
    assert invalid is not None
    assert "more than 256 of its labels" in invalid.message


def _exists(index: int) -> Raw:
    return {"key": f"l{index}", "operator": "Exists"}


_SELECTED = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"role": "a"}}}
_SPREAD = {
    "topologySpreadConstraints": [_SELECTED | {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
}
_NEAR = {
    "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_SELECTED]}}
}


@st.composite
def _clusters(draw: st.DrawFn) -> Raw:
    """A few nodes, some with a pod that terminates, and gangs of sub-groups, some pods of which run already."""
    nodes = [
        [f"n{index}", draw(st.integers(1, 3)), "64Gi", {"labels": {"zone": "ab"[index % 2]}}]
        for index in range(4)
    ]
    pods: list[Any] = []
    groups = []
    for name, *_ in nodes:
        if draw(st.booleans()):
            pods.append(["ns", f"leaving-{name}", name, "Running", 1, 0, "", {"deleting": True}])
    for gang in range(draw(st.integers(1, 2))):
        policies = [
            {
                "name": role,
                "subGroupSize": draw(st.integers(1, 3)),
                "minSubGroups": draw(st.integers(0, 1)),
                "labelSelector": {"matchLabels": {"role": role}},
                "matchLabelKeys": ["number"],
            }
            for role in ("a", "b")
        ]
        minimum = draw(st.integers(0, 3))
        groups.append(["ns", f"g{gang}", "default", minimum, "Inqueue", {"policies": policies}])
        rules = draw(st.sampled_from([{}, {}, _SPREAD, _NEAR]))
        for index in range(draw(st.integers(3, 8))):
            labels = {"role": draw(st.sampled_from("abc")), "number": draw(st.sampled_from("01"))}
            node = draw(st.sampled_from(["", "", "", "", "n0"]))
            phase = "Running" if node else "Pending"
            cpu = draw(st.sampled_from([1, 1, 2]))
            options = {"labels": labels, "spec": rules}
            pods.append(["ns", f"g{gang}-{index}", node, phase, cpu, 0, f"g{gang}", options])
    return {"nodes": nodes, "podgroups": groups, "pods": pods}


@examples(80)
@given(case=_clusters(), order=st.randoms(use_true_random=False))
def test_sub_groups_are_bound_as_a_whole_whatever_the_order_of_events(
    case: Raw, order: Random
) -> None:
    config = config_text([["priority", "gang", "predicates"]], ["allocate"])
    scenario = Scenario(case, config)
    shuffled = case | {"pods": order.sample(case["pods"], len(case["pods"]))}
    other = Scenario(shuffled, config)
    for _ in range(3):
        result = scenario.cycle()
        assert other.cycle().binds == result.binds
        for job in scenario.state.jobs.values():
            bound = {key for key in result.binds if scenario.state.tasks[key].job == job.key}
            groups = job.sub_groups
            if groups is None:
                continue
            assert not bound or (groups.is_ready() and job.ready >= job.min_member)
            assert all(group.is_ready for group in groups if bound & group.tasks.keys())
        scenario.start(result)
        other.start(result)


def test_sub_groups_like_one_that_found_no_place_are_not_tried() -> None:
    case = {
        "nodes": [[f"n{index}", 1, "64Gi"] for index in range(5)],
        "podgroups": [["ns", "g", "default", 2, "Inqueue", {"policies": [partitions("w", 2, 1)]}]],
        "pod_sets": [{"pg": "g", "role": "w", "count": 100, "partition": 2}],
    }
    scenario = Scenario(case, config_text([["gang", "predicates"]], ["allocate"]))
    result = scenario.cycle()
    assert (len(result.binds), result.decided) == (4, 6)


def test_a_gang_ends_its_turn_when_too_few_sub_groups_are_left() -> None:
    """The first one finds no place; all others are equal to each other and would fit."""
    case = {
        "nodes": [["n0", 8, "64Gi"]],
        "podgroups": [["ns", "g", "default", 0, "Inqueue", {"policies": [partitions("w", 1, 8)]}]],
        "pod_sets": [{"pg": "g", "role": "w", "count": 8, "partition": 1}],
    }
    scenario = Scenario(case, config_text([["gang", "predicates"]], ["allocate"]))
    labels = {"volcano.sh/task-spec": "w", "volcano.sh/partition-id": "0"}
    scenario.add_pod(["ns", "g-w-0", "", "Pending", 9, "1Gi", "g", {"labels": labels}])
    result = scenario.cycle()
    assert (result.binds, result.decided) == ({}, 1)


@pytest.mark.parametrize(
    ("numbers", "placed"),
    [
        pytest.param([0, 1, 0, 1], ["ns/g-0", "ns/g-2"], id="one-of-each-in-turn"),
        pytest.param([1, 1, 0, 0], ["ns/g-2", "ns/g-3"], id="the-second-one-first"),
        pytest.param([0, 0, 0, 1, 1], ["ns/g-0", "ns/g-1"], id="one-beyond-its-size"),
        pytest.param(["", 0, 0], ["ns/g-1", "ns/g-2"], id="one-in-none"),
    ],
)
def test_pods_are_evicted_for_whole_sub_groups(numbers: list[Any], placed: list[str]) -> None:
    pods = [["ns", f"low-{index}", f"n{index}", "Running", 1, 0, "low"] for index in range(4)]
    for index, number in enumerate(numbers):
        labels = {"volcano.sh/task-spec": "w", "volcano.sh/partition-id": str(number)}
        pods.append(["ns", f"g-{index}", "", "Pending", 1, 0, "g", {"labels": labels}])
    policies = [partitions("w", 2, 1)]
    case = {
        "classes": {"low": 1, "high": 10},
        "nodes": [[f"n{index}", 1, "64Gi"] for index in range(4)],
        "podgroups": [
            ["ns", "low", "default", 0, "Running", {"prio": "low"}],
            ["ns", "g", "default", 2, "Inqueue", {"prio": "high", "policies": policies}],
        ],
        "pods": pods,
    }
    tiers = [["priority", "gang"], ["predicates"]]
    scenario = Scenario(case, config_text(tiers, ["allocate", "preempt"]))
    result = scenario.cycle()
    assert (len(result.evicted), sorted(result.pipelined)) == (2, placed)
    scenario.start(result)
    assert sorted(scenario.cycle().binds) == placed


@pytest.mark.parametrize(
    ("minimum", "evicted"), [(1, ["ns/low-0", "ns/low-2"]), (2, [])], ids=["one", "both"]
)
def test_a_gang_loses_whole_sub_groups_that_it_does_not_require(
    minimum: int, evicted: list[str]
) -> None:
    pods = []
    for index in range(4):
        labels = {"volcano.sh/task-spec": "w", "volcano.sh/partition-id": str(index % 2)}
        row = ["ns", f"low-{index}", f"n{index}", "Running", 1, 0, "low", {"labels": labels}]
        pods += [row, ["ns", f"high-{index}", "", "Pending", 1, 0, "high"]]
    policies = [partitions("w", 2, minimum)]
    case = {
        "classes": {"low": 1, "high": 10},
        "nodes": [[f"n{index}", 1, "64Gi"] for index in range(4)],
        "podgroups": [
            ["ns", "low", "default", 0, "Running", {"prio": "low", "policies": policies}],
            ["ns", "high", "default", 2, "Inqueue", {"prio": "high"}],
        ],
        "pods": pods,
    }
    tiers = [["priority", "gang"], ["predicates"]]
    result = Scenario(case, config_text(tiers, ["allocate", "preempt"])).cycle()
    assert result.evicted == evicted


def test_places_of_a_sub_group_that_must_wait_do_not_count_in_a_network_either() -> None:
    (case,) = (each for each in load_cases("sub_groups.yaml", "placement") if each["id"] == "SG-41")
    (group,) = case["podgroups"]
    near = [*group[:-1], group[-1] | {"topology": {"mode": "soft"}}]
    tiers = [["gang", "predicates", "network-topology-aware"]]
    scenario = Scenario(case | {"podgroups": [near]}, config_text(tiers, ["allocate"]))
    whole = hyper_node("whole", nodes=["n0", "n1", "n2"])
    scenario.state.set_hyper_node(msgspec.convert(whole, HyperNode))
    result = scenario.cycle()
    assert (result.binds, result.pipelined) == ({}, case["expect"]["pipelined"])
    scenario.start(result)
    assert scenario.cycle().binds == case["expect"]["then"]["binds"]
