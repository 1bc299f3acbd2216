"""What holds for every object, however odd."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.plugins import builtin
from pumice.webhook.admission import Admission, Crash
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.builders import queue
from tests.unit.webhook.reviewing import answer, operations, patched, request, reraise
from tests.unit.webhook.shapes import JOBS, JSON, OBJECTS

Raw = dict[str, Any]

PATHS = [each.path for each in REGISTRATIONS]
VALIDATING = ["/jobs/validate", "/queues/validate", "/podgroups/validate"]
STATE = Snapshot.of([queue("default"), queue("closed", state="Closed"), queue("a", parent="b")])
ADMISSION = Admission(AdmissionSettings(), STATE, builtin(), on_crash=reraise)


def leaves(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf of a value with its JSON pointer; empty objects and lists are leaves."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, f"{pointer}/{index}")
    else:
        yield pointer, value


@settings(deadline=None)
@given(JOBS)
def test_a_patch_is_idempotent_and_loses_no_field(job: Raw) -> None:
    before = copy.deepcopy(job)
    response = answer(ADMISSION, "/jobs/mutate", request("/jobs/mutate", job))
    assert response["allowed"]

    result = patched(job, response)
    written = {each["path"] for each in operations(response)}
    after = dict(leaves(result))
    for pointer, value in leaves(before):
        if pointer not in written and not any(each.startswith(f"{pointer}/") for each in written):
            assert after[pointer] == value
    again = answer(ADMISSION, "/jobs/mutate", request("/jobs/mutate", result))
    assert operations(again) == []


@settings(deadline=None)
@given(JOBS)
def test_a_manifest_applied_again_is_no_change(job: Raw) -> None:
    stored = patched(job, answer(ADMISSION, "/jobs/mutate", request("/jobs/mutate", job)))

    again = answer(
        ADMISSION, "/jobs/mutate", request("/jobs/mutate", copy.deepcopy(job), "UPDATE", stored)
    )
    assert patched(job, again) == stored
    update = request("/jobs/validate", copy.deepcopy(job), "UPDATE", stored)
    assert answer(ADMISSION, "/jobs/validate", update)["allowed"]


@settings(deadline=None)
@given(JOBS, JOBS)
def test_a_change_of_metadata_always_passes(job: Raw, other: Raw) -> None:
    changed = other | {key: job[key] for key in ("spec",) if key in job}
    if "spec" not in job:
        changed.pop("spec", None)
    asked = request("/jobs/validate", changed, "UPDATE", job)
    assert answer(ADMISSION, "/jobs/validate", asked)["allowed"]
    written = operations(
        answer(ADMISSION, "/jobs/mutate", request("/jobs/mutate", changed, "UPDATE", job))
    )
    assert not [each for each in written if each["path"].startswith("/spec")]


@settings(deadline=None)
@given(JOBS, JOBS)
def test_a_job_that_is_being_deleted_always_passes(job: Raw, other: Raw) -> None:
    other["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for path in ("/jobs/mutate", "/jobs/validate"):
        response = answer(ADMISSION, path, request(path, other, "UPDATE", job))
        assert response["allowed"]
        assert operations(response) == []


@settings(deadline=None)
@given(st.sampled_from(VALIDATING), OBJECTS)
def test_an_update_that_touches_nothing_passes(path: str, obj: Raw) -> None:
    asked = request(path, obj, "UPDATE", copy.deepcopy(obj))
    assert answer(ADMISSION, path, asked)["allowed"]


@settings(deadline=None)
@given(
    st.sampled_from(PATHS),
    st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT", ""]),
    st.one_of(OBJECTS, JSON),
    st.one_of(OBJECTS, JSON),
)
def test_no_rule_raises_on_any_json(path: str, operation: str, new: Any, old: Any) -> None:
    asked = request(path, None, operation) | {"object": new, "oldObject": old}
    response = answer(ADMISSION, path, asked)
    assert response["allowed"] or response["status"]["message"]


@settings(deadline=None)
@given(JOBS, st.one_of(st.none(), JOBS))
def test_no_rule_raises_on_any_job(job: Raw, old: Raw | None) -> None:
    asked = request("/jobs/validate", job, "CREATE" if old is None else "UPDATE", old)
    answer(ADMISSION, "/jobs/validate", asked)


@settings(deadline=None)
@given(st.sampled_from([*PATHS, "/nowhere"]), st.one_of(st.binary(), JSON.map(json.dumps)))
def test_any_body_gets_a_review(path: str, body: bytes | str) -> None:
    crashes: list[Crash] = []
    admission = Admission(AdmissionSettings(), STATE, builtin(), on_crash=crashes.append)
    raw = body.encode() if isinstance(body, str) else body
    response = json.loads(admission.review(path, raw))["response"]
    assert not response["allowed"]
    assert response["status"]["code"] in (400, 404)
    assert crashes == []
