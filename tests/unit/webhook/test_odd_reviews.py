"""Reviews that no API server sends, and what its user reads when one does."""

import json
from typing import Any

import pytest

from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.answers import Answer
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import job, queue
from tests.unit.webhook.reviewing import UID, request, review

BODY = review(request("/jobs/validate", job()))
PATHS = [each.path for each in REGISTRATIONS]


def answered(body: bytes, path: str = "/jobs/validate") -> Answer:
    view = Snapshot.of([queue("default"), queue("gone", state="Closed")])
    return Admission(AdmissionSettings(), view, builtin()).answer(path, body)


def status(answer: Answer) -> dict[str, Any]:
    """The status of a refusal."""
    response = json.loads(answer.body)["response"]
    assert response["allowed"] is False
    assert response["uid"] == answer.question.uid
    found: dict[str, Any] = response["status"]
    return found


def with_replicas(text: bytes) -> bytes:
    """The review with something else for a number of replicas."""
    assert BODY.count(b'"replicas": 1') == 1
    return BODY.replace(b'"replicas": 1', b'"replicas": ' + text)


UNDECODABLE = {
    "NaN": with_replicas(b"NaN"),
    "nesting without end": with_replicas(b"[" * 1200 + b"]" * 1200),
    "an end in the middle": BODY[:-50],
}


@pytest.mark.parametrize("body", UNDECODABLE.values(), ids=UNDECODABLE)
@pytest.mark.parametrize("path", PATHS)
def test_the_uid_of_what_cannot_be_decoded_comes_back(path: str, body: bytes) -> None:
    """With it the answer is a review, which the API server passes on to its user."""
    found = answered(body, path)
    assert (found.question.uid, found.malformed, found.status) == (UID, 0, 400)
    assert status(found)["message"].startswith("this is no AdmissionReview: ")


@pytest.mark.parametrize(
    "uid", [b'"\xff"', b"5", b'"a\\nb"', b'"' + b"u" * 200 + b'"'], ids=["bytes", "number", "escapes", "long"]
)  # fmt: skip
def test_a_uid_that_cannot_be_read_is_left_out(uid: bytes) -> None:
    body = UNDECODABLE["NaN"].replace(f'"{UID}"'.encode(), uid)
    found = answered(body)
    assert (found.question.uid, found.malformed) == ("", 400)


MISSING = [
    ("CREATE", None, None, "object"),
    ("UPDATE", None, job(), "object"),
    ("UPDATE", job(), None, "oldObject"),
]


@pytest.mark.parametrize(("operation", "new", "old", "missing"), MISSING)
@pytest.mark.parametrize("path", ["/jobs/validate", "/jobs/mutate"])
@pytest.mark.parametrize("way", ["at once", "in steps"])
def test_a_review_without_its_object_is_not_admitted(
    path: str, operation: str, new: Any, old: Any, missing: str, way: str
) -> None:
    asked = request(path, new, operation, old)
    if way == "in steps":
        asked |= {("oldObject" if missing == "object" else "object"): {"spec": 5}}
    found = answered(review(asked), path)
    said = f"a review of operation {operation} must have an {missing}, found none"
    assert (found.outcome, found.malformed) == ("errored", 0)
    assert (status(found)["code"], status(found)["message"]) == (400, said)


def test_a_deletion_needs_the_stored_object_or_a_name() -> None:
    path = "/queues/validate"
    named = request(path, None, "DELETE", None) | {"name": "gone"}
    assert json.loads(answered(review(named), path).body)["response"]["allowed"]
    # Of a collection each object is asked about, without a name.
    stored = request(path, None, "DELETE", queue("gone", state="Closed")) | {"name": ""}
    assert json.loads(answered(review(stored), path).body)["response"]["allowed"]
    neither = answered(review(request(path, None, "DELETE", None)), path)
    assert "must have an oldObject, found none" in status(neither)["message"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1e400", "number out of range"),
        (b"1" * 5000, "integer value out of range"),
        (b"1e0", "json: cannot unmarshal the number 1.0 into an integer; write 1"),
        (b"1.5", "json: cannot unmarshal the number 1.5 into an integer; write 1 or 2"),
    ],
    ids=["1e400", "5000 digits", "1e0", "1.5"],
)
@pytest.mark.parametrize("path", ["/jobs/validate", "/jobs/mutate"])
def test_a_number_that_cannot_be_taken_is_reported_with_its_place(
    path: str, text: bytes, message: str
) -> None:
    (cause,) = status(answered(with_replicas(text), path))["details"]["causes"]
    place = "spec.tasks[0].replicas"
    assert cause["field"] == place
    assert cause["message"] == f"{message} [SCHEMA-TYPE]"


def test_what_is_behind_any_key_of_a_map_is_reported_with_the_map() -> None:
    body = BODY.replace(b'"name": "train"', b'"labels": {"a": 1e400}, "name": "train"')
    causes = status(answered(body))["details"]["causes"]
    assert {cause["field"] for cause in causes} == {"metadata.labels"}
