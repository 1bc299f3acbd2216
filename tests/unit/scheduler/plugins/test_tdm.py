"""Revocable zones: who may use them and when, and who leaves them afterwards."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.meta import format_time
from pumice.scheduler import options as opening
from pumice.scheduler.config import ConfigError, load_config
from pumice.scheduler.plugins.tdm import budget
from tests.unit.scheduler.answers import ask, open_session
from tests.unit.scheduler.scenarios import NOW, Raw, Scenario, case_id, config_text, load_cases

LABEL = "volcano.sh/revocable-zone"
ANY = {"annotations": {LABEL: "*"}}
TDM: Raw = {
    "tdm": None,
    "args": {"tdm.revocable-zone.rz1": "0:00-0:00", "tdm.revocable-zone.rz2": "0:00-0:01"},
}
MINUTE, HOUR = 60, 3600


def _node(name: str, zone: str = "", cpu: int = 16) -> list[Any]:
    return [name, cpu, "64Gi", {"labels": {LABEL: zone} if zone else {}}]


def _cases(section: str) -> pytest.MarkDecorator:
    cases = load_cases("tdm.yaml", section)
    named = [case_id(case) if "title" in case else str(sorted(case.items())) for case in cases]
    return pytest.mark.parametrize("case", cases, ids=named)


def _evicted(names: list[str]) -> list[str]:
    return [f"ns/{name}" for name in names]


# -- nodes -----------------------------------------------------------------------------------


@_cases("nodes")
def test_nodes(case: Raw) -> None:
    zones = {"n1": "rz1", "n2": "rz1", "n3": "", "n4": "", "n5": "rz2"}
    options = {key: case[key] for key in ("annotations", "labels") if key in case}
    scenario = Scenario(
        {
            "nodes": [_node(name, zone) for name, zone in zones.items()],
            "podgroups": [["ns", "g", "default", 1, "Inqueue"]],
            "pods": [["ns", "g-0", "", "Pending", 1, "1Gi", "g", options]],
        },
        config_text([[TDM]]),
    )
    answers = ask(scenario, "ns/g-0")
    allowed = [name for name, may in zip(zones, answers.allowed, strict=True) if may]
    assert allowed == case["allowed"]
    assert answers.score == case["score"]


@_cases("messages")
def test_messages(case: Raw) -> None:
    pod = ["ns", "g-0", "", "Pending", 1, "1Gi", "g", {"annotations": case["annotations"]}]
    scenario = Scenario(
        {
            "nodes": [_node("n1", case["zone"])],
            "podgroups": [["ns", "g", "default", 1, "Inqueue"]],
            "pods": [pod],
        },
        config_text([["gang", TDM]]),
    )
    assert case["message"] in scenario.cycle().pending["ns/g"].message


# -- time ------------------------------------------------------------------------------------


def _evening(zone: str = "") -> Scenario:
    """A gang for a zone that is open from 23:00 to 1:00; it is 22:13:20 UTC."""
    arguments = {"tdm.revocable-zone.rz1": "23:00-1:00"} | ({"tdm.time-zone": zone} if zone else {})
    return Scenario(
        {
            "nodes": [_node("n1", "rz1")],
            "podgroups": [["ns", "g", "default", 1, "Inqueue"]],
            "pods": [["ns", "g-0", "", "Pending", 1, "1Gi", "g", ANY]],
        },
        config_text([["gang", {"tdm": None, "args": arguments}]], ["allocate", "shuffle"]),
    )


ELEVEN = NOW + 46 * MINUTE + 40


def test_a_gang_that_waits_for_a_zone_is_placed_when_it_opens() -> None:
    """Nothing else happens, and no cycle runs before."""
    scenario = _evening()
    for _ in range(3):
        assert scenario.cycle().binds == {}
    cycles = scenario.state.cycles
    assert scenario.cycle(ELEVEN - 1).binds == {}
    assert scenario.state.cycles == cycles
    assert scenario.cycle(ELEVEN).binds == {"ns/g-0": "n1"}


def test_times_of_day_are_those_of_the_configured_zone() -> None:
    """It is 23:13 in Oslo."""
    assert _evening("Europe/Oslo").cycle().binds == {"ns/g-0": "n1"}
    assert _evening("America/New_York").cycle().binds == {}


def test_pods_leave_when_the_zone_closes_and_are_not_placed_there_again() -> None:
    scenario = _evening()
    scenario.start(scenario.cycle(ELEVEN))
    for _ in range(3):
        assert scenario.cycle(ELEVEN + 2).evicted == []
    cycles = scenario.state.cycles
    scenario.cycle(ELEVEN + 2 * HOUR - 1)
    assert scenario.state.cycles == cycles
    result = scenario.cycle(ELEVEN + 2 * HOUR)
    assert result.evicted == ["ns/g-0"]
    assert [(each.reason, each.message) for each in result.events] == [
        ("Evicted", "evicted because plugin tdm chose it (shuffle)")
    ]
    scenario.start(result)
    scenario.add_pod(["ns", "g-0", "", "Pending", 1, "1Gi", "g", ANY])
    result = scenario.cycle(ELEVEN + 2 * HOUR + 1)
    assert result.binds == {}
    assert "whose window is closed" in result.pending["ns/g"].message


@pytest.mark.parametrize(("period", "seconds"), [(None, 60), ("10s", 10)])
def test_the_next_pods_of_a_gang_leave_after_the_period(period: str | None, seconds: int) -> None:
    arguments = TDM["args"] | ({"tdm.evict.period": period} if period else {})
    pods = [["ns", f"a-{number}", "n1", "Running", 1, 0, "a"] for number in range(3)]
    scenario = Scenario(
        {
            "nodes": [_node("n1", "rz2")],
            "podgroups": [["ns", "a", "default", 1, "Running"]],
            "pods": pods,
        },
        config_text([[{"tdm": None, "args": arguments}]], ["shuffle"]),
    )
    left = []
    for second in range(2 * seconds + 1):
        result = scenario.cycle(NOW + second)
        left += [(second, pod) for pod in result.evicted]
        scenario.start(result)
    assert left == [(0, "ns/a-2"), (seconds, "ns/a-1"), (2 * seconds, "ns/a-0")]


# -- victims ---------------------------------------------------------------------------------


def _groups(case: Raw, pods: list[list[Any]]) -> list[list[Any]]:
    options = {"annotations": case.get("annotations", {}), "prio": "low"}
    names = sorted({pod[0].partition("-")[0] for pod in pods})
    return [["ns", name, "default", 1, "Running", options] for name in names]


def _running(pods: list[list[Any]]) -> list[list[Any]]:
    return [
        ["ns", name, node, "Running", 1, 0, name.partition("-")[0], *options]
        for name, node, *options in pods
    ]


@_cases("leaving")
def test_leaving(case: Raw) -> None:
    scenario = Scenario(
        {
            "nodes": [_node("n1", "rz2"), _node("n2", "rz1"), _node("n3")],
            "podgroups": _groups(case, case["pods"]),
            "pods": _running(case["pods"]),
        },
        config_text([["gang", TDM]], ["shuffle"]),
    )
    assert scenario.cycle().evicted == _evicted(case["evicted"])


PODS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from(["n1", "n2", "n3"]),
        st.sampled_from(["Running", "Pending", "Succeeded"]),
        st.booleans(),
        st.integers(0, 2),
    ),
    max_size=12,
)


@given(pods=PODS, least=st.one_of(st.none(), st.integers(0, 6)), seed=st.randoms())
def test_what_leaves_is_what_a_slow_search_finds_in_whatever_order_pods_come(
    pods: list[tuple[str, str, str, bool, int]], least: int | None, seed: Random
) -> None:
    budgets = {} if least is None else {"volcano.sh/jdb-min-available": str(least)}
    rows: list[list[Any]] = [
        [f"{gang}-{number}", node, phase, {"preemptable": may, "prio": priority}]
        for number, (gang, node, phase, may, priority) in enumerate(pods)
    ]
    expected = []
    for gang in "ab":
        running = [row for row in rows if row[0][0] == gang and row[2] == "Running"]
        may_go = [row for row in running if row[1] == "n1" and row[3]["preemptable"]]
        may_go.sort(key=lambda row: (row[3]["prio"], -int(row[0][2:])))
        count = 1 if least is None else max(len(running) - least, 0)
        expected += [f"ns/{row[0]}" for row in may_go[:count]]
    seed.shuffle(rows)
    scenario = Scenario(
        {
            "nodes": [_node("n1", "rz2"), _node("n2", "rz1"), _node("n3")],
            "podgroups": _groups({"annotations": budgets}, [["a-0"], ["b-0"]]),
            "pods": [
                ["ns", name, node, phase, 1, 0, name[0], said] for name, node, phase, said in rows
            ],
        },
        config_text([[TDM]], ["shuffle"]),
    )
    assert scenario.cycle().evicted == sorted(expected)


def test_a_clock_that_was_set_back_does_not_put_evictions_off() -> None:
    pods = [["a-0", "n1"], ["a-1", "n1"]]
    scenario = Scenario(
        {"nodes": [_node("n1", "rz2")], "podgroups": _groups({}, pods), "pods": _running(pods)},
        config_text([[TDM]], ["shuffle"]),
    )
    scenario.start(scenario.cycle())
    assert scenario.cycle(NOW - HOUR).evicted == ["ns/a-0"]


def test_a_pod_whose_eviction_was_refused_does_not_take_the_turn_of_another() -> None:
    pods = [["a-0", "n1"], ["a-1", "n1"]]
    scenario = Scenario(
        {
            "nodes": [_node("n1", "rz2")],
            "podgroups": _groups({}, pods),
            "pods": _running(pods),
        },
        config_text([[TDM]], ["shuffle"]),
    )
    scenario.state.pods.spared["ns/a-1"] = (scenario.state.tasks["ns/a-1"].uid, NOW + 10)
    assert scenario.cycle().evicted == ["ns/a-0"]


@_cases("preempting")
def test_preempting(case: Raw) -> None:
    pods = case.get("pods", [["a-0", "n1"]])
    new = {"preemptable": False} | case.get("new", {})
    scenario = Scenario(
        {
            "nodes": [_node("n1", case.get("zone", ""), cpu=len(pods))],
            "classes": {"low": 1, "high": 10},
            "podgroups": [
                *_groups(case, pods),
                ["ns", "new", "default", 1, "Inqueue", {"prio": "high"}],
            ],
            "pods": [
                *_running(pods),
                ["ns", "new-0", "", "Pending", case.get("cpu", 1), 0, "new", new],
            ],
        },
        config_text([[TDM]], ["allocate", "preempt"]),
    )
    assert sorted(scenario.cycle().evicted) == _evicted(case["evicted"])


@_cases("budgets")
def test_budgets(case: Raw) -> None:
    states = ["Running"] * 7 + ["Succeeded"] + ["Pending"] * 2
    pods = [
        ["ns", f"a-{number}", "" if state == "Pending" else "n1", state, 1, 0, "a"]
        for number, state in enumerate(states)
    ]
    scenario = Scenario(
        {"nodes": [_node("n1")], "podgroups": _groups(case, [["a-0"]]), "pods": pods}
    )
    assert budget(scenario.state.jobs["ns/a"]) == case["expect"]


def test_the_owner_of_a_budget_that_cannot_be_read_is_reported() -> None:
    pods = [["a-0", "n1"]]
    scenario = Scenario(
        {
            "nodes": [_node("n1", "rz2")],
            "podgroups": _groups({"annotations": {"volcano.sh/jdb-min-available": "half"}}, pods),
            "pods": _running(pods),
        },
        config_text([[TDM]], ["shuffle"]),
    )
    told = [each for each in scenario.cycle().events if each.reason == "InvalidDisruptionBudget"]
    assert [(each.kind, each.name) for each in told] == [("PodGroup", "a")]
    assert "jdb-min-available must be a number of pods such as 2 or a percentage" in told[0].message


# -- gangs -----------------------------------------------------------------------------------


def _gangs() -> Scenario:
    may_go = {"annotations": {"volcano.sh/preemptable": "true"}}
    return Scenario(
        {
            "nodes": [_node("n1", cpu=2)],
            "podgroups": [
                ["ns", "a", "default", 1, "Inqueue", may_go | {"created": format_time(NOW - 9)}],
                ["ns", "b", "default", 1, "Inqueue", {"created": format_time(NOW)}],
            ],
            "pod_sets": [{"pg": "a", "count": 2}, {"pg": "b", "count": 2}],
        },
        config_text([[TDM]]),
    )


def test_gangs_that_may_be_evicted_come_last() -> None:
    assert _gangs().cycle().binds == {"ns/b-0": "n1", "ns/b-1": "n1"}


def test_gangs_that_may_be_evicted_do_not_starve() -> None:
    scenario = _gangs()
    session = open_session(scenario)
    starving = [key for key, job in scenario.state.jobs.items() if session.answers.is_starving(job)]
    assert starving == ["ns/b"]


@pytest.mark.parametrize(("minimum", "keeps"), [(2, True), (3, False)])
def test_a_gang_keeps_its_promises_if_they_are_enough(minimum: int, keeps: bool) -> None:
    scenario = Scenario(
        {
            "nodes": [_node("n1", cpu=2)],
            "podgroups": [["ns", "a", "default", minimum, "Inqueue"]],
            "pods": [
                ["ns", "a-9", "n1", "Running", 1, 0, "a"],
                ["ns", "old", "n1", "Running", 1, 0, "", {"deleting": True}],
            ],
            "pod_sets": [{"pg": "a", "count": 3}],
        },
        config_text([[{"gang": ["JobReady"]}, TDM]], ["allocate"]),
    )
    assert bool(scenario.cycle().pipelined) is keeps


# -- configuration ---------------------------------------------------------------------------


@_cases("refused")
def test_refused(case: Raw) -> None:
    text = config_text([["gang", {"tdm": None, "args": {case["argument"]: case["value"]}}]])
    with pytest.raises(ConfigError) as refusal:
        load_config(text)
    (error,) = refusal.value.errors
    assert error.path == f"tiers[0].plugins[1].arguments.{case['argument']}"
    assert case["message"] in error.message


def test_a_zone_without_a_name_is_ignored_with_a_warning() -> None:
    config = load_config(
        config_text([[{"tdm": None, "args": {"tdm.revocable-zone.": "1:00-2:00"}}]])
    )
    assert any("tdm.revocable-zone.: unknown argument" in each for each in config.warnings)


def test_a_session_opens_at_any_moment() -> None:
    """Around the change of clocks in Oslo, on 31 March 2024."""
    scenario = _evening("Europe/Oslo")
    scenario.state.settle()
    for hour in range(72):
        now = 1_711_756_800.0 + hour * HOUR
        session = opening.open_session(scenario.state, scenario.config, now)
        assert scenario.state.changes[-1][0] > now
        session.close()
