"""Which gang nodes are reserved for."""

from itertools import count
from typing import Any

import pytest

from pumice.api.meta import format_time
from pumice.scheduler import Budget, load_config
from pumice.scheduler.actions.reserve import why_no_target
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.registry import builtin_registry
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from tests.unit.scheduler.reserving import (
    NODES,
    PLUGINS,
    TIMEOUT,
    busy,
    cycles,
    gang,
    reserved,
    said,
    scenario_of,
    target_of,
    with_reserved,
)
from tests.unit.scheduler.scenarios import (
    NOW,
    Raw,
    Scenario,
    case_id,
    config_text,
    load_cases,
    node,
    pod,
)


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


@pytest.mark.parametrize(("size", "cpu"), [(2, 12), (40, 1)], ids=["pods", "sum"])
def test_nothing_is_reserved_for_a_gang_that_the_cluster_cannot_hold(size: int, cpu: int) -> None:
    possible = gang("possible", 3, 8, created="2024-01-02T00:00:00Z")
    large = gang("too-large", size, cpu, created="2024-01-01T00:00:00Z")
    scenario = scenario_of(busy("n1", "n2", "n3"), large, possible)
    cycles(scenario, 3)
    assert scenario.state.reservation is not None
    assert scenario.state.reservation.gang == "ns/possible"


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
    large = with_reserved(["ns", "large", "default", 1, "Pending", needs], ["n1", "n2"])
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
