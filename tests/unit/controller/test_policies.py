"""Which action an event calls for."""

from typing import Any

import msgspec
import pytest

from pumice.api.jobs import Job
from pumice.controller.jobs.policies import Policies, PolicyRequest
from tests.kit.builders import job, task
from tests.kit.tables import table

CASES = table("controller/policies")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_choose(case: dict[str, Any]) -> None:
    subject = msgspec.convert(
        job(
            "job1",
            [task("task1", 6, policies=case.get("task", []))],
            uid="job1-uid-10001",
            policies=case.get("job", []),
            status={"version": case.get("version", 0)},
        ),
        Job,
    )
    fields: dict[str, Any] = case["request"]
    codes = tuple(fields.get("exit_codes", ()))
    request = PolicyRequest(**{**fields, "exit_codes": codes})
    choice = Policies(subject).choose(request)
    assert choice.action == case["to"]
    assert choice.delay == case.get("delay", 0)
    assert case.get("where", choice.path) == choice.path
