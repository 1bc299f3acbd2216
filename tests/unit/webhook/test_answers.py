"""Answers: what users, audit logs and servers learn, and that asking for it changes nothing."""

import copy
import json
from typing import Any

import pytest

from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import job, queue, task
from tests.unit.webhook.reviewing import Row, answer, request, review, rows

STATE = Snapshot.of([queue("default")])
SAMPLE = list(rows())[::3]


def admission(*assignments: str, view: Snapshot = STATE) -> Admission:
    return Admission(AdmissionSettings.from_assignments(assignments), view, builtin())


def asked(path: str, obj: dict[str, Any], *assignments: str) -> dict[str, Any]:
    return answer(admission(*assignments), path, request(path, obj))


def test_one_problem_is_one_line() -> None:
    response = asked("/jobs/validate", job("a", queue="gone"))
    assert response["status"]["message"] == (
        'Job "a": spec.queue: unable to find job queue "gone": there is no such queue [JOB-QUEUE-MISSING]'
    )


def test_several_problems_are_a_line_each_with_the_path_first() -> None:
    response = asked("/jobs/validate", job("a", queue="gone", minAvailable=5))
    first, *others = response["status"]["message"].splitlines()
    assert first == 'Job "a" has 2 problems:'
    causes = response["status"]["details"]["causes"]
    assert others == [f"{each['field']}: {each['message']}" for each in causes]
    assert response["status"]["details"] | {"causes": []} == {
        "name": "a",
        "group": "batch.volcano.sh",
        "kind": "Job",
        "causes": [],
    }


def test_a_problem_of_the_object_as_a_whole_has_a_field_for_kubectl() -> None:
    found = request("/queues/validate", None, "DELETE", queue("default"))
    response = answer(admission(), "/queues/validate", found)
    assert [each["field"] for each in response["status"]["details"]["causes"]] == ["metadata.name"]
    assert response["status"]["message"].startswith(
        'Queue "default": `default` queue can not be deleted'
    )


def test_a_text_of_the_users_neither_breaks_the_line_nor_the_terminal() -> None:
    response = asked("/jobs/validate", job("a", queue="x\n\x1b[31my", plugins={"a\nb": []}))
    message = response["status"]["message"]
    assert len(message.splitlines()) == 3
    assert "\x1b" not in json.dumps(response, ensure_ascii=False)
    assert 'queue "x\\n\\x1b[31my"' in message
    response = asked("/jobs/validate", job(plugins={"svc": ["--a\nb"]}))
    assert all(warning.isprintable() for warning in response["warnings"])


def test_what_is_too_long_or_too_many_is_of_its_own_class() -> None:
    long = "a" * 64
    pod = {"dnsConfig": {"nameservers": ["192.0.2.1"] * 4}, "dnsPolicy": "None"}
    for obj, field, reason in (
        (job(long), "metadata.name", "FieldValueTooLong"),
        (job("a_b"), "metadata.name", None),
        (job(long[:60]), "spec.tasks[0].name", "FieldValueTooLong"),
        (job(tasks=[task(long)]), "spec.tasks[0].name", "FieldValueTooLong"),
        (job(tasks=[task("A")]), "spec.tasks[0].name", "FieldValueInvalid"),
        (
            job(tasks=[task(spec=pod)]),
            "spec.tasks[0].template.spec.dnsConfig.nameservers",
            "FieldValueTooMany",
        ),
    ):
        status = asked("/jobs/validate", obj).get("status", {"details": {"causes": []}})
        reasons = {each["field"]: each["reason"] for each in status["details"]["causes"]}
        assert reasons.get(field) == reason, obj


def test_the_audit_log_learns_what_settings_let_pass() -> None:
    bad = job(queue="gone", minSuccess=9)
    assert asked("/jobs/validate", bad)["auditAnnotations"] == {
        "rules": "JOB-QUEUE-MISSING",
        "warned": "JOB-MIN-SUCCESS",
    }
    assert asked("/jobs/validate", bad, "rule.JOB-QUEUE-MISSING=warn")["auditAnnotations"] == {
        "warned": "JOB-MIN-SUCCESS,JOB-QUEUE-MISSING",
        "tolerated": "JOB-QUEUE-MISSING",
    }
    levels = ("rule.JOB-QUEUE-MISSING=off", "rule.JOB-MIN-SUCCESS=off")
    assert "auditAnnotations" not in asked("/jobs/validate", bad, *levels)


def test_the_server_learns_the_same() -> None:
    body = review(request("/jobs/validate", job("a", queue="gone", minSuccess=9)))
    found = admission("rule.JOB-QUEUE-MISSING=warn").answer("/jobs/validate", body)
    assert (found.outcome, found.codes) == ("allowed", ())
    assert found.warned == ("JOB-MIN-SUCCESS", "JOB-QUEUE-MISSING")
    assert found.tolerated == ("JOB-QUEUE-MISSING",)
    assert (found.question.namespace, found.question.name) == ("default", "a")


def test_the_same_problem_is_reported_once() -> None:
    twice = job(tasks=[task("a", spec={"containers": []})], queue="gone")
    response = asked("/jobs/validate", twice)
    causes = [(each["field"], each["message"]) for each in response["status"]["details"]["causes"]]
    assert len(causes) == len(set(causes))


@pytest.mark.parametrize("row", SAMPLE, ids=[row.name for row in SAMPLE])
def test_a_dry_run_is_answered_alike_and_changes_nothing(row: Row) -> None:
    judging = row.admission()
    before = copy.deepcopy(judging.view)
    dry = answer(judging, row.path, row.request | {"dryRun": True})
    assert dry == answer(row.admission(), row.path, row.request | {"dryRun": False})
    computed = {"_derived", "_active"}  # what was computed from the rest
    kept, was = (
        {key: vars(each)[key] for key in vars(each) if key not in computed}
        for each in (judging.view, before)
    )
    assert kept == was
    # Nor does it leave anything behind by which the next review would differ.
    assert answer(judging, row.path, row.request) == dry
