"""JobFlows and CronJobs: which of several mistakes count."""

from typing import Any

from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.unit.webhook.reviewing import answer, request

Raw = dict[str, Any]

ADMISSION = Admission(AdmissionSettings(), Snapshot(), builtin())


def job_flow(*flows: tuple[str, list[str]], retries: int = 0) -> Raw:
    items = [{"name": name, "dependsOn": {"targets": targets}} for name, targets in flows]
    meta: Raw = {"name": "flow", "namespace": "default"}
    if retries:
        meta["annotations"] = {"pumice.dev/flow-retries": str(retries)}
    return answer(
        ADMISSION,
        "/jobflows/validate",
        request("/jobflows/validate", {"metadata": meta, "spec": {"flows": items}}),
    )


def cron_job(schedule: str) -> Raw:
    meta = {"name": "cron", "namespace": "default"}
    return {"metadata": meta, "spec": {"schedule": schedule, "jobTemplate": {"spec": {}}}}


def rescheduled(before: str, after: str) -> Raw:
    path = "/cronjobs/validate"
    return answer(ADMISSION, path, request(path, cron_job(after), "UPDATE", cron_job(before)))


def test_what_a_flow_waits_for_does_not_count_when_its_name_comes_again() -> None:
    found = job_flow(("a", ["gone"]), ("b", ["b"]), ("a", []), ("b", ["a"]))
    assert found["allowed"]
    assert [each.rpartition("[")[2] for each in found["warnings"]] == ["FLOW-DUPLICATE]"] * 2
    assert not job_flow(("a", []), ("a", ["gone"]))["allowed"]


def test_a_job_flow_has_at_most_a_thousand_jobs() -> None:
    """With its retries, and flows of one name counted once."""
    for flows, retries, path, told in (
        (1000, 0, "", ""),
        (1001, 0, "spec.flows", "must be at most 1000, found 1001"),
        (250, 3, "", ""),
        (
            251,
            3,
            "metadata.annotations[pumice.dev/flow-retries]",
            "must be at most 2 with 251 flows, found 3",
        ),
    ):
        found = job_flow(*((f"f{n}", []) for n in range(flows)), retries=retries)
        assert found["allowed"] is (told == "")
        if told:
            (cause,) = found["status"]["details"]["causes"]
            assert cause["field"] == path
            assert told in cause["message"]
    assert job_flow(*(("a", []) for _ in range(1001)))["allowed"]


def test_a_schedule_that_is_none_does_not_excuse_another() -> None:
    """Both are told in the same words: each has one field instead of five."""
    found = rescheduled("hourly", "nightly")
    assert not found["allowed"]
    (cause,) = found["status"]["details"]["causes"]
    assert cause["field"] == "spec.schedule"
    assert rescheduled("hourly", "hourly")["allowed"]
    assert rescheduled("hourly", "@hourly")["allowed"]
