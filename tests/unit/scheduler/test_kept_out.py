"""Gangs that plugins keep out of their queue enter as soon as the plugins agree."""

from typing import Any

import pytest

from pumice.api.meta import ObjectMeta, format_time
from pumice.api.nodes import PriorityClass
from pumice.scheduler import builtin_registry, load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.report_times import ReportDelays
from pumice.scheduler.points import Vote, any_gang
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import RENEWALS_PER_CYCLE, Cause
from tests.unit.scheduler.scenarios import (
    NOW,
    Scenario,
    config_text,
    node,
    pod_group,
    queue,
    with_plugins,
)

Raw = dict[str, Any]

GANGS = 50
DELAYS = ReportDelays(numbers=30.0)
SHARING = pytest.mark.parametrize("plugin", ["overcommit", "proportion", "capacity"])


class Counting:
    """Counts the gangs about which it is asked; one object serves every session.

    Attributes:
        by: What it registers of gangs that decides about its vote; nothing while this is empty.
    """

    def __init__(self) -> None:
        self.by: dict[str, Any] = {}
        self.asked: list[str] = []
        self.vote = Vote.ABSTAIN

    def build(self, _arguments: Arguments) -> "Counting":
        return self

    def open(self, _session: SessionView, register: Registrar) -> None:
        register.job_enqueueable(self._vote, **self.by)

    def _vote(self, job: JobInfo) -> Vote:
        self.asked.append(job.key)
        return self.vote


def _cluster(plugin: str, counting: Counting, *, first: bool = False) -> Scenario:
    """A full node of 4 cpus, and gangs that need 2 to enter queue `team`; the counting plugin may have a tier of its own."""
    spec = PluginSpec("counting", "A test's plugin.", counting.build)
    tiers = [["gang", "counting"], [plugin]] if first else [["gang"], ["counting", plugin]]
    config = config_text([*tiers, ["predicates"]])
    scenario = Scenario(
        {
            "nodes": [["n", 4, "64Gi"]],
            "queues": [["team"]],
            "podgroups": [
                *(
                    ["ns", f"runs-{number}", "team", 1, "Running", {"minRes": {"cpu": 1}}]
                    for number in range(4)
                ),
                *(
                    ["ns", f"g{number:02}", "team", 1, "Pending", {"minRes": {"cpu": 2}}]
                    for number in range(GANGS)
                ),
            ],
            "pods": [["ns", f"r-{n}", "n", "Running", 1, 0, f"runs-{n}"] for n in range(4)],
        },
        load_config(config, with_plugins(builtin_registry(), spec)),
        delays=DELAYS,
    )
    scenario.cycle()
    assert len(counting.asked) == GANGS
    counting.asked.clear()
    return scenario


def _ends(scenario: Scenario, number: int) -> None:
    """One of the gangs that run, each with 1 cpu, is removed."""
    scenario.state.remove_pod("ns", f"r-{number}")
    scenario.state.remove_pod_group("ns", f"runs-{number}")


def _entered(scenario: Scenario) -> list[str]:
    statuses = scenario.state.gangs.statuses
    return sorted(key for key, status in statuses.items() if status.phase == "Inqueue")


@SHARING
def test_the_first_of_them_enters_once_there_is_room_for_it(plugin: str) -> None:
    counting = Counting()
    scenario = _cluster(plugin, counting)
    _ends(scenario, 0)
    _ends(scenario, 1)
    scenario.cycle()
    assert _entered(scenario) == ["ns/g00"]


@SHARING
def test_gangs_that_are_alike_share_an_answer_where_each_plugin_says_so(plugin: str) -> None:
    counting = Counting()
    scenario = _cluster(plugin, counting)
    counting.by = {"by": any_gang, "wakes": Cause.SHARES}
    scenario.state.parked.wake_all()  # what they are alike in is known from now on
    _ends(scenario, 0)
    scenario.cycle()
    assert len(counting.asked) == 1
    counting.asked.clear()
    _ends(scenario, 1)
    scenario.cycle()
    assert len(counting.asked) == 3, (
        "whether any may enter, for the first, and for all others once it has entered"
    )
    assert _entered(scenario) == ["ns/g00"]


@SHARING
@pytest.mark.parametrize("first", [False, True], ids=["beside", "in an earlier tier"])
def test_gangs_that_need_more_than_any_that_may_enter_are_not_asked_about(
    plugin: str, first: bool
) -> None:
    """Unless a plugin is asked first that may permit them."""
    counting = Counting()
    counting.by = {"wakes": Cause.SHARES}
    scenario = _cluster(plugin, counting, first=first)
    _ends(scenario, 0)
    scenario.cycle()
    assert len(counting.asked) == (GANGS if first else RENEWALS_PER_CYCLE)
    assert _entered(scenario) == []
    _ends(scenario, 1)
    scenario.cycle()
    assert _entered(scenario) == ["ns/g00"]


def test_a_gang_is_not_like_others_any_more_once_its_priority_is_another_one() -> None:
    names = ["high"] * (RENEWALS_PER_CYCLE + 1) + ["low"]
    groups = [
        ["ns", f"g{place}", "default", 1, "Pending", {"minRes": {"cpu": 3}, "prio": name}]
        for place, name in enumerate(names)
    ]
    scenario = Scenario(
        {
            "classes": {"high": 5, "low": 5, "mid": 6},
            "nodes": [["n", 4, "64Gi"]],
            "podgroups": [
                ["ns", "runs", "default", 1, "Running", {"prio": "mid", "minRes": {"cpu": 4}}],
                *groups,
            ],
            "pods": [["ns", f"r-{n}", "n", "Running", 1, 0, "runs", {"prio": 6}] for n in range(4)],
        },
        config_text([["priority", "gang"], ["overcommit"]], ["enqueue", "allocate", "preempt"]),
        delays=DELAYS,
    )
    scenario.cycle()
    assert _entered(scenario) == []
    scenario.state.set_priority_class(PriorityClass(metadata=ObjectMeta(name="low"), value=7))
    scenario.cycle()
    assert _entered(scenario) == [f"ns/g{len(groups) - 1}"]


@SHARING
def test_a_node_makes_room(plugin: str) -> None:
    scenario = _cluster(plugin, Counting())
    scenario.state.set_node(node(["m", 2, "8Gi"]))
    scenario.cycle()
    assert _entered(scenario) == ["ns/g00"]


@SHARING
def test_a_gang_that_now_needs_less_is_asked_about(plugin: str) -> None:
    scenario = _cluster(plugin, Counting())
    _ends(scenario, 0)
    scenario.cycle()
    smaller = ["ns", "g07", "team", 1, "Pending", {"minRes": {"cpu": 1}}]
    scenario.state.set_pod_group(pod_group(smaller))
    scenario.cycle()
    assert _entered(scenario) == ["ns/g07"]


@SHARING
def test_the_first_gang_of_a_fifo_queue_is_always_asked_about(plugin: str) -> None:
    """Those behind it wait for it, even if there is room for them."""
    counting = Counting()
    scenario = _cluster(plugin, counting)
    scenario.state.set_queue(queue(["team", {"dequeueStrategy": "fifo"}]))
    scenario.cycle()
    assert counting.asked[0] == "ns/g00"
    assert _entered(scenario) == []


@SHARING
def test_a_permission_of_an_earlier_tier_is_asked_for_every_time(plugin: str) -> None:
    counting = Counting()
    scenario = _cluster(plugin, counting, first=True)
    counting.vote = Vote.PERMIT
    scenario.add_pod(["ns", "other", "", "Pending", "100m", "1Mi", ""])
    scenario.cycle()
    assert len(_entered(scenario)) == GANGS


@SHARING
@pytest.mark.parametrize("first", ["less important", "more important"])
@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_what_may_be_evicted_for_a_gang_is_room_for_it(
    plugin: str, first: str, action: str
) -> None:
    """A gang that is as important as what runs does not enter, whichever of the two is looked at first."""
    names = {"less important": ("a", "b"), "more important": ("b", "a")}[first]
    options = [{"minRes": {"cpu": 5}, "prio": each} for each in ("low", "high")]
    waiting = zip(names, options, strict=True)
    scenario = Scenario(
        {
            "classes": {"low": 1, "high": 2},
            "nodes": [["n", 4, "64Gi"]],
            "podgroups": [
                ["ns", "runs", "default", 1, "Running", {"prio": "low", "minRes": {"cpu": 4}}],
                *(["ns", name, "default", 1, "Pending", each] for name, each in waiting),
            ],
            "pods": [["ns", f"r-{n}", "n", "Running", 1, 0, "runs", {"prio": 1}] for n in range(4)],
        },
        config_text([["priority", "gang"], [plugin]], ["enqueue", "allocate", action]),
        delays=DELAYS,
    )
    scenario.cycle()
    assert _entered(scenario) == []
    scenario.state.set_node(node(["m", 1, "8Gi"]))
    scenario.cycle()
    assert _entered(scenario) == [f"ns/{names[1]}"]


@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_what_may_be_taken_back_for_a_gang_is_room_for_it(plugin: str, action: str) -> None:
    def ours(part: int) -> Raw:
        return {"weight": part, "deserved": {"cpu": part}}

    needs = {"cpu": 3, "memory": "1Gi"}
    scenario = Scenario(
        {
            "nodes": [["n", 4, "4Gi"]],
            "queues": [["theirs"], ["ours", ours(1)]],
            "podgroups": [
                ["ns", "runs", "theirs", 1, "Running"],
                ["ns", "g", "ours", 1, "Pending", {"minRes": needs}],
            ],
            "pods": [["ns", f"r-{n}", "n", "Running", 1, "1Gi", "runs"] for n in range(4)],
        },
        config_text([["gang"], ["overcommit", plugin]], ["enqueue", "allocate", action]),
        delays=DELAYS,
    )
    scenario.cycle()
    assert _entered(scenario) == []
    scenario.state.set_queue(queue(["ours", ours(3)]))
    scenario.cycle()
    assert _entered(scenario) == ["ns/g"]


def test_a_gang_whose_waiting_time_ends_is_asked_about() -> None:
    created = format_time(NOW)
    groups = [
        ["ns", "g", "default", 1, "Pending", {"minRes": {"cpu": 8}, "created": created}],
    ]
    tiers: list[list[Raw | str]] = [
        ["gang", {"sla": None, "args": {"sla-waiting-time": "1m"}}],
        ["overcommit", "predicates"],
    ]
    scenario = Scenario(
        {"nodes": [["n", 4, "8Gi"]], "podgroups": groups}, config_text(tiers), delays=DELAYS
    )
    scenario.cycle(NOW)
    scenario.cycle(NOW + 59)
    assert _entered(scenario) == []
    scenario.cycle(NOW + 61)
    assert _entered(scenario) == ["ns/g"]


def test_overcommit_asks_once_what_gangs_with_equal_needs_may_take_back() -> None:
    asked: list[str] = []

    class Entitling:
        def open(self, _session: SessionView, register: Registrar) -> None:
            register.job_entitled(self._check)

        def _check(self, job: JobInfo) -> bool:
            asked.append(job.key)
            return False

    spec = PluginSpec("entitling", "A test's plugin.", lambda _: Entitling())
    config = config_text(
        [["gang", "entitling", "overcommit", "predicates"]], ["enqueue", "reclaim"]
    )
    gangs = [["ns", f"g{each}", "team", 1, "Pending", {"minRes": {"cpu": 8}}] for each in range(9)]
    scenario = Scenario(
        {"nodes": [["n", 4, "64Gi"]], "queues": [["team"]], "podgroups": gangs},
        load_config(config, with_plugins(builtin_registry(), spec)),
    )
    scenario.cycle()
    assert len(asked) == 1
    assert _entered(scenario) == []
