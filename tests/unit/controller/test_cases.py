"""Small decisions about one Job, as the case tables have them."""

from typing import Any

import pytest

from pumice.api.kinds import JOB
from pumice.api.meta import format_time
from pumice.controller.jobs.phases import PhaseResult
from pumice.controller.jobs.podsets import PodNames
from pumice.controller.jobs.reconcile import reconcile
from pumice.controller.jobs.restart_targets import restart_for, restart_of, target_for
from pumice.controller.jobs.situation import Limits, Observed
from pumice.controller.jobs.status import compose, count
from pumice.controller.jobs.subject import read
from pumice.controller.plan import DeleteObject, RequeueAfter
from pumice.plugins import builtin
from tests.kit.tables import table
from tests.unit.controller.rows import a_job, pods

Raw = dict[str, Any]

NOW = 1_800_000_000.0


@pytest.mark.parametrize("case", table("controller/restarts"), ids=lambda case: case["id"])
def test_what_a_restart_replaces(case: Raw) -> None:
    target = target_for(case["action"], **case["about"])
    restart = restart_of([target]) if target is not None else restart_for(case["action"])
    names = PodNames(read(a_job({"tasks": {"task1": 3, "task2": 1}})))
    assert (restart and restart.note(names)) == case["note"]
    if restart is not None:
        assert [each.metadata.name for each in restart.remaining(pods(case))] == case["goes"]


@pytest.mark.parametrize("case", table("controller/conditions"), ids=lambda case: case["id"])
def test_conditions(case: Raw) -> None:
    had = [{"status": phase, "lastTransitionTime": format_time(NOW - 9)} for phase in case["had"]]
    state = {"state": {"phase": case["had"][-1]}} if had else {}
    status = compose(
        {"conditions": had} | state,
        count(()),
        PhaseResult(case["enters"]),
        minimum=1,
        now=NOW,
        version=0,
        retry_count=0,
        controlled={},
    )
    assert status is not None
    assert [each["status"] for each in status["conditions"]] == case["then"]
    entered = status["conditions"][-1]["lastTransitionTime"] == format_time(NOW)
    assert entered is (case["enters"] not in case["had"][-1:])


@pytest.mark.parametrize("case", table("controller/time-to-live"), ids=lambda case: case["id"])
def test_when_a_job_is_deleted(case: Raw) -> None:
    ended = None if case["since"] is None else format_time(NOW - case["since"])
    job = a_job({"tasks": {"task1": 1}}, ttlSecondsAfterFinished=case["ttl"])
    job["metadata"]["resourceVersion"] = "7"
    job["status"] = {"state": {"phase": case["phase"], "lastTransitionTime": ended}}
    observed = Observed(job=job, pods=pods(case), awaited=case.get("awaited", False))
    kept = reconcile(observed, registry=builtin(), now=NOW, limits=Limits(expire=False))
    assert not any(isinstance(step, DeleteObject | RequeueAfter) for step in kept.steps)
    plan = reconcile(observed, registry=builtin(), now=NOW)
    deletes = [s for s in plan.steps if isinstance(s, DeleteObject) and s.kind == JOB]
    waits = [step.seconds for step in plan.steps if isinstance(step, RequeueAfter)]
    if case["then"] == "delete":
        (step,) = deletes
        assert (step.uid, step.propagation, step.resource_version) == ("u1", "Foreground", "7")
        assert list(plan.steps) == [step]
    else:
        assert deletes == []
        assert waits == ([] if case["then"] is None else [case["then"]])
