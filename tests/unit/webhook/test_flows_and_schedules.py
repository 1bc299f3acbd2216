"""JobFlows and CronJobs: which of several mistakes count."""

from typing import Any

from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.unit.webhook.reviewing import answer, request

Raw = dict[str, Any]

ADMISSION = Admission(AdmissionSettings(), Snapshot(), builtin())


def job_flow(*flows: tuple[str, list[str]]) -> Raw:
    items = [{"name": name, "dependsOn": {"targets": targets}} for name, targets in flows]
    meta = {"name": "flow", "namespace": "default"}
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


def test_a_schedule_that_is_none_does_not_excuse_another() -> None:
    """Both are told in the same words: each has one field instead of five."""
    found = rescheduled("hourly", "nightly")
    assert not found["allowed"]
    (cause,) = found["status"]["details"]["causes"]
    assert cause["field"] == "spec.schedule"
    assert rescheduled("hourly", "hourly")["allowed"]
    assert rescheduled("hourly", "@hourly")["allowed"]
