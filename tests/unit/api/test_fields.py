"""Field errors are one line in a terminal and one cause in a Status."""

import base64

import msgspec
import pytest

from pumice.api.fields import FieldError, did_you_mean, plain, summary
from pumice.api.reviews import PatchOperation, allowed, denied, encode, errored, patched


def test_an_error_is_one_line_with_its_path_first() -> None:
    error = FieldError(path="spec.tasks[1].name", message="must be unique", code="JOB-DUP-TASK")
    assert str(error) == "spec.tasks[1].name: must be unique [JOB-DUP-TASK]"
    assert summary([error, error]).count("\n") == 1
    assert str(FieldError(path="", message="no", code="X")) == "no [X]"


def test_a_line_stays_one_line_and_leaves_the_terminal_alone() -> None:
    error = FieldError(path="spec.plugins.a\nb", message='found "\x1b[31m→ é"', code="X")
    assert str(error) == 'spec.plugins.a\\nb: found "\\x1b[31m→ é" [X]'
    assert plain("plain → é") == "plain → é"
    assert plain("\u202e\ud800\x7f") == "\\u202e\\ud800\\x7f"


@pytest.mark.parametrize(("longest", "line"), [(100, "a: bbbbb [X]"), (12, "a: bbbbb [X]")])
def test_a_line_that_fits_is_whole(longest: int, line: str) -> None:
    assert FieldError(path="a", message="bbbbb", code="X").within(longest) == line


@pytest.mark.parametrize(("longest", "line"), [(11, "a: bbb… [X]"), (8, "a: … [X]"), (6, "a… [X]")])
def test_a_long_line_is_cut_before_its_code(longest: int, line: str) -> None:
    assert FieldError(path="a", message="bbbbb", code="X").within(longest) == line


def test_what_is_far_too_long_for_a_name_is_compared_with_nothing() -> None:
    assert did_you_mean("s" * 100_000, ["s" * 99_999]) == ""


@pytest.mark.parametrize(
    ("found", "hint"),
    [
        ("tensorflo", ' (did you mean "tensorflow"?)'),
        ("SVC", ' (did you mean "svc"?)'),
        ("zzz", ""),
    ],
)
def test_the_closest_candidate_is_suggested(found: str, hint: str) -> None:
    assert did_you_mean(found, ["svc", "tensorflow", "env"]) == hint


def test_a_denial_carries_every_cause() -> None:
    errors = [FieldError(path=f"spec.a[{i}]", message="bad", code="C") for i in range(2)]
    body = msgspec.json.decode(
        encode("u-1", denied(errors, ["careful"], name="n", kind="Job", group="g"))
    )
    response = body["response"]
    assert body["apiVersion"] == "admission.k8s.io/v1"
    assert (response["uid"], response["allowed"]) == ("u-1", False)
    assert response["status"]["code"] == 422
    assert [cause["field"] for cause in response["status"]["details"]["causes"]] == [
        "spec.a[0]",
        "spec.a[1]",
    ]
    assert response["status"]["message"].splitlines()[0] == 'Job "n" has 2 problems:'
    assert response["warnings"] == ["careful"]
    assert response["auditAnnotations"] == {"rules": "C"}


def test_a_patch_travels_as_base64_and_an_empty_one_not_at_all() -> None:
    response = patched(
        [PatchOperation("add", "/spec/queue", "default"), PatchOperation("remove", "/x")]
    )
    assert response.patch is not None
    assert msgspec.json.decode(base64.b64decode(response.patch)) == [
        {"op": "add", "path": "/spec/queue", "value": "default"},
        {"op": "remove", "path": "/x"},
    ]
    assert patched([]) == allowed()


def test_an_unanswerable_question_is_a_no_with_its_code() -> None:
    body = msgspec.json.decode(encode("u", errored(400, "no request")))
    assert body["response"]["status"]["code"] == 400
    assert body["response"]["allowed"] is False
