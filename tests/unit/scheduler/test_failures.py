"""A plugin that fails on one gang costs the others nothing, and leaves nothing tentative behind."""

from collections.abc import Set
from typing import Any

import pytest

from pumice.scheduler import builtin_registry, load_config, run_cycle
from pumice.scheduler.model.axis import Floats
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.tasks import SchedulingStatus
from pumice.scheduler.points import PodClass
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import LastingPlugin, PluginSpec
from pumice.scheduler.view import SessionView
from tests.kit.faulty import CONFIG, POINTS, WHOLE, Fault, faulty_config
from tests.unit.scheduler.answers import queue_rules
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.scenarios import NOW, Scenario, pod_group

CASE: dict[str, Any] = {
    "nodes": [["n1", 4, "8Gi"], ["n2", 4, "8Gi"]],
    "podgroups": [
        [
            "ns",
            name,
            "default",
            2,
            "Pending",
            {"minRes": {"cpu": "1"}, "created": f"2024-01-0{number}T00:00:00Z"},
        ]
        for number, name in enumerate(("a", "bad", "c"), 1)
    ],
    "pod_sets": [
        {"pg": "a", "count": 2},
        {"pg": "bad", "count": 2, "cpu": 2},
        {"pg": "c", "count": 2},
    ],
}
GOOD = ["ns/a-0", "ns/a-1", "ns/c-0", "ns/c-1"]

# ReclaimRequest only about gangs that do not fit.
RARE = {"job_pipelined", "on_deallocate"}


def _case(point: str) -> dict[str, Any]:
    if point not in RARE:
        return CASE
    sets = [
        {**each, "cpu": 2, "count": 5} if each["pg"] == "bad" else each for each in CASE["pod_sets"]
    ]
    groups = [[*row[:3], 5 if row[1] == "bad" else 2, *row[4:]] for row in CASE["podgroups"]]
    return {**CASE, "pod_sets": sets, "podgroups": groups}


@pytest.mark.parametrize("point", POINTS)
def test_a_failure_on_one_gang_leaves_the_others_alone(point: str) -> None:
    fault = Fault(point, "bad")
    scenario = Scenario(_case(point), faulty_config(fault))
    bound: dict[str, str] = {}
    for _ in range(3):
        result = run_cycle(scenario.state, scenario.config, NOW)
        assert result.error is None
        assert set(result.errors) <= {"ns/bad"}
        bound |= result.binds
    assert sorted(bound) == GOOD
    reason = result.pending["ns/bad"]
    assert reason.reason == "SchedulingError"
    assert "ZeroDivisionError: fault at" in reason.message
    assert scenario.state.jobs["ns/bad"].counts[SchedulingStatus.PENDING] == len(
        scenario.state.jobs["ns/bad"].tasks
    )
    used = {name: row["used"].get("cpu", 0) for name, row in dump(scenario.state)["nodes"].items()}
    assert sum(used.values()) == 4000


class TwoScores(LastingPlugin):
    """A plugin with two scores, of which the second, which decides, raises at one of its questions."""

    def __init__(self, fails_at: int) -> None:
        self.left = fails_at

    def open(self, _session: SessionView, register: Registrar) -> None:
        register.node_score(lambda _, rows: -rows.used[:, 0] / 1000, scope="row", amounts_only=True)
        register.node_score(self._most_used, scope="row", amounts_only=True)

    def _most_used(self, _pods: PodClass, rows: Rows) -> Floats:
        self.left -= 1
        if not self.left:
            raise ZeroDivisionError("oh")
        return rows.used[:, 0] / 10


CYCLES = (
    {"1-small": 1, "2-large": 4, "3-small": 1, "4-small": 1},
    {"5-large": 4, "6-small": 1, "7-small": 1, "8-large": 4},
    {"9-small": 1},
)
"""Gangs of two pods, with the CPUs of one, by the cycle that they arrive before."""


@pytest.mark.parametrize("question", range(1, 10))
def test_scores_that_were_asked_for_in_part_place_no_other_gang(question: int) -> None:
    """Equal gangs share scores, in later cycles, too, and each is placed as if the one that failed were not there."""

    def binds(fails_at: int, without: Set[str]) -> tuple[dict[str, str], set[str]]:
        spec = PluginSpec(name="faulty", summary="Fails.", build=lambda _: TwoScores(fails_at))
        config = load_config(CONFIG, builtin_registry().extended(plugins=[spec]))
        scenario = Scenario({"nodes": [[f"n{n}", 5, "16Gi"] for n in range(9)]}, config)
        bound: dict[str, str] = {}
        failed: set[str] = set()
        for gangs in CYCLES:
            for name, cpu in gangs.items():
                if name not in without:
                    scenario.state.set_pod_group(pod_group(["ns", name, "default", 2, "Inqueue"]))
                    for pod in range(2):
                        scenario.add_pod(["ns", f"{name}-{pod}", "", "Pending", cpu, "1Gi", name])
            result = run_cycle(scenario.state, config, NOW)
            bound |= result.binds
            failed |= {key.removeprefix("ns/") for key in result.errors}
        return bound, failed

    found, failed = binds(question, frozenset())
    assert len(failed) == 1
    assert found == binds(0, failed)[0]


@pytest.mark.parametrize("is_before", [False, True])
@pytest.mark.parametrize(
    ("point", "after"),
    [("task_score", 1), ("on_allocate", 0), ("on_allocate", 1), ("on_deallocate", 0)],
)
def test_what_other_plugins_counted_of_a_gang_that_failed_counts_for_none(
    point: str, after: int, is_before: bool
) -> None:
    """Its queue may use 3 CPUs of a group of nodes: as many as the good gang needs."""
    fault = Fault(point, "bad", after=after)
    spec = PluginSpec(name="faulty", summary="Fails.", build=lambda _: fault)
    names = ("faulty", "nodegroup") if is_before else ("nodegroup", "faulty")
    plugins = "".join(f"\n  - name: {name}" for name in ("priority", "gang", *names))
    text = f'actions: "enqueue, allocate"\ntiers:\n- plugins:{plugins}\n'
    config = load_config(text, builtin_registry().extended(plugins=[spec]))
    limits = {"volcano.sh/nodegroup-resource-limits": '{"group1": {"cpu": "3"}}'}
    wants = queue_rules(aff_req=["group1"])
    case = {
        "nodes": [["n1", 9, "16Gi", {"labels": {"volcano.sh/nodegroup-name": "group1"}}]],
        "queues": [["q", {"affinity": wants, "annotations": limits}]],
        "podgroups": [["ns", "bad", "q", 4, "Inqueue"], ["ns", "good", "q", 3, "Inqueue"]],
        "pod_sets": [{"pg": "bad", "count": 4}, {"pg": "good", "count": 3}],
    }
    result = run_cycle(Scenario(case, config).state, config, NOW)
    assert list(result.errors) == ["ns/bad"]
    assert sorted(result.binds) == ["ns/good-0", "ns/good-1", "ns/good-2"]


@pytest.mark.parametrize("point", [point for point in POINTS if point not in RARE])
def test_a_gang_that_is_released_is_tried_again(point: str) -> None:
    fault = Fault(point, "bad")
    scenario = Scenario(CASE, faulty_config(fault))
    while not run_cycle(scenario.state, scenario.config, NOW).errors:
        pass
    fault.gangs.clear()
    assert "ns/bad-0" not in run_cycle(scenario.state, scenario.config, NOW).binds
    assert scenario.state.gangs.release("ns/bad")
    bound = dict(run_cycle(scenario.state, scenario.config, NOW).binds)
    bound |= run_cycle(scenario.state, scenario.config, NOW).binds
    assert {"ns/bad-0", "ns/bad-1"} <= bound.keys()


def test_a_gang_whose_group_was_changed_is_tried_again_at_once() -> None:
    fault = Fault("job_valid", "bad")
    scenario = Scenario(CASE, faulty_config(fault))
    run_cycle(scenario.state, scenario.config, NOW)
    fault.gangs.clear()
    row = [*CASE["podgroups"][1][:5], {"annotations": {"fixed": "yes"}}]
    scenario.state.set_pod_group(pod_group(row))
    assert "ns/bad" not in scenario.state.gangs.quarantined


@pytest.mark.parametrize("point", [*WHOLE, "open"])
def test_another_failure_ends_the_cycle_and_the_next_one_goes_on(point: str) -> None:
    """There are two queues, because the order of one is not asked for."""
    fault = Fault(point, "any")
    groups = [
        [*row[:2], "other" if row[1] == "c" else row[2], *row[3:]] for row in CASE["podgroups"]
    ]
    case = CASE | {"queues": [["other"]], "podgroups": groups}
    scenario = Scenario(case, faulty_config(fault))
    before = dump(scenario.state)
    result = run_cycle(scenario.state, scenario.config, NOW)
    assert isinstance(result.error, ZeroDivisionError)
    assert (result.errors, result.binds, result.pod_groups) == ({}, {}, {})
    assert dump(scenario.state) == before
    fault.gangs.clear()
    assert len(run_cycle(scenario.state, scenario.config, NOW).binds) == 6


def test_a_failure_on_a_gang_that_waits_for_nothing_leaves_the_others_alone() -> None:
    """It is asked about when what it has become is written."""
    fault = Fault("job_ready")
    scenario = Scenario(CASE, faulty_config(fault))
    scenario.start(scenario.cycle())
    fault.gangs.add("bad")
    result = run_cycle(scenario.state, scenario.config, NOW)
    assert result.error is None
    assert list(result.errors) == ["ns/bad"]
    assert {result.pod_groups[key].running for key in ("ns/a", "ns/c")} == {2}


def test_what_was_committed_before_a_failed_cycle_counts() -> None:
    """Its statuses follow from the next cycle."""
    fault = Fault("overused", "any", after=1)
    scenario = Scenario(CASE, faulty_config(fault))
    result = run_cycle(scenario.state, scenario.config, NOW)
    assert result.error is not None
    assert sorted(result.binds) == ["ns/a-0", "ns/a-1"]
    assert scenario.state.tasks["ns/a-0"].status is SchedulingStatus.BINDING
    fault.gangs.clear()
    again = run_cycle(scenario.state, scenario.config, NOW)
    assert sorted(again.binds) == ["ns/bad-0", "ns/bad-1", "ns/c-0", "ns/c-1"]
    assert set(again.pod_groups) == {"ns/a", "ns/bad", "ns/c"}


def test_what_is_forgotten_leaves_the_quarantine() -> None:
    scenario = Scenario(CASE, faulty_config(Fault("job_valid", "bad")))
    run_cycle(scenario.state, scenario.config, NOW)
    scenario.state.remove_pod_group("ns", "bad")
    scenario.state.remove_pod("ns", "bad-0")
    scenario.state.remove_pod("ns", "bad-1")
    assert scenario.state.gangs.quarantined == {}
    assert not scenario.state.gangs.release("ns/bad")
