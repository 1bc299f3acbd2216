"""Every row of the case tables, through the review that a server would answer."""

import re
from typing import Any

import pytest

from tests.unit.webhook.reviewing import Raw, Row, answer, merged, operations, patched, rows

ROWS = list(rows())
DELETIONS = [
    row
    for row in ROWS
    if (row.path, row.request["operation"]) == ("/queues/validate", "DELETE")
    and "old" not in row.expected
]
"""Deletions of queues that the cluster of the row holds, or does not."""
ENOUGH = ("uid", "resource", "subResource", "name", "namespace", "operation")
"""What a request must say, besides its objects."""


def codes_of(warnings: list[str]) -> list[str]:
    return [match[1] for text in warnings if (match := re.search(r"\[([A-Z-]+)\]$", text))]


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_review_is_answered_as_the_table_says(row: Row) -> None:
    response = answer(row.admission(), row.path, row.request)

    if "errored" in row.expected:
        assert not response["allowed"]
        assert row.expected["errored"] in response["status"]["message"]
        assert response["status"]["code"] == 400
        return
    if "codes" in row.expected:
        _assert_denied(row, response)
    else:
        assert response["allowed"], response["status"]["message"]
        assert "status" not in response
        _assert_patched(row, response)
        for text in row.expected.get("message", ()):
            assert text in "\n".join(response.get("warnings", []))
    assert codes_of(response.get("warnings", [])) == row.expected.get("warnings", [])
    if "audit" in row.expected:
        assert response.get("auditAnnotations", {}) == row.expected["audit"]


def _assert_denied(row: Row, response: dict[str, Any]) -> None:
    assert not response["allowed"]
    status = response["status"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    causes = status["details"]["causes"]
    found = [codes_of([cause["message"]])[0] for cause in causes]
    assert list(dict.fromkeys(found)) == row.expected["codes"], status["message"]
    if "paths" in row.expected:
        assert [cause["field"] for cause in causes] == row.expected["paths"]
    for text in row.expected.get("message", ()):
        assert text in status["message"]
    assert response["auditAnnotations"]["rules"] == ",".join(row.expected["codes"])


def _assert_patched(row: Row, response: dict[str, Any]) -> None:
    if "operations" in row.expected:
        assert operations(response) == row.expected["operations"]
    if row.request["object"] is None:
        return
    result = patched(row.object, response)
    if "patched" in row.expected:
        assert result == merged(row.object, row.expected["patched"])
    if row.expected.get("becomes") == "old":
        assert result == row.request["oldObject"]
    again = row.request | {"object": result}
    assert operations(answer(row.admission(), row.path, again)) == []


@pytest.mark.parametrize("path", sorted({row.path for row in ROWS}))
def test_a_review_that_says_no_more_than_it_must_is_answered_alike(path: str) -> None:
    for row in (each for each in ROWS if each.path == path):
        asked = row.request
        objects = {
            key: untyped(asked[key]) for key in ("object", "oldObject") if asked[key] is not None
        }
        short = {key: asked[key] for key in ENOUGH if key in asked} | objects
        found, wanted = (answer(row.admission(), path, each) for each in (short, asked))
        assert found == wanted, row.name


def untyped(obj: Any) -> Any:
    """An object as tools send it that say its kind in the request alone."""
    if not isinstance(obj, dict):
        return obj
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}


@pytest.mark.parametrize("row", DELETIONS, ids=[row.name for row in DELETIONS])
def test_a_deletion_is_judged_alike_with_and_without_objects(row: Row) -> None:
    """API servers send the old object alone, Volcano's own tests another in its place; the name decides."""
    another: Raw = {"metadata": {"name": "another"}, "spec": {"weight": 1}}
    stored = [each for each in row.state if each["metadata"]["name"] == row.request["name"]]
    forms = [(obj, old) for obj in (None, another) for old in (None, *stored)]

    answers = [
        answer(row.admission(), row.path, row.request | {"object": obj, "oldObject": old})
        for obj, old in forms
    ]

    assert [each for each in answers if each != answers[0]] == []
    assert answers[0]["allowed"] is ("codes" not in row.expected)
