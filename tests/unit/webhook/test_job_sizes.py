"""A Job leaves room for its status, which has several entries for each task."""

from typing import Any

import msgspec
import pytest

from pumice.api.jobs import Job
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.offline import judge
from pumice.webhook.rules.jobs.sizes import MOST, status_bytes
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit import builders
from tests.unit.webhook.reviewing import request, review

Raw = dict[str, Any]
PATH = [("JOB-SIZE", "spec.tasks")]


def errors_of(job: Raw, *assignments: str) -> list[tuple[str, str]]:
    settings = AdmissionSettings.from_assignments(assignments)
    view = Snapshot.of([builders.queue("default")])
    found = judge(Admission(settings, view, builtin()), job)
    return [(each.code, each.path) for each in found.errors]


def with_tasks(number: int) -> Raw:
    return builders.job("train", [builders.task(f"t{each}") for each in range(number)])


def with_argument(length: int) -> Raw:
    job = builders.job("train", [builders.task()])
    job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["args"] = ["x" * length]
    return job


def test_of_many_tasks() -> None:
    assert errors_of(with_tasks(1500)) == []
    assert errors_of(with_tasks(4000)) == PATH
    assert errors_of(with_tasks(4000), "strict-upstream=true") == []


def test_of_one_large_task() -> None:
    job = with_argument(0)
    room = MOST - status_bytes(msgspec.convert(job, Job)) - len(msgspec.json.encode(job["spec"]))
    assert room > MOST * 0.98
    assert errors_of(with_argument(room - 300)) == []
    assert errors_of(with_argument(room + 300)) == PATH


@pytest.mark.parametrize(("change", "least"), [({"replicas": 100_000}, 50_000), ({}, 0)])
def test_the_status_of_many_pods_is_larger(change: Raw, least: int) -> None:
    task = builders.task() | change
    job = msgspec.convert(builders.job("train", [task]), Job)
    assert least <= status_bytes(job) - 20_000 <= least + 1000


def test_a_review_that_is_short_for_its_job_is_measured_too() -> None:
    """Numbers may be written shorter than they are stored: `1e15` is 1000000000000000.0 then."""
    numbers = b",".join([b"1e15"] * 85_000)
    body = review(request("/jobs/validate", with_argument(1)))
    long = body.replace(b'"args": ["x"]', b'"args": ["x"], "other": [' + numbers + b"]")
    assert len(long) < MOST / 3
    admission = Admission(AdmissionSettings(), Snapshot.of([]), builtin())
    assert b"JOB-SIZE" not in admission.review("/jobs/validate", body)
    assert b"JOB-SIZE" in admission.review("/jobs/validate", long)
