"""`pumice review`: a review in, the server's answer out."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.builders import job, pod, queue
from tests.unit.cli.conftest import Pumice


def review(obj: dict[str, Any] | None, operation: str = "CREATE", old: Any = None) -> str:
    return json.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "u-1",
                "resource": {
                    "group": "batch.volcano.sh",
                    "version": "v1alpha1",
                    "resource": "jobs",
                },
                "operation": operation,
                "namespace": "default",
                "object": obj,
                "oldObject": old,
            },
        }
    )


def test_a_patch(pumice: Pumice) -> None:
    ran = pumice("review", "/jobs/mutate", stdin=review(job()))
    assert ran.code == 0
    response = ran.json["response"]
    assert (ran.json["kind"], response["uid"], response["allowed"]) == (
        "AdmissionReview",
        "u-1",
        True,
    )
    paths = {each["path"] for each in json.loads(base64.b64decode(response["patch"]))}
    assert "/spec/maxRetry" in paths


def test_a_denial_is_exit_code_1(pumice: Pumice) -> None:
    ran = pumice("review", "/jobs/validate", stdin=review(job(plugins={"nope": []})))
    assert ran.code == 1
    assert ran.json["response"]["allowed"] is False
    assert ran.json["response"]["status"]["code"] == 422


def test_the_state_counts(pumice: Pumice, tmp_path: Path) -> None:
    state = tmp_path / "queues.yaml"
    state.write_text(json.dumps(queue("research")))
    ran = pumice("review", "/jobs/validate", "--state", state, stdin=review(job(queue="research")))
    assert ran.code == 0
    assert ran.json["response"]["allowed"] is True


def test_resource_groups_count(pumice: Pumice, tmp_path: Path) -> None:
    conf = tmp_path / "volcano-admission.conf"
    conf.write_text(
        "resourceGroups:\n- resourceGroup: lab\n  object: {key: namespace, value: [default]}\n"
        "  schedulerName: volcano\n"
    )
    asked = json.loads(review(pod(schedulerName="default-scheduler")))
    asked["request"]["resource"] = {"group": "", "version": "v1", "resource": "pods"}
    ran = pumice("review", "/pods/mutate", "--admission-conf", conf, stdin=json.dumps(asked))
    assert ran.code == 0
    assert json.loads(base64.b64decode(ran.json["response"]["patch"])) == [
        {"op": "add", "path": "/spec/schedulerName", "value": "volcano"}
    ]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"request": {"uid": "u"}}', "null", "\xff"])
def test_what_is_no_review_gets_an_answer_too(pumice: Pumice, text: str) -> None:
    ran = pumice("review", "/jobs/validate", stdin=text.encode("latin-1"))
    assert ran.code == 2
    assert ran.json["response"]["allowed"] is False
    assert ran.json["response"]["status"]["message"]


def test_a_state_without_objects_is_a_cluster_without_any(pumice: Pumice, tmp_path: Path) -> None:
    state = tmp_path / "queues.yaml"
    state.touch()
    ran = pumice("review", "/jobs/validate", "--state", state, stdin=review(job(queue="research")))
    assert ran.code == 1
    assert ran.json["response"]["auditAnnotations"] == {"rules": "JOB-QUEUE-MISSING"}


def test_a_queue_that_no_state_has_is_refused_as_a_server_would(pumice: Pumice) -> None:
    ran = pumice("review", "/jobs/validate", stdin=review(job(queue="jobQueue")))
    assert ran.code == 1
    [cause] = ran.json["response"]["status"]["details"]["causes"]
    assert (cause["field"], "JOB-QUEUE-MISSING" in cause["message"]) == ("spec.queue", True)
