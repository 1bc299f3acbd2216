"""What holds for every object, however odd."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pumice.plugins import builtin
from pumice.webhook.admission import Admission, RuleFailure
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import queue
from tests.unit.webhook.reviewing import answer, operations, patched, request, reraise
from tests.unit.webhook.shapes import JOBS, JSON, OBJECTS

Raw = dict[str, Any]

PATHS = [each.path for each in REGISTRATIONS]
VALIDATING = [path for path in PATHS if path.endswith("/validate") and path != "/pods/validate"]
STATE = Snapshot.of([queue("default"), queue("closed", state="Closed"), queue("a", parent="b")])
ADMISSION = Admission(AdmissionSettings(), STATE, builtin(), on_crash=reraise)
ORDERING = Admission(AdmissionSettings(mpi_depends_on=True), STATE, builtin(), on_crash=reraise)
ADMISSIONS = st.sampled_from([ADMISSION, ORDERING])


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
@given(ADMISSIONS, JOBS)
def test_a_patch_is_idempotent_and_loses_no_field(admission: Admission, job: Raw) -> None:
    before = copy.deepcopy(job)
    response = answer(admission, "/jobs/mutate", request("/jobs/mutate", job))
    assert response["allowed"]

    result = patched(job, response)
    written = {each["path"] for each in operations(response)}
    after = dict(leaves(result))
    for pointer, value in leaves(before):
        if pointer not in written and not any(each.startswith(f"{pointer}/") for each in written):
            assert after[pointer] == value
    again = answer(admission, "/jobs/mutate", request("/jobs/mutate", result))
    assert operations(again) == []


OWNED: Raw = {"managedFields": [{"operation": "Apply", "fieldsV1": {"f:spec": {}}}]}
HUGE: Raw = {"minAvailable": 2**40, "tasks": [{"name": "a", "minAvailable": 2**40, "template": {}}]}
NULL_IN_CLAIM: Raw = {"volumes": [{"volumeClaim": {"accessModes": [{"action": None}]}}]}
ONLY_NULL_IN_CLAIM: Raw = {
    "queue": None,
    "volumes": [{"volumeClaim": {"storageClassName": None}, "volumeClaimName": "a"}],
}
NULL_IN_MAP_FOR_LIST: Raw = {
    "queue": None,
    "tasks": [
        {"template": {"spec": {"containers": [{"name": "a", "volumeMounts": {"action": None}}]}}}
    ],
}


@settings(deadline=None)
@given(ADMISSIONS, ADMISSIONS, JOBS)
@example(ADMISSION, ADMISSION, {"metadata": OWNED, "spec": HUGE})
@example(ADMISSION, ADMISSION, {"metadata": {}, "spec": NULL_IN_CLAIM})
@example(ADMISSION, ADMISSION, {"metadata": {}, "spec": ONLY_NULL_IN_CLAIM})
@example(ADMISSION, ADMISSION, {"metadata": {}, "spec": NULL_IN_MAP_FOR_LIST})
def test_a_manifest_applied_again_is_no_change(
    admission: Admission, later: Admission, job: Raw
) -> None:
    """Also where a setting has changed since the Job was made."""
    stored = patched(job, answer(admission, "/jobs/mutate", request("/jobs/mutate", job)))

    again = answer(
        later, "/jobs/mutate", request("/jobs/mutate", copy.deepcopy(job), "UPDATE", stored)
    )
    assert patched(job, again) == stored
    for asked in (copy.deepcopy(job), patched(job, again)):
        if admission is not later and asked != stored:
            continue  # nobody wrote the default that only the other setting would write
        update = request("/jobs/validate", asked, "UPDATE", stored)
        assert answer(later, "/jobs/validate", update)["allowed"]


@settings(deadline=None)
@given(JOBS, st.integers(1, 3))
def test_a_gang_that_needs_fewer_pods_is_no_worse(job: Raw, fewer: int) -> None:
    spec = job.get("spec") or {}
    needed = spec.get("minAvailable")
    if not isinstance(needed, int) or needed <= fewer:
        return  # 0 counts as not set
    asked = job | {"spec": spec | {"minAvailable": needed - fewer}}
    update = request("/jobs/validate", asked, "UPDATE", job)
    response = answer(ADMISSION, "/jobs/validate", update)
    assert response["allowed"], response["status"]["message"]


@settings(deadline=None)
@given(JOBS, st.integers(0, 3), st.integers(1, 3))
def test_a_task_with_more_pods_brings_no_problem_but_their_number(
    job: Raw, position: int, more: int
) -> None:
    """Whatever else is wrong with it; only what counts the pods may speak up."""
    tasks = (job.get("spec") or {}).get("tasks") or []
    if position >= len(tasks) or not isinstance(tasks[position].get("replicas"), int):
        return
    scaled = copy.deepcopy(tasks)
    scaled[position]["replicas"] += more
    asked = job | {"spec": job["spec"] | {"tasks": scaled}}
    response = answer(ADMISSION, "/jobs/validate", request("/jobs/validate", asked, "UPDATE", job))
    if not response["allowed"]:
        counting = {"PART-PRODUCT", "JOB-PODNAME", "JOB-PODNAME-INDEX", "JOB-OVERFLOW"}
        counting |= {"JOB-PLUGIN-SIZE"}
        assert set(response["auditAnnotations"]["rules"].split(",")) <= counting


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
    crashes: list[RuleFailure] = []
    admission = Admission(AdmissionSettings(), STATE, builtin(), on_crash=crashes.append)
    raw = body.encode() if isinstance(body, str) else body
    response = json.loads(admission.review(path, raw))["response"]
    assert not response["allowed"]
    assert response["status"]["code"] in (400, 404)
    assert crashes == []
