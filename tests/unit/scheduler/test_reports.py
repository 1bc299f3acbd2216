"""When reasons are written: once for each cause that lasts, and not for each number that moves."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.scheduler.waiting.parked import RENEWALS_PER_CYCLE
from pumice.scheduler.worker.configuration import DELAYS
from tests.unit.scheduler.scenarios import NOW, Scenario, config_text, node, pod_group

CASE: dict[str, Any] = {
    "nodes": [["n1", 1, "8Gi"]],
    "podgroups": [["ns", "g", "default", 2, "Inqueue"]],
    "pod_sets": [{"pg": "g", "count": 2}],
}


def _scenario(case: dict[str, Any] = CASE) -> Scenario:
    return Scenario(case, delays=DELAYS)


def _message(scenario: Scenario) -> str | None:
    conditions = scenario.state.gangs.statuses["ns/g"].conditions or []
    return next((each.message for each in conditions if each.type == "Unschedulable"), None)


def test_a_cause_is_written_once_it_has_stood_for_a_moment() -> None:
    scenario = _scenario()
    assert scenario.cycle(NOW).pod_groups == {}
    assert scenario.cycle(NOW + 0.9).pod_groups == {}
    late = scenario.cycle(NOW + 1.0)
    assert list(late.pod_groups) == ["ns/g"]
    assert [event.reason for event in late.events] == ["Unschedulable"]
    assert scenario.cycle(NOW + 2.0).pod_groups == {}


def test_a_cause_that_passes_by_itself_is_never_written() -> None:
    scenario = _scenario()
    scenario.cycle(NOW)
    scenario.state.set_node(node(["n2", 4, "8Gi"]))
    result = scenario.cycle(NOW + 0.5)
    assert sorted(result.binds) == ["ns/g-0", "ns/g-1"]
    assert scenario.conditions("ns/g") == {"Scheduled": "True"}
    assert scenario.cycle(NOW + 5).pods == {}


def test_changed_numbers_wait_and_make_no_event() -> None:
    scenario = _scenario()
    scenario.cycle(NOW)
    scenario.cycle(NOW + 1)
    assert "0/1 nodes" in (_message(scenario) or "")
    scenario.state.set_node(node(["n2", "500m", "8Gi"]))
    assert scenario.cycle(NOW + 2).pod_groups == {}
    assert scenario.cycle(NOW + 30.9).pod_groups == {}
    result = scenario.cycle(NOW + 31)
    assert "0/2 nodes" in (_message(scenario) or "")
    assert result.events == []


def test_numbers_of_many_gangs_are_written_a_few_a_cycle() -> None:
    """Gangs that wait to enter their queue, and a pod whose end changes the numbers in all of their reasons."""
    names = {f"ns/g{number}" for number in range(20)}
    groups = [["ns", key[3:], "default", 1, "Pending", {"minRes": {"cpu": 4}}] for key in names]
    case = {
        "nodes": [["n1", 4, "8Gi"]],
        "podgroups": [*groups, ["ns", "runs", "default", 1, "Running"]],
        "pods": [["ns", f"runs-{number}", "n1", "Running", 1, 0, "runs"] for number in range(4)],
    }
    scenario = Scenario(case, config_text([["gang", "overcommit"]]), delays=DELAYS)
    scenario.cycle(NOW)
    assert len(scenario.cycle(NOW + 1).events) == 20
    scenario.state.remove_pod("ns", "runs-0")
    now = NOW + 31
    written: list[str] = []
    while set(written) != names:
        result = scenario.cycle(now)
        renewed = result.pod_groups.keys() - {"ns/runs"}
        assert len(renewed) <= RENEWALS_PER_CYCLE
        assert not renewed & set(written)
        assert result.events == []
        written += renewed
        now += 1
    assert now <= NOW + 31 + 20 / RENEWALS_PER_CYCLE
    scenario.state.remove_pod("ns", "runs-1")
    again = scenario.cycle(NOW + 61).pod_groups.keys() | scenario.cycle(NOW + 62).pod_groups.keys()
    assert again - {"ns/runs"} == set(written[: 2 * RENEWALS_PER_CYCLE]), (
        "the longest unchanged first"
    )


def test_another_cause_is_written_soon() -> None:
    scenario = _scenario()
    scenario.cycle(NOW)
    scenario.cycle(NOW + 1)
    scenario.state.set_node(node(["n1", 4, "8Gi", {"unschedulable": True}]))
    scenario.cycle(NOW + 2)
    result = scenario.cycle(NOW + 3)
    assert "unschedulable" in (_message(scenario) or "")
    assert [event.reason for event in result.events] == ["Unschedulable"]


def _memory_is_short(scenario: Scenario) -> None:
    scenario.state.set_node(node(["n1", 8, "1Gi"]))


def _says(scenario: Scenario, row: list[Any]) -> None:
    """Change the spec of a PodGroup; its status stays."""
    group = replace(pod_group(row), status=scenario.state.gangs.statuses["ns/g"])
    scenario.state.set_pod_group(group)


def _another_queue(scenario: Scenario) -> None:
    _says(scenario, ["ns", "g", "other", 2, ""])


def _another_gate(scenario: Scenario) -> None:
    for number in range(2):
        gates = {"gates": ["other"]}
        scenario.add_pod(["ns", f"g-{number}", "", "Pending", 1, "1Gi", "g", gates])


def _another_gang_is_ahead(scenario: Scenario) -> None:
    scenario.state.remove_pod("ns", "a-0")
    scenario.state.remove_pod_group("ns", "a")


def _another_resource_is_missing(scenario: Scenario) -> None:
    _says(scenario, ["ns", "g", "default", 2, "", {"minRes": {"example.com/b": 1}}])


FULL = {"capability": {"cpu": 1}}
OTHER_CAUSES: dict[str, tuple[dict[str, Any], Callable[[Scenario], None]]] = {
    "another resource": ({}, _memory_is_short),
    "another queue": (
        {"queues": [["default", FULL], ["other", FULL]], "nodes": [["n1", 8, "8Gi"]]},
        _another_queue,
    ),
    "another gate": (
        {
            "pod_sets": [],
            "pods": [
                ["ns", f"g-{number}", "", "Pending", 1, "1Gi", "g", {"gates": ["hold"]}]
                for number in range(2)
            ],
        },
        _another_gate,
    ),
    "another gang ahead": (
        {
            "queues": [["default", {"dequeueStrategy": "fifo"}]],
            "podgroups": [["ns", name, "default", 1, "Inqueue"] for name in "abg"],
            "pod_sets": [{"pg": name, "count": 1, "cpu": 1 + (name != "g")} for name in "abg"],
        },
        _another_gang_is_ahead,
    ),
    "a resource that no node has": (
        {
            "podgroups": [
                ["ns", "g", "default", 2, "Pending", {"minRes": {"example.com/a": 1}}],
            ],
            "pod_sets": [],
        },
        _another_resource_is_missing,
    ),
}


@pytest.mark.parametrize(("case", "happens"), OTHER_CAUSES.values(), ids=OTHER_CAUSES)
def test_what_a_reason_names_is_its_cause(
    case: dict[str, Any], happens: Callable[[Scenario], None]
) -> None:
    plugins = [["gang", "overcommit", "proportion", "predicates"]]
    scenario = Scenario(CASE | case, config_text(plugins), delays=DELAYS)
    scenario.cycle(NOW)
    scenario.cycle(NOW + 1)
    before = _message(scenario)
    assert before is not None
    happens(scenario)
    scenario.cycle(NOW + 2)
    assert _message(scenario) == before
    result = scenario.cycle(NOW + 3)
    assert _message(scenario) not in (None, before)
    assert "g" in [event.name for event in result.events]


def test_another_gang_ahead_is_written_for_a_few_gangs_a_cycle() -> None:
    """It is another cause for everyone behind it."""
    scenario = Scenario(
        {
            "nodes": [["n1", 1, "8Gi"]],
            "queues": [["default", {"dequeueStrategy": "fifo"}]],
            "podgroups": [["ns", f"g{each:02}", "default", 1, "Inqueue"] for each in range(20)],
            "pod_sets": [{"pg": f"g{each:02}", "count": 1, "cpu": 2} for each in range(20)],
        },
        config_text([["gang", "predicates"]], ["allocate"]),
        delays=DELAYS,
    )
    scenario.cycle(NOW)
    assert len(scenario.cycle(NOW + 1).events) == 20
    scenario.state.remove_pod("ns", "g00-0")
    scenario.state.remove_pod_group("ns", "g00")
    now = NOW + 2
    behind: list[str] = []
    scenario.cycle(now)
    while len(behind) < 18:
        now += 1
        events = scenario.cycle(now).events
        found = [each.name for each in events if "ns/g01 ahead of this one" in each.message]
        assert 0 < len(found) <= 3
        behind += found
    assert sorted(behind) == [f"g{each:02}" for each in range(2, 20)]


def test_pods_are_reported_later_than_their_gang() -> None:
    scenario = _scenario()
    assert scenario.cycle(NOW).pods == {}
    assert scenario.cycle(NOW + 1).pods == {}
    (verdict,) = scenario.cycle(NOW + 5).pods.values()
    assert (verdict.reason, verdict.is_new) == ("Unschedulable", True)
    scenario.state.set_node(node(["n2", "500m", "8Gi"]))
    assert scenario.cycle(NOW + 6).pods == {}
    (verdict,) = scenario.cycle(NOW + 35).pods.values()
    assert ("0/2 nodes" in verdict.message, verdict.is_new) == (True, False)


def test_a_gang_whose_pods_are_arriving_is_not_explained() -> None:
    scenario = _scenario({**CASE, "pod_sets": [{"pg": "g", "count": 1}]})
    assert scenario.cycle(NOW).pending == {}
    scenario.cycle(NOW + 4.9)
    assert _message(scenario) is None
    scenario.cycle(NOW + 5)
    scenario.cycle(NOW + 6)
    assert "Not enough valid tasks" in (_message(scenario) or "")


def test_a_successor_does_not_repeat_what_stands() -> None:
    scenario = _scenario()
    scenario.cycle(NOW)
    scenario.cycle(NOW + 1)
    (row,) = CASE["podgroups"]
    successor = _scenario()
    job = successor.state.jobs["ns/g"]
    job.status = scenario.state.gangs.statuses["ns/g"]
    assert row[1] == "g"
    for seconds in range(40):
        result = successor.cycle(NOW + 100 + seconds)
        assert (result.pod_groups, result.events) == ({}, [])


def test_a_condition_that_is_lost_is_written_again() -> None:
    scenario = _scenario()
    scenario.cycle(NOW)
    scenario.cycle(NOW + 1)
    job = scenario.state.jobs["ns/g"]
    group = job.group
    assert group is not None
    scenario.state.remove_pod_group("ns", "g")
    scenario.state.set_pod_group(group)
    scenario.cycle(NOW + 2)
    scenario.cycle(NOW + 3)
    assert _message(scenario) is not None


def test_pods_that_arrive_again_are_arriving_too() -> None:
    """After a restart the pods come one by one: that some lack is not worth a word."""
    scenario = _scenario({**CASE, "nodes": [["n1", 1, "8Gi"]], "pod_sets": []})
    names = ["ns/g-0", "ns/g-1"]
    for row in (
        ["ns", "g-0", "n1", "Running", 1, "1Gi", "g"],
        ["ns", "g-1", "n1", "Running", 0, "0", "g"],
    ):
        scenario.add_pod(row)
    scenario.cycle(NOW)
    for key in names:
        scenario.state.remove_pod(*key.split("/"))
    scenario.cycle(NOW + 60)
    scenario.add_pod(["ns", "g-0", "", "Pending", 1, "1Gi", "g"])
    for seconds in (61, 62, 63):
        scenario.cycle(NOW + seconds)
    assert _message(scenario) is None


def test_a_second_wait_for_the_same_cause_is_reported_like_the_first() -> None:
    scenario = _scenario()
    scenario.cycle(NOW)
    assert len(scenario.cycle(NOW + 5).pods) == 1
    scenario.state.set_node(node(["n1", 4, "8Gi"]))
    assert len(scenario.cycle(NOW + 6).binds) == 2
    for key in ("ns/g-0", "ns/g-1"):
        task = scenario.state.tasks[key]
        scenario.state.pods.forget(key, task.uid)
    scenario.state.set_node(node(["n1", 1, "8Gi"]))
    assert scenario.cycle(NOW + 3600).pods == {}
    (verdict,) = scenario.cycle(NOW + 3605).pods.values()
    assert verdict.is_new


def test_a_condition_whose_cause_has_gone_is_replaced() -> None:
    gated = {"gates": ["hold"]}
    pods = [["ns", f"g-{number}", "", "Pending", 1, "1Gi", "g", gated] for number in range(2)]
    scenario = Scenario({**CASE, "nodes": [["n1", "500m", "8Gi"]], "pod_sets": [], "pods": pods})
    assert {each.reason for each in scenario.cycle(NOW).pods.values()} == {"SchedulingGated"}
    for row in pods:
        scenario.add_pod(row[:7])
    told = scenario.cycle(NOW + 1).pods
    assert {key: each.reason for key, each in told.items()} == {
        "ns/g-0": "Unschedulable",
        "ns/g-1": "Unschedulable",
    }
    assert "waits for its gang" in told["ns/g-1"].message


def test_a_podgroup_made_again_is_reported_again() -> None:
    scenario = _scenario()
    scenario.cycle(NOW)
    assert len(scenario.cycle(NOW + 1).events) == 1
    scenario.state.remove_pod_group("ns", "g")
    scenario.cycle(NOW + 2)
    scenario.state.set_pod_group(pod_group(["ns", "g", "default", 2, "Inqueue"]))
    assert scenario.cycle(NOW + 3).pod_groups == {}
    assert [event.reason for event in scenario.cycle(NOW + 4).events] == ["Unschedulable"]


def test_finished_gangs_cost_no_cycles() -> None:
    pods = [
        ["ns", "g-0", "n1", "Succeeded", 1, "1Gi", "g"],
        ["ns", "g-1", "n1", "Failed", 1, "1Gi", "g"],
    ]
    scenario = _scenario({**CASE, "pod_sets": [], "pods": pods})
    for seconds in range(20):
        scenario.cycle(NOW + seconds)
    cycles = scenario.state.cycles
    scenario.cycle(NOW + 100)
    assert scenario.state.cycles == cycles


def test_only_phases_and_reasons_are_urgent() -> None:
    """Numbers of pods, the condition `Scheduled` and the end of a gang may wait for a moment."""
    scenario = _scenario()
    scenario.cycle(NOW)
    late = scenario.cycle(NOW + 1)
    assert late.urgent == {"ns/g"}, "the reason"
    scenario.state.set_node(node(["n2", 4, "8Gi"]))
    placed = scenario.cycle(NOW + 2)
    assert scenario.conditions("ns/g")["Scheduled"] == "True"
    assert (list(placed.pod_groups), placed.urgent) == (["ns/g"], set())
    scenario.show_all("ns/g", "Pending")
    bound = scenario.cycle(NOW + 3)
    assert scenario.phase("ns/g") == "Running"
    assert (list(bound.pod_groups), bound.urgent) == (["ns/g"], {"ns/g"})
    scenario.show_all("ns/g", "Running")
    counted = scenario.cycle(NOW + 3)
    assert (list(counted.pod_groups), counted.urgent) == (["ns/g"], set())
    scenario.show_all("ns/g", "Succeeded")
    ended = scenario.cycle(NOW + 4)
    assert scenario.phase("ns/g") == "Completed"
    assert (list(ended.pod_groups), ended.urgent) == (["ns/g"], set())


def test_an_event_tells_that_a_gang_got_its_place_only_if_one_told_that_it_waits() -> None:
    warned, quiet = _scenario(), _scenario()
    for moment in (NOW, NOW + 1):
        warned.cycle(moment)
    quiet.cycle(NOW)
    for scenario, reasons in ((warned, ["Scheduled"]), (quiet, [])):
        scenario.state.set_node(node(["n2", 4, "8Gi"]))
        result = scenario.cycle(NOW + 2)
        assert len(result.binds) == 2
        assert [event.reason for event in result.events] == reasons
