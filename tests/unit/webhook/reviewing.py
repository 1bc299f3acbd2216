"""Real AdmissionReviews of the rows of `tests/cases/webhook/*.yaml`, for whoever answers reviews."""

import base64
import copy
import functools
import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonpatch
import yaml

from pumice.api.kinds import (
    HYPER_NODE,
    INDEXED_JOB,
    JOB_SET,
    LEADER_WORKER_SET,
    NAMESPACE,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
)
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.resource_group_file import parse
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit import tables

Raw = dict[str, Any]

FOLDER = Path(__file__).parents[2] / "cases" / "webhook"
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
KINDS = {each.path: each.kind for each in REGISTRATIONS}
STATE_KINDS = {
    "queues": QUEUE,
    "namespaces": NAMESPACE,
    "priorityClasses": PRIORITY_CLASS,
    "podGroups": POD_GROUP,
    "hyperNodes": HYPER_NODE,
    "indexedJobs": INDEXED_JOB,
    "jobSets": JOB_SET,
    "leaderWorkerSets": LEADER_WORKER_SET,
}
"""Keys of a table's `state`, and what stands under each."""


@dataclass(frozen=True)
class Row:
    """One row of a table, made into what admission is asked; `conf` is the file of resource groups.

    `assignments` are its settings as a command line gives them.
    """

    name: str
    path: str
    assignments: tuple[str, ...]
    settings: AdmissionSettings
    state: list[Raw]
    conf: bytes
    request: Raw
    expected: Raw

    @property
    def object(self) -> Raw:
        """The object under review; on a deletion the stored one."""
        found: Raw = self.request["object"] or self.request["oldObject"]
        return found

    @property
    def body(self) -> bytes:
        """The review as JSON."""
        return review(self.request)

    def admission(self) -> Admission:
        """Admission in the row's cluster, with the row's settings."""
        groups, _ = parse(self.conf)
        return Admission(
            self.settings, Snapshot.of(self.state), builtin(), groups=groups, on_crash=reraise
        )


def reraise(crash: Any) -> None:
    """A rule that raises is a mistake in a test."""
    raise crash.error


def review(request: Raw) -> bytes:
    """An AdmissionReview around a request."""
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    ).encode()


def request(path: str, obj: Raw | None, operation: str = "CREATE", old: Raw | None = None) -> Raw:
    """A request as kube-apiserver sends it."""
    kind = KINDS[path]
    meta = (obj or old or {}).get("metadata") or {}
    return {
        "uid": UID,
        "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        "name": _text(meta, "name"),
        "namespace": _text(meta, "namespace"),
        "operation": operation,
        "userInfo": {"username": "kubernetes-admin", "groups": ["system:authenticated"]},
        "object": obj,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }


def _text(meta: Any, key: str) -> str:
    found = meta.get(key) if isinstance(meta, dict) else None
    return found if isinstance(found, str) else ""


def merged(base: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7396), carried out on a copy."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = copy.deepcopy(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def rows() -> Iterator[Row]:
    """Every row of every table, a copy for each caller."""
    found: list[Row] = pickle.loads(_pickled())
    return iter(found)


@functools.cache
def _pickled() -> bytes:
    return pickle.dumps(list(_read()))


def _read() -> Iterator[Row]:
    for file in sorted(FOLDER.glob("*.yaml")):
        table = tables.table(f"webhook/{file.stem}")
        for case in table["cases"]:
            yield _row(f"{file.stem}: {case['id']}: {case['title']}", table, case)


def _row(name: str, table: Raw, case: Raw) -> Row:
    path = table["path"]
    operation = str(case.get("operation", table.get("operation", "CREATE")))
    template = table.get("template")
    old = _complete(merged(table["object"], case.get("old", {})), template)
    new = _complete(merged(old, case.get("merge", {})), template)
    asked = request(path, new, operation, old if operation == "UPDATE" or "old" in case else None)
    if "old" in case and operation == "CREATE":  # a table of creations with rows that are updates
        asked["operation"] = "UPDATE"
    if operation == "DELETE" and not case.get("keep_object"):
        asked["object"] = None
    asked["name"] = case.get("name", asked["name"])
    if not asked["namespace"]:
        asked["namespace"] = case.get("namespace", old["metadata"].get("namespace", ""))
    asked["resource"] = case.get("resource", asked["resource"])
    if "subResource" in case:
        asked["subResource"] = case["subResource"]
    state = {"queues": table["queues"]} | table.get("state", {}) | case.get("state", {})
    assignments = (*table.get("settings", ()), *case.get("settings", ()))
    settings = AdmissionSettings.from_assignments(assignments)
    conf = yaml.dump(case.get("conf", table.get("conf")), Dumper=yaml.CSafeDumper).encode()
    return Row(name, path, assignments, settings, list(_state(state)), conf, asked, case)


def _complete(job: Raw, template: Raw | None) -> Raw:
    """Give tasks without a template the table's."""
    spec = job.get("spec")
    if template is not None and isinstance(spec, dict):
        for task in spec.get("tasks") or ():
            task.setdefault("template", copy.deepcopy(template))
    return job


def _state(state: Raw) -> Iterator[Raw]:
    for key, kind in STATE_KINDS.items():
        for each in state.get(key, ()):
            yield {"apiVersion": kind.api_version, "kind": kind.kind} | each


def answer(admission: Admission, path: str, asked: Raw) -> Raw:
    """The response to a request; the envelope is looked over on the way."""
    found = json.loads(admission.review(path, review(asked)))
    assert found["apiVersion"] == "admission.k8s.io/v1"
    assert found["kind"] == "AdmissionReview"
    assert found["response"]["uid"] == asked["uid"]
    response: Raw = found["response"]
    return response


def operations(response: Raw) -> list[Raw]:
    """The operations of a response's patch, none when there is no patch."""
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    found: list[Raw] = json.loads(base64.b64decode(response["patch"]))
    return found


def patched(obj: Raw, response: Raw) -> Raw:
    """An object after a response's patch."""
    changed: Raw = jsonpatch.apply_patch(obj, operations(response))
    return changed
