"""All or nothing, counted."""

from typing import Any

import pytest

from pumice.scheduler.plugins.gang import is_pipelined, is_ready, is_starving, why_invalid
from tests.unit.scheduler.gangs import gang
from tests.unit.scheduler.scenarios import case_id, load_cases


@pytest.mark.parametrize("case", load_cases("gangs.yaml", "counters"), ids=case_id)
def test_counters(case: dict[str, Any]) -> None:
    job = gang(case["min"], case["tasks"])
    assert {
        "pending_empty": job.pending_empty,
        "ready": is_ready(job),
        "pipelined": is_pipelined(job),
        "starving": is_starving(job),
    } == case["expect"]


@pytest.mark.parametrize("case", load_cases("gangs.yaml", "valid"), ids=case_id)
def test_why_invalid(case: dict[str, Any]) -> None:
    reason = why_invalid(gang(case["min"], roles=case["roles"], min_task=case.get("minTask")))
    assert (reason.reason if reason else None) == case["expect"]
    if reason is not None:
        assert reason.message == case["message"]


def test_a_job_is_not_ready_before_each_task_has_its_minimum() -> None:
    job = gang(2, ["Running@a", "Running@a"], roles={"ps": 1}, min_task={"ps": 1})
    assert not is_ready(job)
    assert is_ready(gang(2, ["Running@a", "Running@a"], min_task={"": 2}))


def test_pods_without_requests_count_for_their_task_when_they_have_a_place() -> None:
    waits = gang(2, ["BE Pending", "Running@a"], min_task={"": 2})
    assert not is_ready(waits)
    assert not is_pipelined(waits)
    assert is_pipelined(gang(2, ["BE Pipelined@a", "Running@a"], min_task={"": 2}))
    assert is_ready(gang(2, ["BE Running@a", "Running@a"], min_task={"": 2}))
