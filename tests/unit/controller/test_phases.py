"""The state machine, case by case and as a whole."""

from typing import Any

import pytest

from pumice.api.jobs import ACTIONS, PHASES
from pumice.controller.jobs.phases import (
    ANY,
    FINISHED,
    SOFT,
    TABLE,
    TARGETED,
    Facts,
    NextPhase,
    TaskFacts,
    Work,
    judge,
    known,
    row,
)
from tests.kit.tables import table

CASES = table("controller/state-machine")


def _facts(case: dict[str, Any]) -> Facts:
    tasks = tuple(TaskFacts(**({"counted": True} | task)) for task in case.get("tasks", ()))
    return Facts(**case.get("facts", {}), tasks=tasks)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_step(case: dict[str, Any]) -> None:
    found, phase = row(case["phase"], case["action"]), known(case["phase"])
    verdict = judge(found.rule, phase, _facts(case))
    assert (found.to or verdict.phase) == case["to"]
    assert found.retry is case.get("retry", False)
    assert case.get("message", "") in verdict.message


def test_every_phase_answers_every_action() -> None:
    assert {phase for phase, action in TABLE if action == ANY} == set(PHASES)
    assert {to for each in TABLE.values() if (to := each.to)} <= set(PHASES)


def test_only_actions_that_users_may_name_have_rows() -> None:
    assert {action for _, action in TABLE} - {ANY} <= set(ACTIONS)


def test_a_row_leads_somewhere_at_once_or_by_a_rule_never_both() -> None:
    for each in TABLE.values():
        assert not (each.to and each.rule is not NextPhase.STAY)


def test_a_retry_is_paid_exactly_on_the_way_into_a_restart_of_the_whole_job() -> None:
    paid = {(phase, action) for (phase, action), each in TABLE.items() if each.retry}
    assert paid == {("Pending", "RestartJob"), ("Running", "RestartJob")}


@pytest.mark.parametrize("phase", sorted(FINISHED))
@pytest.mark.parametrize("action", ACTIONS)
def test_finished_jobs_stay_and_keep_finished_pods(phase: str, action: str) -> None:
    found = row(phase, action)
    assert (found.work, found.retain, found.to) == (Work.KILL, SOFT, "")
    assert judge(found.rule, phase, Facts(running=1)).phase == phase


@pytest.mark.parametrize("phase", ["Pending", "Running"])
@pytest.mark.parametrize("action", sorted(TARGETED))
def test_targeted_restarts_spare_the_rest(phase: str, action: str) -> None:
    assert row(phase, action).work is Work.KILL_TARGET


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_restarting_a_job_keeps_no_pod(phase: str) -> None:
    assert row(phase, "RestartJob").retain == frozenset()


def test_three_retries_are_three_runs() -> None:
    """The third failure ends the Job: the first run and two restarts."""
    assert (
        judge(NextPhase.RESTART, "Restarting", Facts(retry_count=2, max_retry=3)).phase == "Pending"
    )
    assert (
        judge(NextPhase.RESTART, "Restarting", Facts(retry_count=3, max_retry=3)).phase == "Failed"
    )
