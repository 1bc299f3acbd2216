"""An event costs little while many gangs wait: only those are tried that it may help, and a few whose reasons are renewed."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from pumice.scheduler import builtin_registry, load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.report_times import ReportDelays
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.points import FilterResult, PodClass
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.results import Reason
from pumice.scheduler.session.node_rankings import NodeRankings
from pumice.scheduler.session.refused_before import RefusedBefore
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import RENEWALS_PER_CYCLE, Cause
from pumice.scheduler.waiting.wanted import Places, WantedKinds
from tests.unit.scheduler.scenarios import (
    NOW,
    Raw,
    Scenario,
    config_text,
    node,
    pod_group,
    with_plugins,
)

DELAYS = ReportDelays(numbers=30.0)

WAITING = 60
"""Gangs: many times as many as a cycle renews."""


class Counting:
    """Counts the pods and nodes about which it is asked; one object serves every session."""

    def __init__(self, **options: Any) -> None:
        self.asked: list[str] = []
        self.options = options
        self.is_closed = False

    def build(self, _arguments: Arguments) -> "Counting":
        return self

    def open(self, _session: SessionView, register: Registrar) -> None:
        def judge(_pods: PodClass, rows: Rows) -> FilterResult:
            self.asked.append("filter")
            return FilterResult(np.full(len(rows), int(self.is_closed)), ("node(s) were closed",))

        def allocatable(_queue: object, _task: object) -> Reason | None:
            self.asked.append("pod")
            return None

        register.node_filter(judge, scope="row", **self.options)
        register.allocatable(allocatable, **self.options)

    def pods(self) -> int:
        """Pods about which it was asked since the last call."""
        count = self.asked.count("pod")
        self.asked.clear()
        return count


def _crowd(counting: Counting, size: int, *, equal: bool = True, free: int = 0) -> Scenario:
    """A node that is full but for a few cpus, another one, and many gangs of pods of 1 cpu and more that wait."""
    spec = PluginSpec("counting", "A test's plugin.", counting.build)
    registry = with_plugins(builtin_registry(), spec)
    config = load_config(config_text([["gang", "predicates", "counting"]]), registry)
    names = [f"g{number:03}" for number in range(WAITING)]
    sets = [
        {"pg": name, "count": size, "cpu": "1" if equal else f"{1001 + number}m", "memory": "1Mi"}
        for number, name in enumerate(names)
    ]
    cluster = {
        "nodes": [["n", 4 + free, "64Gi"]],
        "podgroups": [["ns", name, "default", size, "Inqueue"] for name in names],
        "pods": [["ns", f"r-{number}", "n", "Running", 1, "1Mi", ""] for number in range(4)],
        "pod_sets": sets,
    }
    scenario = Scenario(cluster, config, delays=DELAYS)
    for number in range(WAITING):
        scenario.cycle(NOW - 30 * (WAITING - number))
    counting.pods()
    return scenario


OF_NODES: Raw = {"wakes": Cause.NODES}


@pytest.mark.parametrize("equal", [True, False], ids=["equal", "unequal"])
@pytest.mark.parametrize(
    "options", [OF_NODES, {}], ids=["causes are named", "a plugin names no cause"]
)
def test_gangs_for_which_there_is_too_little_room_are_not_tried(options: Raw, equal: bool) -> None:
    """But for a few, so that their reasons tell of the node as it is."""
    counting = Counting(**options)
    scenario = _crowd(counting, 3, equal=equal)
    scenario.state.remove_pod("ns", "r-0")
    result = scenario.cycle(NOW)
    assert result.binds == {}
    assert 0 < counting.pods() <= 3 * RENEWALS_PER_CYCLE
    assert len(result.pod_groups) <= RENEWALS_PER_CYCLE


def test_gangs_that_exceed_all_nodes_are_known_as_such_after_one_cycle_with_other_nodes() -> None:
    """Also those that were not tried in it, so that later searches for victims need not look at them."""
    names = [f"g{number}" for number in range(4 * RENEWALS_PER_CYCLE)]
    cluster = {
        "nodes": [["n", 2, "8Gi"]],
        "podgroups": [["ns", name, "default", 1, "Inqueue"] for name in names],
        "pods": [["ns", f"{name}-0", "", "Pending", 3, "1Gi", name] for name in names],
    }
    config = config_text([["priority", "gang"], ["predicates"]], ["allocate", "preempt"])
    scenario = Scenario(cluster, config, delays=DELAYS)
    parked = scenario.state.parked.gangs
    for second, name in enumerate("nm"):
        scenario.state.set_node(node([name, 2, "8Gi"]))
        scenario.cycle(NOW + second)
        assert [key for key, each in parked.items() if each.exceeds_all] == [*parked]
        assert len(parked) == len(names)
    scenario.state.set_node(node(["m", 3, "8Gi"]))
    assert len(scenario.cycle(NOW).binds) == 1


def test_where_reasons_are_renewed_after_a_pause_a_cycle_is_due_then() -> None:
    """As in a simulation of days, in which reasons are read at the end."""
    counting = Counting(**OF_NODES)
    scenario = _crowd(counting, 3, equal=False)
    state = scenario.state
    state.delays = ReportDelays(numbers=30.0, renewals=60.0)
    tried, due = [], []
    for name, moment in (("r-0", NOW), ("r-1", NOW + 1), ("", NOW + 60)):
        state.remove_pod("ns", name)
        assert not scenario.cycle(moment).binds
        tried.append(counting.pods() > 0)
        due.append(min(state.wakes, default=None))
    assert tried == [True, False, True]
    assert due == [None, NOW + 60, None]


def test_of_a_gang_that_exceeds_all_nodes_the_reason_lasts_ten_pauses() -> None:
    scenario = Scenario(
        {
            "nodes": [["n", 4, "8Gi"]],
            "podgroups": [["ns", "g", "default", 1, "Inqueue"]],
            "pods": [
                *(["ns", f"r-{number}", "n", "Running", 1, "1Gi", ""] for number in range(4)),
                ["ns", "g-0", "", "Pending", 9, "1Gi", "g"],
            ],
        },
        delays=ReportDelays(renewals=60.0),
    )
    free = []
    for name, after in (("", 0.0), ("r-0", 500.0), ("r-1", 700.0)):
        scenario.state.remove_pod("ns", name)
        why = scenario.cycle(NOW + after).pending["ns/g"].summary
        free.append(why.partition("largest free place is ")[2][0])
    assert free == ["0", "0", "2"]


def test_no_cycle_is_due_at_a_moment_that_is_past_for_a_reason_of_a_gang_that_is_left_out() -> None:
    """None of the reasons that are out of date could be renewed."""
    scenario = _crowd(Counting(**OF_NODES), 3)
    state = scenario.state
    state.delays = ReportDelays(numbers=30.0, renewals=60.0)
    for renewed_at in (-math.inf, NOW - 61):
        state.parked.renewed_at = renewed_at
        state.parked.stale = {"ns/other": None}
        state.settled = None
        scenario.cycle(NOW)
        assert not state.wakes


@pytest.mark.parametrize("equal", [True, False], ids=["equal", "unequal"])
def test_of_gangs_that_compete_for_one_place_those_behind_the_first_are_not_tried(
    equal: bool,
) -> None:
    counting = Counting(**OF_NODES)
    scenario = _crowd(counting, 1, equal=equal)
    scenario.state.set_node(node(["m", 2, "64Gi"]))
    result = scenario.cycle(NOW)
    assert len(result.binds) == (2 if equal else 1)
    assert counting.pods() <= 2 + RENEWALS_PER_CYCLE


def test_what_gangs_ask_for_is_noted_once_and_compared_together_with_the_nodes_that_suit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them may get the place that becomes free, and each asks for another amount."""
    names = [f"g{number}" for number in range(WAITING)]
    scenario = Scenario(
        {
            "nodes": [["n", "500m", "64Gi"]],
            "podgroups": [["ns", name, "default", 1, "Inqueue"] for name in names],
            "pod_sets": [
                {"pg": name, "count": 1, "cpu": f"{1000 + number}m"}
                for number, name in enumerate(names)
            ],
        },
        config_text([["priority", "gang"], ["predicates"]], ["allocate"]),
    )
    scenario.cycle(NOW)
    calls: list[str] = []
    for owner, name in ((WantedKinds, "use"), (NodeRankings, "fixed")):
        monkeypatch.setattr(owner, name, _counted(calls, name, getattr(owner, name)))
    scenario.state.set_node(node(["m", 2, "64Gi"]))
    assert len(scenario.cycle(NOW).binds) == 1
    assert 0 < calls.count("use") <= RENEWALS_PER_CYCLE + 1
    assert 0 < calls.count("fixed") <= WAITING // 4


def test_places_are_counted_again_only_on_nodes_that_have_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = _crowd(Counting(**OF_NODES), 3, equal=False)
    calls: list[str] = []
    for name in ("__init__", "follow"):
        monkeypatch.setattr(Places, name, _counted(calls, name, getattr(Places, name)))
    for number in range(3):
        scenario.state.remove_pod("ns", f"r-{number}")
        scenario.cycle(NOW + number)
    assert (calls.count("__init__"), calls.count("follow") > 1) == (1, True)


def _counted(calls: list[str], name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def counted(*given: Any) -> Any:
        calls.append(name)
        return call(*given)

    return counted


def test_not_every_decision_has_all_gangs_compared_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every second gang fits until another one has got a place: a look at all of them after each would cost its square."""
    gangs = 60
    scenario = Scenario(
        {
            "nodes": [["n", "500m", "64Gi"]],
            "podgroups": [["ns", f"g{n:02}", "default", 1, "Inqueue"] for n in range(gangs)],
            "pod_sets": [
                {"pg": f"g{n:02}", "count": 1, "cpu": gangs if n % 2 else 1} for n in range(gangs)
            ],
        },
        config_text([["priority", "gang"], ["predicates"]], ["allocate"]),
    )
    scenario.cycle(NOW)
    scenario.cycle(NOW)
    looks: list[int] = []
    look = RefusedBefore.at_a_glance

    def noted(known: RefusedBefore, jobs: Iterable[JobInfo]) -> set[str]:
        looks.append(1)
        return look(known, jobs)

    monkeypatch.setattr(RefusedBefore, "at_a_glance", noted)
    scenario.state.set_node(node(["n", gangs, "64Gi"]))
    assert len(scenario.cycle(NOW).binds) == gangs // 2
    assert len(looks) <= gangs.bit_length()


def test_gangs_whose_queue_is_removed_say_so_also_where_there_is_room_for_them() -> None:
    """Nodes refused them before, so they are asked about their queue only when they have their turn."""
    gangs = [f"g{number}" for number in range(2 * RENEWALS_PER_CYCLE)]
    scenario = Scenario(
        {
            "nodes": [["n", 1, "64Gi"]],
            "queues": [["team", {}]],
            "podgroups": [["ns", name, "team", 1, "Inqueue"] for name in gangs],
            "pods": [["ns", "r", "n", "Running", 1, "1Mi", ""]],
            "pod_sets": [{"pg": name, "count": 1, "memory": "1Mi"} for name in gangs],
        }
    )
    assert {each.reason for each in scenario.cycle(NOW).pending.values()} == {"NotEnoughResources"}
    scenario.state.remove_pod("ns", "r")
    scenario.state.remove_queue("team")
    result = scenario.cycle(NOW)
    assert result.error is None
    assert {each.reason for each in result.pending.values()} == {"QueueNotFound"}


def test_equal_gangs_share_a_refusal_that_is_not_for_want_of_room() -> None:
    counting = Counting(**OF_NODES)
    counting.is_closed = True
    scenario = _crowd(counting, 2, free=4)
    scenario.state.remove_pod("ns", "r-0")
    assert scenario.cycle(NOW).binds == {}
    assert counting.pods() <= 2 * (RENEWALS_PER_CYCLE + 1)
    counting.is_closed = False
    scenario.state.remove_pod("ns", "r-1")
    assert len(scenario.cycle(NOW).binds) == 6


def test_gangs_that_a_plugin_refuses_which_names_no_cause_are_tried_in_every_cycle() -> None:
    counting = Counting()
    counting.is_closed = True
    scenario = _crowd(counting, 2, free=4)
    scenario.state.set_pod_group(pod_group(["ns", "other", "default", 1, "Inqueue"]))
    assert scenario.cycle(NOW).binds == {}
    assert counting.pods() >= WAITING
    counting.is_closed = False
    scenario.state.set_pod_group(pod_group(["ns", "other", "default", 2, "Inqueue"]))
    assert len(scenario.cycle(NOW).binds) == 4


def test_an_event_of_another_kind_asks_nothing_and_writes_nothing() -> None:
    counting = Counting(**OF_NODES)
    scenario = _crowd(counting, 2)
    scenario.state.set_pod_group(pod_group(["ns", "other", "default", 1, "Inqueue"]))
    result = scenario.cycle(NOW)
    assert counting.pods() == 0
    assert set(result.pod_groups) <= {"ns/other"}
    assert len(result.pending) >= WAITING


def test_all_reasons_are_renewed_in_the_end_a_few_in_each_cycle() -> None:
    """Every gang says in the end that there are two nodes."""
    scenario = _crowd(Counting(**OF_NODES), 20, equal=False)
    scenario.state.set_node(node(["m", 1, "64Gi"]))
    now, written = NOW, 0
    for _ in range(WAITING):
        now += DELAYS.numbers
        result = scenario.cycle(now)
        assert len(result.pod_groups) <= RENEWALS_PER_CYCLE
        written += len(result.pod_groups)
    assert written == WAITING
    assert all("0/2 nodes" in reason.message for reason in result.pending.values())
    assert scenario.state.is_settled(scenario.config, now)
