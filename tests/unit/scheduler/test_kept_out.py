"""Gangs that plugins keep out of their queue are asked about again when there may be room for them, and otherwise cost nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.meta import format_time
from pumice.scheduler import builtin_registry, load_config
from pumice.scheduler.answers import PluginAnswers
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.points import Vote
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.reports import ReportDelays
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from tests.kit.examples import examples
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
    """Counts the gangs about which it is asked; one object serves every session."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.vote = Vote.ABSTAIN

    def build(self, _arguments: Arguments) -> "Counting":
        return self

    def open(self, _session: SessionView, register: Registrar) -> None:
        register.job_enqueueable(self._vote)

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
    statuses = scenario.state.statuses
    return sorted(key for key, status in statuses.items() if status.phase == "Inqueue")


@SHARING
def test_an_event_that_helps_none_of_them_asks_no_plugin(plugin: str) -> None:
    counting = Counting()
    scenario = _cluster(plugin, counting)
    _ends(scenario, 0)
    result = scenario.cycle()
    assert counting.asked == []
    assert len(result.pending) == GANGS
    assert result.pod_groups == {}


@SHARING
def test_the_first_of_them_enters_once_there_is_room_for_it(plugin: str) -> None:
    counting = Counting()
    scenario = _cluster(plugin, counting)
    _ends(scenario, 0)
    _ends(scenario, 1)
    scenario.cycle()
    assert _entered(scenario) == ["ns/g00"]
    assert len(counting.asked) == GANGS, "for each of them there seemed to be room"
    counting.asked.clear()
    scenario.add_pod(["ns", "other", "", "Pending", "100m", "1Mi", ""])
    scenario.cycle()
    assert counting.asked == []


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
def test_three_of_them_are_asked_about_to_renew_the_numbers_in_their_reasons(plugin: str) -> None:
    counting = Counting()
    scenario = _cluster(plugin, counting)
    before = {key: reason.message for key, reason in scenario.state.pending.items()}
    _ends(scenario, 0)
    scenario.cycle(NOW + DELAYS.numbers)
    assert counting.asked == ["ns/g00", "ns/g01", "ns/g02"]
    after = {key: reason.message for key, reason in scenario.state.pending.items()}
    assert sorted(key for key in after if after[key] != before[key]) == counting.asked


@SHARING
def test_the_first_gang_of_a_fifo_queue_is_always_asked_about(plugin: str) -> None:
    """Those behind it wait for it, even if there is room for them."""
    counting = Counting()
    scenario = _cluster(plugin, counting)
    scenario.state.set_queue(queue(["team", {"dequeueStrategy": "fifo"}]))
    scenario.cycle()
    assert counting.asked == ["ns/g00"]


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
def test_what_may_be_evicted_for_a_gang_is_room_for_it(plugin: str, first: str) -> None:
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
        config_text([["priority", "gang"], [plugin]], ["enqueue", "allocate", "preempt"]),
        delays=DELAYS,
    )
    scenario.cycle()
    assert _entered(scenario) == []
    scenario.state.set_node(node(["m", 1, "8Gi"]))
    scenario.cycle()
    assert _entered(scenario) == [f"ns/{names[1]}"]


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_what_may_be_taken_back_for_a_gang_is_room_for_it(plugin: str) -> None:
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
        config_text([["gang"], ["overcommit", plugin]], ["enqueue", "allocate", "reclaim"]),
        delays=DELAYS,
    )
    scenario.cycle()
    assert _entered(scenario) == []
    scenario.state.set_queue(queue(["ours", ours(3)]))
    scenario.cycle()
    assert _entered(scenario) == ["ns/g"]


def test_gangs_that_need_what_no_node_has_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = {"cpu": 1, "example.com/gpu": 1}
    scenario = Scenario(
        {
            "nodes": [["n", 4, "8Gi"]],
            "podgroups": [["ns", "g", "default", 1, "Pending", {"minRes": needs}]],
        },
        config_text([["gang"], ["overcommit"]]),
        delays=DELAYS,
    )
    asked: list[str] = []
    answer = PluginAnswers.why_not_enqueueable

    def counted(answers: PluginAnswers, job: JobInfo) -> Any:
        asked.append(job.key)
        return answer(answers, job)

    monkeypatch.setattr(PluginAnswers, "why_not_enqueueable", counted)
    for number in range(2):
        scenario.add_pod(["ns", f"other-{number}", "", "Pending", "100m", "1Mi", ""])
        scenario.cycle()
    assert asked == ["ns/g"]
    scenario.state.set_node(node(["m", 1, "8Gi", {"resources": {"example.com/gpu": 1}}]))
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


CPUS = st.integers(1, 6)
QUEUES = st.sampled_from(["default", "a", "b"])
VOTING = st.sampled_from(
    [
        ["overcommit"],
        ["proportion"],
        ["overcommit", "proportion"],
        ["capacity"],
        ["overcommit", "capacity"],
        ["resourcequota", "overcommit", "proportion"],
    ]
)


@st.composite
def shares(draw: st.DrawFn, name: str) -> list[Any]:
    """A queue with some of its limits."""
    spec: Raw = {"weight": draw(st.integers(1, 3)), "reclaimable": draw(st.booleans())}
    for field in ("capability", "deserved"):
        if draw(st.booleans()):
            spec[field] = {"cpu": draw(CPUS)}
    if draw(st.integers(0, 3)) == 0:
        spec["guarantee"] = {"resource": {"cpu": draw(st.integers(1, 2))}}
    if draw(st.integers(0, 5)) == 0:
        spec["dequeueStrategy"] = "fifo"
    return [name, spec]


@st.composite
def gangs(draw: st.DrawFn, name: str) -> list[Any]:
    """A gang that has yet to enter its queue."""
    needs: Raw = {"cpu": draw(CPUS)}
    if draw(st.booleans()):
        needs["memory"] = f"{draw(st.integers(1, 4))}Gi"
    if draw(st.integers(0, 7)) == 0:
        needs["example.com/gpu"] = 1
    options = {"minRes": needs, "prio": draw(st.sampled_from(["low", "high"]))}
    return ["ns", name, draw(QUEUES), draw(st.integers(1, 3)), "Pending", options]


@st.composite
def histories(draw: st.DrawFn) -> tuple[Raw, str, list[tuple[str, Any]]]:
    """A cluster in which pods run and gangs want to enter, its configuration, and what happens."""
    names = [f"n{number}" for number in range(draw(st.integers(1, 3)))]
    running = [
        ["ns", "runs-default", "default", 1, "Running", {"prio": "low"}],
        ["ns", "runs-a", "a", 1, "Running", {"prio": "low"}],
    ]
    pods = [
        ["ns", f"{gang}-{place}-{number}", place, "Running", 1, "1Gi", gang, {"preemptable": True}]
        for place in names
        for number, gang in enumerate(
            draw(st.lists(st.sampled_from(["runs-default", "runs-a"]), max_size=4))
        )
    ]
    waiting = [draw(gangs(f"g{number}")) for number in range(draw(st.integers(1, 6)))]
    cluster = {
        "classes": {"low": 1, "high": 2},
        "nodes": [[name, draw(st.integers(2, 5)), "8Gi"] for name in names],
        "queues": [draw(shares(name)) for name in ("default", "a", "b")],
        "podgroups": [*running, *waiting],
        "pods": pods,
    }
    events: list[tuple[str, Any]] = [("pod gone", row) for row in pods if draw(st.booleans())]
    events += [("queue", draw(shares(draw(QUEUES)))) for _ in range(draw(st.integers(0, 2)))]
    events += [("group gone", row) for row in waiting if draw(st.integers(0, 3)) == 0]
    events += [("group", draw(gangs(f"g{number}"))) for number in draw(st.sets(st.integers(0, 8)))]
    for _ in range(draw(st.integers(0, 2))):
        options = {"resources": {"example.com/gpu": 1}} if draw(st.booleans()) else {}
        events.append(("node", [draw(st.sampled_from([*names, "n8"])), 6, "8Gi", options]))
    actions = ["enqueue", "allocate", *(["preempt", "reclaim"] if draw(st.booleans()) else [])]
    tiers = [["priority", "gang", "conformance"], [*draw(VOTING), "predicates"]]
    return cluster, config_text(tiers, actions), draw(st.permutations(events))


def _happen(scenario: Scenario, kind: str, row: Any) -> None:
    state = scenario.state
    match kind:
        case "pod gone":
            state.remove_pod(*row[:2])
        case "queue":
            state.set_queue(queue(row))
        case "group gone":
            state.remove_pod_group(*row[:2])
        case "group":
            state.set_pod_group(pod_group(row))
        case "node":
            state.set_node(node(row))


@examples(150)
@given(histories())
def test_no_gang_is_kept_out_that_might_enter(drawn: tuple[Raw, str, list[Any]]) -> None:
    """Event by event: the gangs enter that enter when plugins are asked about every gang in each cycle."""
    cluster, config, events = drawn
    thrifty, eager = (Scenario(cluster, config, delays=DELAYS) for _ in range(2))
    for event in [None, None, *events, None]:
        for each in (thrifty, eager):
            if event is not None:
                _happen(each, *event)
            each.state.settled = None
        for job in eager.state.jobs.values():
            job.asks = None
        thrifty.cycle(), eager.cycle()
        assert _entered(thrifty) == _entered(eager)
