"""Gangs that their queue refused are tried again when it has room for them, and otherwise cost little."""

from typing import Any

import msgspec
import pytest

from pumice.scheduler.model.report_times import ReportDelays
from pumice.scheduler.waiting.parked import RENEWALS_PER_CYCLE
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.scenarios import NOW, Scenario, config_text, pod, pod_group, queue

EVERY = 30.0
SHARING = pytest.mark.parametrize("plugin", ["proportion", "capacity"])


def _cluster(plugin: Any, gangs: int = 50, minimum: int = 4) -> Scenario:
    """Queue `team` may have 4 cpus, of which it holds 3; gangs of 4 pods wait in it."""
    scenario = Scenario(
        {
            "nodes": [["n", 64, "64Gi"]],
            "queues": [["team", {"capability": {"cpu": 4}}]],
            "podgroups": [
                ["ns", "runs", "team", 1, "Running"],
                *(["ns", f"g{number}", "team", minimum, "Inqueue"] for number in range(gangs)),
            ],
            "pods": [["ns", f"runs-{n}", "n", "Running", 1, 0, "runs"] for n in range(3)],
            "pod_sets": [{"pg": f"g{number}", "count": 4, "memory": 0} for number in range(gangs)],
        },
        config_text([["gang", "predicates", plugin]]),
        delays=ReportDelays(numbers=EVERY),
    )
    assert scenario.cycle().decided >= gangs
    while scenario.cycle().pod_groups:
        pass
    return scenario


OTHERS = {"scheduler": "default-scheduler"}


def _stir(scenario: Scenario, number: int) -> None:
    """Something that helps no gang."""
    scenario.state.set_pod(
        pod(["ns", f"other-{number}", "n", "Running", "100m", "1Mi", "", OTHERS])
    )


@SHARING
def test_what_helps_none_of_them_is_no_reason_to_try_them(plugin: str) -> None:
    scenario = _cluster(plugin)
    _stir(scenario, 0)
    result = scenario.cycle()
    assert result.decided == 4 * RENEWALS_PER_CYCLE
    assert len(result.pending) == 50


@SHARING
def test_a_pod_that_goes_makes_room_for_too_few_of_them(plugin: str) -> None:
    scenario = _cluster(plugin)
    scenario.state.remove_pod("ns", "runs-0")
    assert scenario.cycle().decided == 4 * RENEWALS_PER_CYCLE
    scenario.state.remove_pod("ns", "runs-1")
    scenario.state.remove_pod("ns", "runs-2")
    assert sorted(scenario.cycle().binds) == [f"ns/g0-{number}" for number in range(4)]


@SHARING
def test_a_higher_limit_makes_room(plugin: str) -> None:
    scenario = _cluster(plugin, 2)
    scenario.state.set_queue(queue(["team", {"capability": {"cpu": 7}}]))
    assert len(scenario.cycle().binds) == 4


@SHARING
def test_a_pod_beyond_the_minimum_needs_room_for_itself(plugin: str) -> None:
    """Each gang has its minimum of one pod placed, as far as there is room."""
    scenario = _cluster(plugin, 2, minimum=1)
    _stir(scenario, 0)
    result = scenario.cycle()
    assert result.binds == {}
    assert result.decided == 3 + 4, "the rest of one, and all of the other"
    scenario.state.remove_pod("ns", "runs-0")
    assert len(scenario.cycle().binds) == 1


@SHARING
def test_the_numbers_in_the_reason_are_written_now_and_then(plugin: str) -> None:
    scenario = _cluster(plugin, 1)
    before = scenario.state.gangs.pending["ns/g0"].message
    assert before.endswith("queue team: 3 of 4 cpu used, 1 more allowed, needs 4")
    scenario.state.remove_pod("ns", "runs-0")
    while scenario.cycle(NOW + 1).pod_groups:
        pass
    assert _written(scenario) == before
    cycles = scenario.state.cycles
    scenario.cycle(NOW + EVERY - 1)
    assert scenario.state.cycles == cycles
    scenario.cycle(NOW + EVERY)
    assert _written(scenario).endswith("queue team: 2 of 4 cpu used, 2 more allowed, needs 4")


def _written(scenario: Scenario) -> str:
    """The message of the condition of the first gang."""
    return (scenario.state.gangs.statuses["ns/g0"].conditions or [])[0].message


@SHARING
def test_numbers_in_the_reasons_of_many_are_renewed_a_few_a_cycle(plugin: str) -> None:
    """One pod that goes changes all of them: a few gangs are tried and written in each cycle, until the last is current."""
    scenario = _cluster(plugin)
    scenario.state.remove_pod("ns", "runs-0")
    now = NOW + EVERY
    written: set[str] = set()
    while not written.issuperset(f"ns/g{number}" for number in range(50)):
        result = scenario.cycle(now)
        assert result.decided <= 3 * 4
        assert len(written.intersection(result.pod_groups)) == 0, "each once"
        assert len(result.pod_groups) <= 4, "with the gang whose pod went"
        written |= result.pod_groups.keys()
        now += 1.0
    assert all("2 of 4 cpu used" in reason.message for reason in result.pending.values())
    scenario.cycle(now)
    assert scenario.state.is_settled(scenario.config, now)


@SHARING
def test_a_gang_that_changes_is_tried_at_once(plugin: str) -> None:
    scenario = _cluster(plugin, 3)
    scenario.add_pod(["ns", "g2-9", "", "Pending", 1, 0, "g2"])
    assert "ns/g2" not in scenario.state.parked.gangs
    scenario.cycle()
    assert "ns/g2" in scenario.state.parked.gangs


@pytest.mark.parametrize("switches", [["Allocatable"], ["Overused", "Allocatable"]])
def test_whichever_check_refuses_them(switches: list[str]) -> None:
    scenario = _cluster({"proportion": switches}, 3)
    for number in range(3):
        scenario.state.remove_pod("ns", f"runs-{number}")
    assert len(scenario.cycle().binds) == 4


def test_what_is_kept_for_others_counts_as_used() -> None:
    """Of 8 cpus, 4 are kept for another queue until that uses them."""
    waits = [["ns", f"g{number}", "team", 4, "Inqueue"] for number in range(5)]
    scenario = Scenario(
        {
            "nodes": [["n", 8, "64Gi"]],
            "queues": [["team"], ["kept", {"guarantee": {"resource": {"cpu": 4}}}]],
            "podgroups": [["ns", "runs", "team", 1, "Running"], *waits],
            "pods": [["ns", "runs-0", "n", "Running", 1, 0, "runs"]],
            "pod_sets": [{"pg": f"g{number}", "count": 4, "memory": 0} for number in range(5)],
        },
        config_text([["gang", "predicates", "capacity"]]),
        delays=ReportDelays(numbers=EVERY),
    )
    while scenario.cycle().pod_groups:
        pass
    message = scenario.state.gangs.pending["ns/g0"].message
    text = "queue team: the cluster has 1 of 8 cpu used, 4 kept for guarantees of other queues, 3 more allowed, needs 4"
    assert message.endswith(text)
    _stir(scenario, 0)
    assert scenario.cycle().decided == 4 * RENEWALS_PER_CYCLE
    scenario.state.remove_pod("ns", "runs-0")
    assert sorted(scenario.cycle().binds) == [f"ns/g0-{number}" for number in range(4)]


def test_a_gang_whose_minimum_is_more_than_its_pods_ask_for_is_placed_once_there_is_room() -> None:
    """KubeRay counts the submitter of a RayJob, of which there is no pod yet."""
    scenario = Scenario(
        {
            "nodes": [["n", 4, "64Gi"]],
            "queues": [["q"]],
            "podgroups": [
                ["ns", "runs", "q", 1, "Running", {"minRes": {"cpu": 4}}],
                ["ns", "ray", "q", 3, "Pending", {"minRes": {"cpu": "3500m"}}],
            ],
            "pods": [["ns", "runs-0", "n", "Running", 4, 0, "runs"]],
            "pod_sets": [{"pg": "ray", "count": 3, "memory": 0}],
        },
        config_text([["gang"], ["overcommit", "predicates", "proportion"]]),
        delays=ReportDelays(numbers=EVERY),
    )
    assert "insufficient cpu" in scenario.cycle().pending["ns/ray"].message
    scenario.state.remove_pod("ns", "runs-0")
    assert len(scenario.cycle(NOW + 1).binds) == 3


@SHARING
def test_a_pod_that_its_queue_refuses_says_so(plugin: str) -> None:
    case = {
        "nodes": [["n", 8, "64Gi"]],
        "queues": [["team", {"capability": {"cpu": 4}}]],
        "podgroups": [["ns", "g", "team", 5, "Inqueue"]],
        "pod_sets": [{"pg": "g", "count": 5, "memory": 0}],
    }
    result = Scenario(case, config_text([["gang", "predicates", plugin]])).cycle()
    assert {key: verdict.reason for key, verdict in result.pods.items()} == {
        "ns/g-0": "Unschedulable"
    }
    assert "of 4 cpu used" in result.pods["ns/g-0"].message


def test_after_a_gang_was_scaled_its_condition_tells_the_new_need_at_once() -> None:
    def group(members: int) -> list[Any]:
        return ["ns", "ray", "q", members, "Inqueue", {"minRes": {"cpu": members}}]

    scenario = Scenario(
        {
            "nodes": [["n", 64, "64Gi"]],
            "queues": [["q", {"capability": {"cpu": 2}}]],
            "podgroups": [group(3)],
            "pod_sets": [{"pg": "ray", "count": 5, "memory": 0}],
        },
        config_text([["gang"], ["predicates", "proportion"]]),
        delays=ReportDelays(numbers=EVERY),
    )
    scenario.cycle()
    status = scenario.state.gangs.statuses["ns/ray"]
    assert "needs 3" in (status.conditions or [])[0].message
    scenario.state.set_pod_group(msgspec.structs.replace(pod_group(group(5)), status=status))
    scenario.cycle(NOW + 1)
    assert "needs 5" in (scenario.state.gangs.statuses["ns/ray"].conditions or [])[0].message


@pytest.mark.parametrize("plugin", ["proportion", "capacity", "overcommit"])
def test_a_gang_in_its_queue_without_pods_takes_no_room_after_five_minutes(plugin: str) -> None:
    """KubeRay leaves a PodGroup behind each RayJob that has ended."""
    scenario = Scenario(
        {
            "nodes": [["n", 5, "64Gi"]],
            "queues": [["q", {"capability": {"cpu": 6}}]],
            "podgroups": [
                ["ns", "left", "q", 1, "Inqueue", {"minRes": {"cpu": 4}}],
                ["ns", "next", "q", 1, "Pending", {"minRes": {"cpu": 3}}],
            ],
        },
        config_text([["gang", "predicates", plugin]], ["enqueue", "allocate"]),
        delays=ReportDelays(numbers=EVERY),
    )
    for seconds in (0, 299):
        scenario.cycle(NOW + seconds)
        assert scenario.phase("ns/next") == "Pending"
    result = scenario.cycle(NOW + 300)
    assert result.pending["ns/left"].reason == "NoPods"
    assert scenario.conditions("ns/left") == {"Unschedulable": "True"}
    scenario.cycle(NOW + 301)
    assert scenario.phase("ns/next") == "Inqueue"
    scenario.add_pod(["ns", "left-0", "", "Pending", 4, 0, "left"])
    scenario.cycle(NOW + 302)
    assert scenario.state.shares.reserved[:, 0].sum() == 3000
    assert "ns/left" not in scenario.cycle(NOW + 303).pending


def test_what_is_said_of_a_gang_holds_when_it_loses_a_pod_to_another_in_a_cycle_that_does_not_try_it() -> (
    None
):
    tiers = [["priority", "gang", "capacity"], ["predicates"]]
    scenario = Scenario(
        {
            "nodes": [["n", 64, "64Gi"]],
            "queues": [["team", {"capability": {"cpu": 4}}]],
            "classes": {"high": 100},
            "podgroups": [
                *(["ns", f"before-{n}", "team", 1, "Inqueue"] for n in range(RENEWALS_PER_CYCLE)),
                ["ns", "g", "team", 1, "Running"],
            ],
            "pods": [
                *(
                    ["ns", f"before-{n}-0", "", "Pending", 1, 0, f"before-{n}"]
                    for n in range(RENEWALS_PER_CYCLE)
                ),
                *(["ns", f"g-{n}", "n", "Running", 1, 0, "g"] for n in range(4)),
                ["ns", "g-4", "", "Pending", 1, 0, "g"],
            ],
        },
        config_text(tiers, ["enqueue", "allocate", "preempt"]),
    )
    said = scenario.cycle().pending["ns/g"]
    assert "queue team: 4 of 4 cpu used" in said.message
    scenario.state.set_pod_group(pod_group(["ns", "first", "team", 1, "Inqueue", {"prio": "high"}]))
    scenario.state.set_pod(pod(["ns", "first-0", "", "Pending", 1, 0, "first", {"prio": 100}]))
    result = scenario.cycle()
    assert len(result.evicted) == 1
    assert result.pending["ns/g"] == said


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_a_queue_that_refuses_a_pod_beyond_a_promised_minimum_says_what_it_lacks(
    plugin: str,
) -> None:
    case = {
        "nodes": [["n", 8, "64Gi"]],
        "queues": [["team", {"capability": {"cpu": 2}}]],
        "podgroups": [["ns", "g", "team", 2, "Inqueue"]],
        "pod_sets": [{"pg": "g", "count": 3}],
    }
    session = open_session(Scenario(case, config_text([["gang"], [plugin]])))
    *promised, other = session.state.jobs["ns/g"].tasks.values()
    statement = session.statement()
    for task in promised:
        statement.pipeline(task, session.state.nodes.order[0])
    refusal = session.answers.why_not_allocatable(session.state.queues["team"], other)
    assert refusal is not None
    assert "2 of 2 cpu used, 0 more allowed, needs 1" in refusal.message
