"""Who may enter a queue: overcommit, sla and the sums that votes are about."""

from typing import Any

import pytest

from pumice.api.meta import format_time
from pumice.api.quantities import parse_milli
from pumice.scheduler.model.axis import CPU
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.scenarios import (
    NOW,
    Scenario,
    case_id,
    config_text,
    load_cases,
    pod_group,
)


@pytest.mark.parametrize("case", load_cases("votes.yaml", "overcommit"), ids=case_id)
def test_overcommit(case: dict[str, Any]) -> None:
    scenario = Scenario(
        {
            "nodes": [["n1", 2, "4Gi"], ["n2", 4, "16Gi"]],
            "podgroups": [["ns", "g", "default", 1, "Inqueue", {"minRes": case["minRes"]}]],
        },
        config_text([[{"overcommit": None, "args": {"overcommit-factor": case["factor"]}}]]),
    )
    session = open_session(scenario)
    job = scenario.state.jobs["ns/g"]
    session.enter(job)
    refusal = session.answers.why_not_enqueueable(job, "")
    assert (refusal is None) is case["expect"]


@pytest.mark.parametrize("case", load_cases("votes.yaml", "sla"), ids=case_id)
def test_sla(case: dict[str, Any]) -> None:
    given = {} if case["argument"] is None else {"sla-waiting-time": case["argument"]}
    hour = {"annotations": {"sla-waiting-time": "1h"}}
    scenario = Scenario(
        {
            "podgroups": [
                ["ns", "job2", "default", 1, "Pending", hour],
                ["ns", "later", "default", 1, "Pending"],
                ["ns", "job1", "default", 1, "Pending"],
            ]
        },
        config_text([[{"sla": None, "args": given}]]),
    )
    session = open_session(scenario)
    one, two = scenario.state.jobs["ns/job1"], scenario.state.jobs["ns/job2"]
    assert (session.answers.job_key(one) < session.answers.job_key(two)) is case["order"]
    assert (session.answers.why_not_enqueueable(two, "") is None) is case["enqueueable"]


def test_the_own_annotation_of_volcano_goes_first() -> None:
    own = {"volcano.sh/sla-waiting-time": "2m", "sla-waiting-time": "1m"}
    plain = {"sla-waiting-time": "0s"}
    scenario = Scenario(
        {
            "podgroups": [
                ["ns", "a", "default", 1, "Pending", {"annotations": own}],
                ["ns", "b", "default", 1, "Pending", {"annotations": plain}],
            ]
        },
        config_text([[{"sla": None, "args": {"sla-waiting-time": "5m"}}]]),
    )
    session = open_session(scenario)
    keys = [session.answers.job_key(scenario.state.jobs[f"ns/{name}"])[0] for name in "ab"]
    assert keys == [(0, 120.0), (0, 300.0)]


def test_a_gang_whose_waiting_time_ends_is_let_in_at_that_moment() -> None:
    """Nothing else happens, and no cycle runs before."""
    needs = {"minRes": {"cpu": 50}, "created": _at(0)}
    scenario = Scenario(
        {"podgroups": [["ns", "g", "default", 1, "Pending", needs]]},
        config_text([[{"sla": None, "args": {"sla-waiting-time": "3m"}}], ["overcommit"]]),
    )
    for _ in range(3):
        scenario.cycle()
    cycles = scenario.state.cycles
    scenario.cycle(NOW + 179)
    assert (scenario.state.cycles, scenario.phase("ns/g")) == (cycles, "Pending")
    scenario.cycle(NOW + 180)
    assert (scenario.state.cycles, scenario.phase("ns/g")) == (cycles + 1, "Inqueue")


@pytest.mark.parametrize("waiting", ["3m", "1h"])
def test_a_gang_whose_waiting_time_ended_keeps_the_places_that_it_finds(waiting: str) -> None:
    """Too few places for its minimum, on which a later gang would fit."""
    scenario = Scenario(
        {
            "nodes": [["n", 2, "8Gi"]],
            "podgroups": [["ns", "big", "default", 3, "Inqueue", {"created": _at(0)}]],
            "pod_sets": [{"pg": "big", "count": 3}],
        },
        config_text(
            [[{"sla": None, "args": {"sla-waiting-time": waiting}}], ["gang", "predicates"]]
        ),
    )
    for _ in range(3):
        scenario.cycle()
    scenario.cycle(NOW + 180)
    small = ["ns", "small", "default", 1, "Inqueue", {"created": _at(181)}]
    scenario.state.set_pod_group(pod_group(small))
    scenario.add_pod(["ns", "small-0", "", "Pending", 1, 0, "small", {}])
    binds = scenario.cycle(NOW + 181).binds or scenario.cycle(NOW + 182).binds
    assert binds == ({} if waiting == "3m" else {"ns/small-0": "n"})


def _at(seconds: int) -> str:
    return format_time(NOW + seconds)


def test_a_gang_that_needs_what_no_node_has_does_not_enter() -> None:
    case = {
        "nodes": [["n", 8, "8Gi"]],
        "podgroups": [["ns", "g", "default", 1, "", {"minRes": {"cpu": 1, "example.com/x": 1}}]],
    }
    scenario = Scenario(case, config_text([["overcommit"]], ["enqueue"]))
    result = scenario.cycle()
    assert scenario.phase("ns/g") == "Pending"
    assert "no node has example.com/x" in result.pending["ns/g"].message


@pytest.mark.parametrize("case", load_cases("votes.yaml", "elastic"), ids=case_id)
def test_what_pods_hold_beyond_the_minimum(case: dict[str, Any]) -> None:
    minimum = {"cpu": 1, "memory": "1G", "nvidia.com/gpu": 1, "pods": 1}
    pods = [
        ["ns", f"g-{n}", "n", "Running", 1, "1G", "g", {"resources": {"nvidia.com/gpu": 1}}]
        if kind == "g"
        else ["ns", f"g-{n}", "n", "Running", 1, "1G", "g"]
        for n, kind in enumerate(case["tasks"])
    ]
    group = ["ns", "g", "default", 1, "Running", {"minRes": minimum}]
    scenario = Scenario({"podgroups": [group], "pods": pods})
    assert _amounts(scenario, "elastic") == _milli(case["expect"])


@pytest.mark.parametrize("case", load_cases("votes.yaml", "remainder"), ids=case_id)
def test_what_a_gang_in_its_queue_may_still_take(case: dict[str, Any]) -> None:
    holds = dict(case["holds"])
    cpu, memory = holds.pop("cpu", 0), holds.pop("memory", 0)
    pods = [["ns", "g-0", "n", "Running", cpu, memory, "g", {"resources": holds}]]
    group = ["ns", "g", "default", 1, "Inqueue", {"minRes": case["minRes"]}]
    nodes = [["n", 8, "8Gi", {"resources": {"gpu": 8}}]]
    scenario = Scenario(
        {"nodes": nodes, "podgroups": [group], "pods": pods if case["holds"] else []}
    )
    assert _amounts(scenario, "reserved") == _milli(case["expect"])


def _amounts(scenario: Scenario, kind: str) -> dict[str, int]:
    scenario.state.settle()
    shares = scenario.state.shares
    return scenario.state.axis.amounts(getattr(shares, kind)[shares.rows["default"]])


def _milli(amounts: dict[str, Any]) -> dict[str, int]:
    return {name: parse_milli(amount) for name, amount in amounts.items()}


def test_gangs_that_enter_without_pods_count_once_they_have_them() -> None:
    """PRP-7: what the pods of a gang hold is not reserved for it as well, even before they are bound."""
    scenario = Scenario(
        {
            "nodes": [["n1", 4, "8Gi"]],
            "queues": [["q1", {"capability": {"cpu": 4, "memory": "8Gi"}}]],
            "podgroups": [
                ["ns1", "pgA", "q1", 3, "Inqueue", {"minRes": {"cpu": 3, "memory": "3Gi"}}]
            ],
            "pod_sets": [{"ns": "ns1", "pg": "pgA", "count": 3}],
        },
        config_text([[{"proportion": ["Allocatable", "Overused", "JobEnqueued"]}]]),
    )
    assert len(scenario.cycle().binds) == 3
    later = ["ns1", "pgB", "q1", 1, "Pending", {"minRes": {"cpu": 1, "memory": "1Gi"}}]
    scenario.state.set_pod_group(pod_group(later))
    scenario.add_pod(["ns1", "pB1", "", "Pending", 1, "1Gi", "pgB", {}])
    assert scenario.cycle().binds == {"ns1/pB1": "n1"}
    scenario.state.settle()
    assert scenario.state.shares.reserved[:, CPU].sum() == 0
