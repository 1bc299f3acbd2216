"""Which changes of a status may wait for a second."""

from typing import Any

import pytest

from pumice.api.kinds import POD
from pumice.controller.jobs.status import counts_only, without_status
from pumice.controller.plan import DeleteObject, PatchStatus, Plan, RecordEvent, RequeueAfter, Step

Raw = dict[str, Any]

STORED: Raw = {
    "state": {"phase": "Running", "reason": "PodsPending", "message": "2 of 3 pods do not run yet"},
    "running": 1,
    "pending": 2,
    "minAvailable": 3,
    "version": 1,
    "conditions": [{"status": "Running"}],
    "controlledResources": {"plugin-svc": "svc"},
    "taskStatusCount": {"worker": {"phase": {"Running": 1, "Pending": 2}}},
}


@pytest.mark.parametrize(
    ("change", "waits"),
    [
        ({"running": 3, "pending": 0}, True),
        ({"terminating": 1}, True),
        ({"taskStatusCount": {}}, True),
        ({"state": {"phase": "Running"}}, True),
        ({"state": {"phase": "Completed"}}, False),
        ({"version": 2}, False),
        ({"retryCount": 1}, False),
        ({"minAvailable": 2}, False),
        ({"controlledResources": {"plugin-svc": "svc", "pumice.dev/command": "u"}}, False),
        (
            {"controlledResources": {"plugin-svc": "svc", "pumice.dev/succeeded": "worker/0-1"}},
            True,
        ),
        ({"controlledResources": {"plugin-svc": "svc", "pumice.dev/pods": "worker/0-2"}}, False),
        ({"conditions": []}, False),
        ({"runningDuration": "3s"}, False),
    ],
    ids=str,
)
def test_what_may_wait(change: Raw, waits: bool) -> None:
    assert counts_only(STORED, Plan.of([PatchStatus(STORED | change)])) == waits


def test_what_an_event_reports_does_not_wait() -> None:
    steps: list[Step] = [
        PatchStatus(STORED | {"running": 2}),
        RecordEvent("Warning", "NameConflict", "x"),
    ]
    assert not counts_only(STORED, Plan.of(steps))


def test_what_precedes_a_removal_does_not_wait() -> None:
    removal = DeleteObject(POD, "default", "train-worker-0", "u1")
    assert not counts_only(STORED, Plan.of([PatchStatus(STORED | {"running": 2})], [removal]))


def test_a_plan_without_a_status_has_nothing_that_waits() -> None:
    assert not counts_only(STORED, Plan.of([RequeueAfter(3.0)]))


def test_the_rest_of_the_plan_is_carried_out() -> None:
    plan = Plan.of([PatchStatus(STORED)], [RequeueAfter(3.0)])
    assert without_status(plan) == Plan.of([RequeueAfter(3.0)])


def test_a_plan_tells_when_something_is_due_whatever_becomes_of_its_steps() -> None:
    record = RecordEvent("Normal", "X", "x")
    plan = Plan.of([record], [RequeueAfter(30.0)], [RequeueAfter(0.0)], [RequeueAfter(2.0)])
    assert plan.wake == 2.0, "0 means to go on at once, which what was refused must not"
    assert Plan.of([record]).wake is None
