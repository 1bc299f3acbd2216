"""Phases and conditions of PodGroups."""

from typing import Any

import pytest

from pumice.api.podgroups import PodGroupCondition, PodGroupStatus
from pumice.scheduler.cycle.phases import (
    SCHEDULED_REASON,
    is_releasing,
    next_conditions,
    next_phase,
    with_counters,
)
from pumice.scheduler.results import Reason
from tests.unit.scheduler.gangs import gang
from tests.unit.scheduler.scenarios import case_id, load_cases

FULL = Reason("NotEnoughResources", "no room")


@pytest.mark.parametrize("case", load_cases("podgroup_phases.yaml"), ids=case_id)
def test_phase(case: dict[str, Any]) -> None:
    job = gang(case["min"], case["tasks"], phase=case["phase"])
    phase = next_phase(job, case["phase"], unschedulable=case.get("unschedulable", False))
    assert phase == case["expect"]


@pytest.mark.parametrize("case", load_cases("gangs.yaml", "releasing"), ids=case_id)
def test_releasing_shortcut(case: dict[str, Any]) -> None:
    assert is_releasing(gang(case["min"], case["tasks"])) is case["expect"]


def _conditions(
    before: list[PodGroupCondition], finding: Reason | None, now: float = 0.0
) -> list[PodGroupCondition]:
    return next_conditions(before, finding, cycle="cycle-7", now=now)


def test_a_finding_becomes_a_condition() -> None:
    assert _conditions([], FULL) == [
        PodGroupCondition(
            type="Unschedulable",
            status="True",
            transition_id="cycle-7",
            last_transition_time="1970-01-01T00:00:00Z",
            reason="NotEnoughResources",
            message="no room",
        )
    ]


def test_an_unchanged_condition_keeps_its_time_and_id() -> None:
    before = _conditions([], FULL)
    assert next_conditions(before, FULL, cycle="cycle-8", now=99.0) == before


def test_a_new_message_is_a_new_condition() -> None:
    before = _conditions([], FULL)
    (after,) = _conditions(before, Reason("NotEnoughResources", "still no room"), now=60.0)
    assert (after.message, after.last_transition_time) == ("still no room", "1970-01-01T00:01:00Z")


def test_only_one_of_the_two_conditions_is_true() -> None:
    """A gang that fits at last is not called unschedulable beside it, and the other way round."""
    scheduled = _conditions(_conditions([], FULL), None, now=60.0)
    assert [(each.type, each.status) for each in scheduled] == [
        ("Unschedulable", "False"),
        ("Scheduled", "True"),
    ]
    assert scheduled[1].reason == SCHEDULED_REASON
    again = _conditions(scheduled, FULL)
    assert [(each.type, each.status) for each in again] == [
        ("Unschedulable", "True"),
        ("Scheduled", "False"),
    ]


def test_conditions_of_others_are_kept() -> None:
    other = PodGroupCondition(type="Quota", status="True", message="theirs")
    assert _conditions([other], None)[0] == other


def test_counters() -> None:
    job = gang(1, ["Running@a", "Running@b", "Succeeded@a", "Failed@c", "Pending"])
    status = with_counters(job, "Running", [])
    assert (status.running, status.succeeded, status.failed) == (2, 1, 1)
    assert (status.phase, status.conditions) == ("Running", [])


def test_no_conditions_are_spelled_as_they_were() -> None:
    """An empty list is not a change, or two writers would never come to rest."""
    job = gang(1)
    job.status = PodGroupStatus(phase="Inqueue", conditions=[])
    assert with_counters(job, "Inqueue", []) == job.status
