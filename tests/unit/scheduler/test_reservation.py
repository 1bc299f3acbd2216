"""Nodes are reserved for one gang at a time, until it runs, goes, or its time is over."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from pumice.scheduler import load_config
from pumice.scheduler.state.reserved_nodes import Reservation
from tests.unit.scheduler.reserving import (
    NODES,
    PLUGINS,
    busy,
    cycles,
    gang,
    large_and_small,
    reserved,
    said,
    scenario_of,
    with_reserved,
)
from tests.unit.scheduler.scenarios import (
    NOW,
    Raw,
    Scenario,
    case_id,
    config_text,
    load_cases,
    queue,
)


class Story:
    """A scenario over several cycles, with everything that was decided."""

    def __init__(self, case: Raw) -> None:
        actions = ["enqueue", "elect", "allocate", "backfill", "reserve"]
        start = case.get("start", {})
        groups = [
            with_reserved(row, start["nodes"]) if row[1] == start.get("target") else row
            for row in case["podgroups"]
        ]
        config = config_text(case["plugins"], actions)
        self.scenario = Scenario(case | {"podgroups": groups}, config)
        self.binds: dict[str, str] = {}
        self.promised: set[str] = set()
        self.ended: dict[str, str] = {}
        self._steps = case.get("then", {})
        state = self.scenario.state
        if start:
            reservation = Reservation.of(state.jobs[f"ns/{start['target']}"], NOW)
            state.set_reservation(replace(reservation, nodes=tuple(start["nodes"])))
            state.has_restored = True

    def go_on(self, number: int) -> None:
        """One cycle."""
        scenario, step = self.scenario, self._steps.get(number, {})
        for name in step.get("gone", []):
            scenario.state.remove_pod("ns", name)
            del scenario.pods[f"ns/{name}"]
        for name in step.get("gone_nodes", []):
            scenario.state.remove_node(name)
        for row in step.get("pods", []):
            scenario.add_pod(row)
        result = scenario.cycle(NOW + number)
        self.binds |= result.binds
        self.promised |= set(result.pipelined)
        for key, status in result.pod_groups.items():
            for each in status.conditions or ():
                if each.type == "Reserved" and each.status == "False":
                    self.ended[key.removeprefix("ns/")] = each.reason
        scenario.start(result)


@pytest.mark.parametrize("case", load_cases("reservation.yaml", "over_time"), ids=case_id)
def test_over_time(case: Raw) -> None:
    story, expect = Story(case), case["expect"]
    for number in range(case["cycles"]):
        story.go_on(number)
    state = story.scenario.state
    assert story.binds == expect["binds"]
    if "target" in expect:
        assert state.reservation is not None
        assert state.reservation.gang == f"ns/{expect['target']}"
        assert list(state.reservation.nodes) == expect["nodes"]
    assert story.ended == expect.get("ended", {})
    assert story.promised <= set(expect.get("promised", story.promised))
    for name, phase in expect.get("phases", {}).items():
        assert story.scenario.phase(f"ns/{name}") == phase


@pytest.mark.parametrize("case", load_cases("reservation.yaml", "reserved"), ids=case_id)
def test_one_node_is_reserved_in_each_cycle(case: Raw) -> None:
    arguments = {"reservation": None, "args": {"reservation.selection": case["selection"]}}
    plugins: list[dict[str, Any] | str] = ["priority", "gang", arguments, "predicates"]
    config = config_text([plugins], ["enqueue", "elect", "allocate", "reserve"])
    scenario = scenario_of(busy(*case["busy"]), gang("large", *case["pods"]), config=config)
    seen = []
    for number in range(len(case["cycles"])):
        scenario.cycle(NOW + number)
        seen.append(list(reserved(scenario.state)))
    assert seen == case["cycles"]
    assert said(scenario, "ns/large") == ("True", "NodesReserved")


def test_nodes_that_its_pods_may_not_use_are_not_reserved() -> None:
    scenario = scenario_of(busy("n1", "n2", "n3"), gang("large", 4, 4))
    cycles(scenario, 5)
    assert reserved(scenario.state) == ("n2",), "it holds all four"


def test_a_shape_that_lacks_places_decides_which_node_is_reserved() -> None:
    scenario = scenario_of(
        busy("n1", "n2", "n3"),
        {
            "podgroups": [["ns", "two", "default", 2, "", {}]],
            "pods": [
                ["ns", "two-0", "", "Pending", 2, "1Gi", "two", {"selector": {"small": "yes"}}],
                ["ns", "two-1", "", "Pending", 2, "1Gi", "two", {"selector": {"small": "yes"}}],
            ],
        },
        nodes=[["n1", 4, "8Gi", {"labels": {"small": "yes"}}], *NODES[1:]],
    )
    cycles(scenario, 4)
    assert reserved(scenario.state) == ("n1",)


@pytest.mark.parametrize("end", ["queue", "pods"])
def test_a_target_that_cannot_run_any_more_keeps_nothing(end: str) -> None:
    scenario = scenario_of(busy("n2", "n3"), gang("large", 3, 8))
    cycles(scenario, 3)
    assert reserved(scenario.state)
    if end == "queue":
        scenario.state.set_queue(queue(["default", {"state": "Closed"}]))
    else:
        for number in range(3):
            scenario.state.remove_pod("ns", f"large-{number}")
    scenario.cycle(NOW + 3)
    assert scenario.state.reservation is None


def test_a_configuration_without_reserve_ends_the_reservation() -> None:
    scenario = scenario_of(busy("n2", "n3"), gang("large", 3, 8))
    cycles(scenario, 3)
    scenario.config = load_config(config_text([PLUGINS], ["enqueue", "allocate"]))
    scenario.cycle(NOW + 3)
    assert scenario.state.reservation is None
    assert said(scenario, "ns/large") == ("False", "Released")


def test_gangs_that_wait_are_not_harmed_by_room_on_some_nodes() -> None:
    """The filter is asked about the rows that changed alone."""
    large = gang("large", 3, 8, created="2024-01-01T00:00:00Z")
    scenario = scenario_of(busy("n1", "n2", "n3"), large, gang("small", 2, 2))
    cycles(scenario, 3)
    scenario.state.remove_pod("ns", "busy-n1")
    assert sorted(scenario.cycle(NOW + 3).binds) == ["ns/small-0", "ns/small-1"]


def test_a_reservation_of_the_future_begins_now() -> None:
    message = "since 2099-01-01T00:00:00Z: n2"
    condition = {
        "type": "Reserved",
        "status": "True",
        "reason": "NodesReserved",
        "message": message,
    }
    scenario = scenario_of(busy("n2", "n3"), gang("large", 3, 8, conditions=[condition]))
    scenario.cycle(NOW)
    assert scenario.state.reservation is not None
    assert scenario.state.reservation.since == NOW


@pytest.mark.parametrize("case", load_cases("reservation.yaml", "others"), ids=case_id)
def test_others_get_no_new_place_on_reserved_nodes(case: Raw) -> None:
    scenario = large_and_small(later=True, is_large=case["reserved"])
    assert reserved(scenario.state) == (("n2", "n3") if case["reserved"] else ())
    result = scenario.cycle(NOW + 3)
    assert result.binds == case["binds"]
    assert case.get("message", "") in (
        result.pending["ns/small"].message if "ns/small" in result.pending else ""
    )


def test_the_gang_for_which_nodes_are_reserved_gets_them() -> None:
    scenario = large_and_small(later=True)
    scenario.cycle(NOW + 3)
    scenario.state.remove_pod("ns", "busy-n3")
    result = scenario.cycle(NOW + 4)
    assert sorted(result.binds) == ["ns/large-0", "ns/large-1", "ns/large-2"]


def test_a_gang_that_is_placed_before_anything_is_reserved_has_its_place() -> None:
    assert large_and_small(later=False).cycle().binds == {"ns/small-0": "n2"}


def test_what_is_reserved_is_free_again_once_the_gang_runs() -> None:
    scenario = scenario_of(busy("n3"), gang("large", 3, 8))
    cycles(scenario, 3)
    scenario.state.remove_pod("ns", "busy-n3")
    scenario.cycle(NOW + 3)
    assert scenario.state.reservation is None
    assert said(scenario, "ns/large") == ("False", "Ready")
    assert min(scenario.state.wakes) <= NOW + 3  # others have had their turn in this cycle


@pytest.mark.parametrize("kept", [1, 2], ids=["one node so far", "all nodes"])
def test_it_lasts_while_its_gang_waits_for_terminating_pods(kept: int) -> None:
    """Their places are promised to the gang; were they free for others, a newer gang could take them."""
    scenario = scenario_of(busy("n2", "n3"), gang("large", 3, 8))
    cycles(scenario, kept)
    for row in busy("n2", "n3")["pods"]:
        scenario.add_pod([*row, {"deleting": True}])
    promised = [result.pipelined for result in cycles(scenario, 4 - kept, NOW + kept)]
    assert set(promised[0]) == {"ns/large-0", "ns/large-1", "ns/large-2"}
    assert reserved(scenario.state) == ("n2", "n3")
    assert said(scenario, "ns/large") == ("True", "NodesReserved")
    for name in ("n2", "n3"):
        scenario.state.remove_pod("ns", f"busy-{name}")
    scenario.cycle(NOW + 4)
    assert said(scenario, "ns/large") == ("False", "Ready")


def test_it_ends_with_its_gang() -> None:
    scenario = scenario_of(busy("n2", "n3"), gang("large", 3, 8))
    cycles(scenario, 3)
    scenario.state.remove_pod_group("ns", "large")
    scenario.cycle(NOW + 3)
    assert scenario.state.reservation is None


def test_target_nodes_and_time_survive_a_restart() -> None:
    parts = (busy("n2", "n3"), gang("large", 3, 8))
    scenario = scenario_of(*parts)
    cycles(scenario, 3)
    status = scenario.state.gangs.statuses["ns/large"]
    again = scenario_of(*parts)
    group = again.state.jobs["ns/large"].group
    assert group is not None
    again.state.set_pod_group(msgspec.structs.replace(group, status=status))
    again.cycle(NOW + 50)
    assert again.state.reservation == Reservation("ns/large", group.metadata.uid, NOW, ("n2", "n3"))
    assert again.state.gangs.statuses["ns/large"].conditions == status.conditions, (
        "nothing to write"
    )


def test_a_condition_that_cannot_be_read_reserves_nothing() -> None:
    for message in ("", "since yesterday: n2", "since 2024-01-01T00:00:00Z: unknown, ,"):
        condition = {
            "type": "Reserved",
            "status": "True",
            "reason": "NodesReserved",
            "message": message,
        }
        large = gang("large", 3, 8, conditions=[condition])
        scenario = scenario_of(
            busy("n2", "n3"), large, config=config_text([PLUGINS], ["elect", "allocate"])
        )
        scenario.cycle()
        assert reserved(scenario.state) == ()


def test_a_gang_without_pods_reserves_what_it_says_that_it_needs() -> None:
    scenario = Scenario(
        {
            "nodes": NODES,
            "podgroups": [["ns", "g", "default", 2, "", {"minRes": {"cpu": 20}}]],
        },
        config_text([["priority", "gang", "reservation"]], ["elect", "reserve"]),
    )
    cycles(scenario, 4)
    assert reserved(scenario.state) == ("n2", "n3")


def test_a_node_on_which_pods_had_to_go_for_another_gang_is_not_reserved() -> None:
    config = config_text([PLUGINS], ["elect", "allocate", "preempt", "reserve"])
    scenario = scenario_of(
        config=config,
        nodes=[["n1", 6, "8Gi"]],
        queues=[["q0"], ["q2"]],
        classes={"mid": 10, "high": 100},
        podgroups=[
            ["ns", "old", "q0", 0, "Running"],
            ["ns", "stays", "q2", 1, "Running"],
            ["ns", "target", "q2", 1, "Inqueue", {"prio": "high"}],
            ["ns", "next", "q0", 1, "Inqueue", {"prio": "mid"}],
        ],
        pods=[
            ["ns", "old-0", "n1", "Running", 3, 0, "old"],
            ["ns", "stays-0", "n1", "Running", 3, 0, "stays", {"preemptable": False}],
            ["ns", "target-0", "", "Pending", 6, 0, "target"],
            ["ns", "next-0", "", "Pending", 1, 0, "next"],
        ],
    )
    assert scenario.cycle().evicted == ["ns/old-0"]
    assert scenario.state.reservation is not None
    assert reserved(scenario.state) == ()
    scenario.state.remove_pod("ns", "old-0")
    assert scenario.cycle(NOW + 1).binds == {"ns/next-0": "n1"}


def test_a_node_that_another_gang_is_promised_instead_of_its_nominated_one_is_not_reserved() -> (
    None
):
    """Pods had to go for it; its nomination moves to the node where it is promised a place."""
    scenario = scenario_of(
        config=config_text([PLUGINS], ["elect", "allocate", "reserve"]),
        nodes=[["n1", 4, "8Gi"], ["n2", 4, "8Gi", {"unschedulable": True}]],
        classes={"high": 100},
        podgroups=[
            ["ns", "target", "default", 1, "Inqueue", {"prio": "high"}],
            ["ns", "other", "default", 1, "Inqueue"],
        ],
        pods=[
            ["ns", "leaves", "n1", "Running", 2, 0, "", {"deleting": True}],
            ["ns", "stays", "n1", "Running", 2, 0, ""],
            ["ns", "target-0", "", "Pending", 4, 0, "target"],
            ["ns", "other-0", "", "Pending", 2, 0, "other"],
        ],
    )
    scenario.state.pods.nominate({"ns/other-0": "n2"})
    assert scenario.cycle().pipelined == {"ns/other-0": "n1"}
    assert scenario.state.reservation is not None
    assert reserved(scenario.state) == ()
