"""What `pumice lint`, `render` and `explain` say of CronJobs."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.api.kinds import CRON_JOB
from pumice.api.meta import ObjectMeta, format_time, parse_time
from pumice.cli.workflows import standing
from pumice.controller.objects import controller_reference
from tests.unit.cli.conftest import Pumice

Raw = dict[str, Any]

EXAMPLE = Path(__file__).parents[3] / "examples/cronjob.yaml"
NOW = parse_time("2026-03-27T12:00:00Z") or 0.0


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)


def cron_job(**spec: Any) -> Raw:
    found: Raw = yaml.safe_load(EXAMPLE.read_text())
    found["spec"] |= spec
    return found


def test_lint_says_when_the_next_runs_are(pumice: Pumice) -> None:
    """Over the change to summer time."""
    ran = pumice("lint", EXAMPLE)
    assert ran.code == 0
    expected = (
        "  next runs: 2026-03-30T06:30:00+02:00, 2026-03-31T06:30:00+02:00,"
        " 2026-04-01T06:30:00+02:00 (Europe/Oslo)\n"
    )
    assert expected in ran.out


@pytest.mark.parametrize(
    ("spec", "runs"),
    [
        ({"suspend": True}, "none: it is suspended"),
        (
            {"schedule": "0 0 31 2 *"},
            'none: spec.schedule "0 0 31 2 *" is never due: no date matches these',
        ),
        (
            {"schedule": "@every 1h", "timeZone": "UTC"},
            "2026-03-27T13:00:00Z, 2026-03-27T14:00:00Z, 2026-03-27T15:00:00Z (UTC)",
        ),
    ],
)
def test_lint_says_why_there_are_none(pumice: Pumice, spec: Raw, runs: str) -> None:
    ran = pumice("lint", "-", "-o", "json", stdin=json.dumps(cron_job(**spec)))
    [found] = ran.json
    assert found["nextRuns"] == runs


def test_lint_says_nothing_of_runs_of_what_is_refused_or_no_cron_job(pumice: Pumice) -> None:
    refused = json.dumps(cron_job(schedule="never"))
    assert "next runs" not in pumice("lint", "-", stdin=refused).out
    [found] = pumice("lint", EXAMPLE.parent / "pytorch.yaml", "-o", "json").json
    assert "nextRuns" not in found


def test_render_shows_the_next_job_and_its_pods(pumice: Pumice) -> None:
    ran = pumice("render", EXAMPLE)
    assert ran.code == 0
    objects = list(yaml.safe_load_all(ran.out))
    name = "retrain-29580750"
    assert [each["metadata"]["name"] for each in objects if each["kind"] == "Pod"] == [
        f"{name}-master-0",
        f"{name}-worker-0",
    ]
    [job] = [each for each in objects if each["kind"] == "Job"]
    assert job["metadata"]["name"] == name
    assert job["metadata"]["labels"] == {"team": "vision"}
    assert job["spec"]["queue"] == "default"


def test_render_of_what_is_refused_or_never_due(pumice: Pumice) -> None:
    for spec, message in (
        ({"schedule": "never"}, "CronJob/default/retrain is refused: spec.schedule"),
        ({"schedule": "0 0 31 2 *"}, "CronJob/default/retrain: it has no next run"),
    ):
        ran = pumice("render", "-", stdin=json.dumps(cron_job(**spec)))
        assert (ran.code, ran.out) == (1, "")
        assert message in ran.err


def live(last: str, **spec: Any) -> Raw:
    found = cron_job(schedule="0 * * * *", timeZone="UTC", startingDeadlineSeconds=600, **spec)
    found["metadata"] |= {"namespace": "d", "uid": "U", "creationTimestamp": "2026-03-01T00:00:00Z"}
    return found | {"status": {"lastScheduleTime": last}}


def job(instant: float, phase: str, *, owned: bool = True) -> Raw:
    owner = controller_reference(ObjectMeta(name="retrain", uid="U"), CRON_JOB)
    meta: Raw = {"name": f"retrain-{int(instant) // 60}", "uid": "J"}
    meta["creationTimestamp"] = format_time(instant)
    if owned:
        meta["ownerReferences"] = [owner]
    return {"metadata": meta, "status": {"state": {"phase": phase}}}


@pytest.mark.parametrize(
    ("found", "jobs", "sentence", "waits"),
    [
        (live("2026-03-27T12:00:00Z"), [], "waits for the run of 2026-03-27T13:00:00Z", False),
        (
            live("2026-03-27T11:00:00Z"),
            [],
            "the run of 2026-03-27T12:00:00Z is due and has no Job yet; is `pumice controller` running?",
            True,
        ),
        (
            live("2026-03-27T11:00:00Z"),
            [job(NOW - 3600, "Running")],
            "the run of 2026-03-27T12:00:00Z waits for retrain-29576820 to end, as concurrencyPolicy Forbid says",
            True,
        ),
        (
            live("2026-03-27T11:00:00Z"),
            [job(NOW, "Running", owned=False)],
            "Job retrain-29576880 exists and does not belong to this CronJob",
            True,
        ),
        (live("2026-03-27T11:00:00Z"), [job(NOW, "Completed")], "waits for the run of", False),
        (live("2026-03-27T11:00:00Z", suspend=True), [], "is suspended", False),
        (
            live("2026-03-27T11:00:00Z") | {"spec": {"schedule": "never"}},
            [],
            "creates no Job: spec.schedule cannot be read",
            False,
        ),
    ],
    ids=["not due", "no controller", "Forbid", "foreign", "made", "suspended", "unreadable"],
)
def test_why_a_cron_job_does_not_run(
    found: Raw, jobs: list[Raw], sentence: str, waits: bool
) -> None:
    said, waiting = standing(found, jobs, NOW)
    assert said.startswith("CronJob d/retrain")
    assert sentence in said
    assert waiting is waits


def test_a_run_whose_deadline_has_passed() -> None:
    said, _ = standing(live("2026-03-27T11:00:00Z"), [], NOW + 700)
    assert "was missed" in said
