"""Which action an event calls for."""

from typing import Any

import msgspec
import pytest

from pumice.api.jobs import Job
from pumice.controller.durations import format_duration, parse_duration
from pumice.controller.policies import Request, choose
from tests.builders import job, task
from tests.tables import table

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
    request = Request(**{**fields, "exit_codes": codes})
    choice = choose(subject, request)
    assert choice.action == case["to"]
    assert choice.delay == case.get("delay", 0)
    assert case.get("where", choice.path) == choice.path


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10.0),
        ("1h30m", 5400.0),
        ("1.5s", 1.5),
        ("250ms", 0.25),
        ("0", 0.0),
        ("", None),
        ("ten", None),
        ("10", None),
        ("-5s", None),
        ("5s!", None),
    ],
)
def test_durations_are_read_as_kubernetes_writes_them(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"), [(7, "7s"), (120, "2m0s"), (3723, "1h2m3s"), (0, "0s"), (-1, "0s")]
)
def test_durations_are_written_as_kubernetes_writes_them(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
