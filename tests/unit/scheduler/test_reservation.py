"""Nodes are reserved for one gang at a time, until it runs, goes, or its time is over."""

from dataclasses import replace
from itertools import count
from typing import Any

import msgspec
import pytest

from pumice.api.meta import format_time
from pumice.scheduler import Budget, ClusterState, CycleResult, load_config
from pumice.scheduler.actions.reserve import why_no_target
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.registry import builtin_registry
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.state.reserved_nodes import Reservation
from pumice.scheduler.view import SessionView
from tests.unit.scheduler.scenarios import (
    NOW,
    Raw,
    Scenario,
    case_id,
    config_text,
    load_cases,
    node,
    pod,
    pod_group,
    queue,
)

TIMEOUT = 600
PLUGINS: list[dict[str, Any] | str] = ["priority", "gang", "reservation", "predicates"]
CONFIG = (
    config_text([PLUGINS], ["enqueue", "elect", "allocate", "reserve"])
    + f"configurations:\n- name: reserve\n  arguments: {{timeoutSeconds: {TIMEOUT}}}\n"
)
NODES: list[list[Any]] = [["n1", 4, "8Gi"], ["n2", 16, "64Gi"], ["n3", 8, "32Gi"]]


def busy(*nodes: str) -> dict[str, Any]:
    """A gang of pods that fill nodes, each of which leaves a node by itself."""
    sizes: dict[str, Any] = {name: cpu for name, cpu, _ in NODES}
    return {
        "podgroups": [["ns", "busy", "default", 1, "Running", {}]],
        "pods": [["ns", f"busy-{n}", n, "Running", sizes[n], "1Gi", "busy"] for n in nodes],
    }


def gang(name: str, size: int, cpu: int, **options: Any) -> dict[str, Any]:
    minimum = options.pop("minimum", size)
    return {
        "podgroups": [["ns", name, "default", minimum, "", options]],
        "pod_sets": [{"pg": name, "count": size, "cpu": cpu, "memory": "1Gi"}],
    }


def scenario_of(*parts: dict[str, Any], config: str = CONFIG, **more: Any) -> Scenario:
    joined: dict[str, Any] = {"nodes": NODES, **more}
    for part in parts:
        for key, rows in part.items():
            joined[key] = [*joined.get(key, []), *rows]
    return Scenario(joined, config)


def reserved(state: ClusterState) -> tuple[str, ...]:
    return state.reservation.nodes if state.reservation is not None else ()


def target_of(scenario: Scenario) -> str:
    return scenario.state.reservation.gang if scenario.state.reservation is not None else ""


def said(scenario: Scenario, key: str) -> tuple[str, str]:
    """Status and reason of the condition Reserved."""
    for each in scenario.state.gangs.statuses[key].conditions or ():
        if each.type == "Reserved":
            return each.status, each.reason
    return "", ""


def cycles(scenario: Scenario, count: int, start: float = NOW) -> list[CycleResult]:
    return [scenario.cycle(start + number) for number in range(count)]


@pytest.mark.parametrize("case", load_cases("reservation.yaml", "elected"), ids=case_id)
def test_one_gang_is_chosen(case: Raw) -> None:
    gangs = []
    for name, row in case["gangs"].items():
        created = format_time(NOW + row["created"])
        needs = {"minRes": {"cpu": row["minimum"]}} if "minimum" in row else {}
        size, cpu = row.get("pods", [2, 8])
        gangs.append(gang(name, size, cpu, prio=f"p{row['prio']}", created=created, **needs))
    plugins = [*PLUGINS, {"overcommit": None, "args": {"overcommit-factor": 1.2}}]
    config = config_text([plugins], ["enqueue", "elect"])
    scenario = scenario_of(busy("n2", "n3"), *gangs, classes={"p5": 5, "p9": 9}, config=config)
    scenario.cycle()
    assert scenario.state.reservation is not None
    assert scenario.state.reservation.gang == f"ns/{case['expect']}"


class NamesNone:
    """A plugin that never chooses a gang for which nodes are reserved."""

    def __init__(self, _arguments: Arguments) -> None:
        pass

    def open(self, _session: SessionView, register: Registrar) -> None:
        """Register it."""
        register.target_job(lambda _jobs: None)


def test_the_first_plugin_that_names_a_gang_decides() -> None:
    spec = PluginSpec("names-none", "Names no gang.", NamesNone)
    registry = builtin_registry().extended(plugins=[spec])
    text = config_text([["names-none", *PLUGINS]], ["enqueue", "elect"])
    joined = {"nodes": NODES, **busy("n2", "n3"), "pod_sets": gang("large", 2, 8)["pod_sets"]}
    joined["podgroups"] = [*joined["podgroups"], *gang("large", 2, 8)["podgroups"]]
    scenario = Scenario(joined, load_config(text, registry))
    scenario.cycle()
    assert target_of(scenario) == "ns/large"


def _with_reserved(row: list[Any], nodes: list[str]) -> list[Any]:
    """A row of a PodGroup whose status says that nodes are reserved for it."""
    message = f"since {format_time(NOW)}: {', '.join(nodes)}"
    said = {"type": "Reserved", "status": "True", "reason": "NodesReserved", "message": message}
    options = row[5] if len(row) > 5 else {}
    return [*row[:5], options | {"conditions": [said]}]


class Story:
    """A scenario over several cycles, with everything that was decided."""

    def __init__(self, case: Raw) -> None:
        actions = ["enqueue", "elect", "allocate", "backfill", "reserve"]
        start = case.get("start", {})
        groups = [
            _with_reserved(row, start["nodes"]) if row[1] == start.get("target") else row
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


@pytest.mark.parametrize(("size", "cpu"), [(2, 12), (40, 1)], ids=["pods", "sum"])
def test_nothing_is_reserved_for_a_gang_that_the_cluster_cannot_hold(size: int, cpu: int) -> None:
    possible = gang("possible", 3, 8, created="2024-01-02T00:00:00Z")
    large = gang("too-large", size, cpu, created="2024-01-01T00:00:00Z")
    scenario = scenario_of(busy("n1", "n2", "n3"), large, possible)
    cycles(scenario, 3)
    assert scenario.state.reservation is not None
    assert scenario.state.reservation.gang == "ns/possible"


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


def test_targets_that_have_timed_out_take_turns() -> None:
    names = ("a", "b", "c")
    gangs = [gang(name, 3, 8, created=f"2024-01-0{n}T00:00:00Z") for n, name in enumerate(names, 1)]
    scenario, seen, now = scenario_of(busy("n2", "n3"), *gangs), [], NOW
    for _ in range(6):
        scenario.cycle(now)
        assert scenario.state.reservation is not None
        seen.append(scenario.state.reservation.gang)
        now += TIMEOUT
        scenario.cycle(now)
    assert seen == ["ns/a", "ns/b", "ns/c", "ns/a", "ns/b", "ns/c"]


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


def test_nothing_is_reserved_for_whom_nothing_could_hold_whatever_its_podgroup_tells() -> None:
    message = "since 2023-01-01T00:00:00Z: n1, n2, n3"
    condition = {
        "type": "Reserved",
        "status": "True",
        "reason": "NodesReserved",
        "message": message,
    }
    scenario = scenario_of(
        busy("n1"), gang("evil", 1, 900, conditions=[condition]), gang("good", 1, 1)
    )
    assert scenario.cycle(NOW).binds == {"ns/good-0": "n2"}
    assert scenario.state.reservation is None


def _large_and_small(*, later: bool, is_large: bool = True) -> Scenario:
    """A large gang that waits for n3, and a small one that comes with it or when nodes are reserved."""
    small = gang("small", 1, 10, created="2024-01-02T00:00:00Z")
    large = [gang("large", 3, 8, created="2024-01-01T00:00:00Z")] if is_large else []
    scenario = scenario_of(busy("n3"), *large, *([] if later else [small]))
    if later:
        cycles(scenario, 3)
        scenario.state.set_pod_group(pod_group(small["podgroups"][0]))
        scenario.add_pod(["ns", "small-0", "", "Pending", 10, "1Gi", "small"])
    return scenario


@pytest.mark.parametrize("case", load_cases("reservation.yaml", "others"), ids=case_id)
def test_others_get_no_new_place_on_reserved_nodes(case: Raw) -> None:
    scenario = _large_and_small(later=True, is_large=case["reserved"])
    assert reserved(scenario.state) == (("n2", "n3") if case["reserved"] else ())
    result = scenario.cycle(NOW + 3)
    assert result.binds == case["binds"]
    assert case.get("message", "") in (
        result.pending["ns/small"].message if "ns/small" in result.pending else ""
    )


def test_the_gang_for_which_nodes_are_reserved_gets_them() -> None:
    scenario = _large_and_small(later=True)
    scenario.cycle(NOW + 3)
    scenario.state.remove_pod("ns", "busy-n3")
    result = scenario.cycle(NOW + 4)
    assert sorted(result.binds) == ["ns/large-0", "ns/large-1", "ns/large-2"]


def test_a_gang_that_is_placed_before_anything_is_reserved_has_its_place() -> None:
    assert _large_and_small(later=False).cycle().binds == {"ns/small-0": "n2"}


def test_what_is_reserved_is_free_again_once_the_gang_runs() -> None:
    scenario = scenario_of(busy("n3"), gang("large", 3, 8))
    cycles(scenario, 3)
    scenario.state.remove_pod("ns", "busy-n3")
    scenario.cycle(NOW + 3)
    assert scenario.state.reservation is None
    assert said(scenario, "ns/large") == ("False", "Ready")


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


def test_it_ends_with_its_time_and_another_gang_is_chosen() -> None:
    old = gang("old", 3, 8, created="2024-01-01T00:00:00Z")
    new = gang("new", 5, 4, created="2024-01-02T00:00:00Z")
    scenario = scenario_of(busy("n2", "n3"), old, new)
    cycles(scenario, 4)
    assert scenario.state.reservation is not None
    assert scenario.state.reservation.gang == "ns/old"
    assert scenario.state.is_settled(scenario.config, NOW + TIMEOUT - 1)
    assert not scenario.state.is_settled(scenario.config, NOW + TIMEOUT)
    scenario.cycle(NOW + TIMEOUT)
    assert reserved(scenario.state) == ()
    assert said(scenario, "ns/old") == ("False", "TimedOut")
    cycles(scenario, 2, NOW + TIMEOUT + 1)
    assert scenario.state.reservation is not None
    assert scenario.state.reservation.gang == "ns/new"


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


def test_nothing_is_reserved_for_a_gang_that_its_queue_cannot_take() -> None:
    plugins: list[dict[str, Any] | str] = [*PLUGINS, "proportion"]
    config = config_text([plugins], ["enqueue", "elect", "allocate", "reserve"])
    rows = [["ns", "big", "small", 2, "Inqueue"], ["ns", "ok", "default", 1, "Inqueue"]]
    scenario = scenario_of(
        config=config,
        nodes=[["n1", 4, "8Gi"], ["n2", 4, "8Gi"]],
        queues=[["small", {"capability": {"cpu": "1"}}], ["default"]],
        podgroups=rows,
        pods=[["ns", f"big-{n}", "", "Pending", 4, 0, "big"] for n in range(2)],
    )
    cycles(scenario, 4)
    assert scenario.state.reservation is None
    scenario.state.set_pod(pod(["ns", "ok-0", "", "Pending", 1, 0, "ok"]))
    assert list(scenario.cycle(NOW + 5).binds) == ["ns/ok-0"]


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


def test_gangs_that_the_cluster_cannot_hold_do_not_hide_others() -> None:
    """However many there are, and whatever their priority is; a few are looked at in each cycle."""
    large = {
        "podgroups": [
            ["ns", f"x{n:02}", "default", 1, "Inqueue", {"prio": "high"}] for n in range(20)
        ],
        "pod_sets": [
            {"pg": f"x{n:02}", "count": 1, "cpu": 4, "selector": {"none": "such"}}
            for n in range(20)
        ],
    }
    scenario = scenario_of(busy("n2", "n3"), large, gang("fits", 3, 8), classes={"high": 100})
    cycles(scenario, 2)
    assert not target_of(scenario)
    assert len(scenario.state.too_large) == 16, "eight in each cycle"
    assert not scenario.state.is_settled(scenario.config, NOW + 2)
    scenario.cycle(NOW + 2)
    assert target_of(scenario) == "ns/fits"


def test_a_gang_that_the_cluster_can_hold_since_a_node_came_is_chosen() -> None:
    scenario = scenario_of(busy("n2", "n3"), gang("large", 1, 32))
    cycles(scenario, 2)
    assert scenario.state.too_large == {"ns/large"}
    scenario.state.set_node(node(["n4", 32, "64Gi"]))
    scenario.state.set_pod(pod(["ns", "other", "n4", "Running", 8, 0, ""]))
    cycles(scenario, 1, NOW + 2)
    assert target_of(scenario) == "ns/large"
    assert not scenario.state.too_large


def test_nothing_is_kept_of_gangs_that_are_gone() -> None:
    scenario = scenario_of(busy("n2", "n3"), gang("large", 1, 32), gang("target", 3, 8))
    cycles(scenario, 2)
    assert target_of(scenario) == "ns/target"
    for name, size in (("large", 1), ("target", 3)):
        for number in range(size):
            scenario.state.remove_pod("ns", f"{name}-{number}")
        scenario.state.remove_pod_group("ns", name)
    cycles(scenario, 2, NOW + 2)
    assert not target_of(scenario)
    assert not scenario.state.too_large
    assert "ns/target" not in scenario.state.jobs


def test_a_target_of_an_earlier_process_counts_at_the_gate_from_the_first_cycle_on() -> None:
    """Action enqueue comes before elect."""
    needs = {"minRes": {"cpu": 20}, "created": "2021-01-01T00:00:00Z"}
    large = _with_reserved(["ns", "large", "default", 1, "Pending", needs], ["n1", "n2"])
    older = {"minRes": {"cpu": 8}, "created": "2020-01-01T00:00:00Z"}
    scenario = scenario_of(
        config=config_text([[*PLUGINS, "overcommit"]], ["enqueue", "elect", "allocate", "reserve"]),
        podgroups=[large, ["ns", "new", "default", 1, "Pending", older]],
        pods=[["ns", "busy", "n2", "Running", 8, 0, ""]],
    )
    scenario.cycle(NOW)
    assert scenario.phase("ns/new") == "Pending"
    assert scenario.phase("ns/large") == "Inqueue"


def test_gangs_that_cannot_be_chosen_do_not_hide_others_when_the_time_is_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cycle looks at as many as its budget allows; the next one goes on with the others. The clock counts how often it is read."""
    looked: list[str] = []

    def noted(session: Any, job: Any) -> str:
        looked.append(job.name)
        return why_no_target(session, job)

    monkeypatch.setattr("pumice.scheduler.actions.elect.why_no_target", noted)
    lacking = [gang(f"a{each:03}", 0, 1, minimum=2, prio="high") for each in range(100)]
    scenario = scenario_of(busy("n1", "n2", "n3"), *lacking, gang("z", 1, 16), classes={"high": 10})
    budget = Budget(80, count().__next__)
    turns: list[int] = []
    while not target_of(scenario):
        before = len(looked)
        scenario.cycle(budget=budget)
        turns.append(len(looked) - before)
    assert target_of(scenario) == "ns/z"
    assert len(looked) <= 101 + len(turns)
    assert 1 < len(turns) < 30
    assert max(turns) < 30
    assert not scenario.state.passed_over
