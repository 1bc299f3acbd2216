"""An object that breaks a rule can still be labelled, released, deleted and applied again, whatever the rule."""

import copy
import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.resource_group_file import parse
from pumice.webhook.rules import catalogue
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import job, queue
from tests.unit.webhook.reviewing import (
    Raw,
    Row,
    answer,
    operations,
    patched,
    request,
    reraise,
    rows,
)
from tests.unit.webhook.template_rows import template_rows

PATHS = {each.path for each in REGISTRATIONS}
STRICTEST: Any = {rule.code: "enforce" for rule in catalogue.ALL}
NO_GROUPS = b"null\n"


@functools.cache
def strictest(assignments: tuple[str, ...]) -> AdmissionSettings:
    """Settings that enforce every rule everywhere."""
    settings = AdmissionSettings.from_assignments(assignments)
    return replace(settings, rules=STRICTEST, namespaces={}, strict_upstream=False)


@functools.cache
def broken() -> Sequence[Row]:
    """A row for each object of the tables that a user may have stored before there were rules."""
    return [*_of_tables(), *_of_templates()]


def _of_tables() -> Iterator[Row]:
    for row in rows():
        if (
            "errored" in row.expected
            or row.request["object"] is None
            or row.path.startswith("/pods/")
        ):
            continue
        settings = strictest(row.assignments)
        for obj in filter(None, (row.request["object"], row.request["oldObject"])):
            asked = row.request | {"object": obj, "oldObject": None, "operation": "CREATE"}
            yield replace(row, settings=settings, request=asked)


def _of_templates() -> Iterator[Row]:
    for template in template_rows():
        obj = job("t")
        obj["spec"]["tasks"][0]["template"] = copy.deepcopy(template.template)
        settings = strictest(tuple(template.settings))
        path, state = "/jobs/validate", [queue("default")]
        yield Row(
            template.name, path, (), settings, state, NO_GROUPS, request(path, obj), {"codes": []}
        )


def asking(row: Row) -> tuple[Admission, list[str]]:
    """What answers, and the paths that are asked about the row's kind."""
    groups, _ = parse(row.conf)
    judging = Admission(
        row.settings, Snapshot.of(row.state), builtin(), groups=groups, on_crash=reraise
    )
    kind = row.path.rpartition("/")[0]
    return judging, [path for path in (f"{kind}/mutate", f"{kind}/validate") if path in PATHS]


def updated(row: Row, new: Raw, old: Raw) -> tuple[Raw, str]:
    """The object as an update leaves it; why not, if it is refused."""
    judging, paths = asking(row)
    for path in paths:
        asked = row.request | {"operation": "UPDATE", "object": new, "oldObject": old}
        response = answer(judging, path, asked)
        if not response["allowed"]:
            return new, f"{path}: {response['status']['message']}"
        new = patched(new, response)
    return new, ""


def touched(obj: Raw) -> Iterator[Raw]:
    """The object after what anybody may do to it at any time."""
    meta = obj.get("metadata") or {}
    for change in (
        {},
        {"labels": {**(meta.get("labels") or {}), "team": "vision"}},
        {"annotations": {**(meta.get("annotations") or {}), "note": "kept"}},
        {"finalizers": ["pumice.dev/test"]},
        {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []},
    ):
        yield {**copy.deepcopy(obj), "metadata": {**meta, **change}}


TOO_LARGE = frozenset(
    [
        "FLOW-MANY",
        "JOB-ANNOTATIONS",
        "JOB-MANY-LABELS",
        "JOB-SIZE",
        "JOB-TASK-COUNT",
        "PG-MANY-LABELS",
        "TPL-MANY-LABELS",
    ]
)
"""Rules that only objects break which are too large for a row; tests of their own make them."""


OF_UPDATES = frozenset(["FLOW-UPDATE", "JOB-IMMUTABLE", "PG-QUEUE-MOVED", "Q-ROOT-FROZEN"])
"""Rules that compare an object with what is stored; no new object breaks them."""

SITUATIONS = frozenset(
    ["JOB-PLUGIN-SUBDOMAIN", "JOB-QUEUE-UNKNOWN", "PG-QUEUE-UNKNOWN", "Q-PARENT-UNKNOWN"]
)
"""Rules of a situation that no row has: parts of a Job in several places, and files without queues."""


def test_the_tables_break_nearly_every_rule() -> None:
    told = set()
    for row in broken():
        judging, paths = asking(row)
        for path in paths:
            response = answer(judging, path, row.request)
            told |= set(response.get("auditAnnotations", {}).get("rules", "").split(","))
    known = {rule.code for rule in catalogue.ALL if not rule.code.startswith(("POD-", "Q-DEL-"))}
    assert known - told - TOO_LARGE - OF_UPDATES == SITUATIONS


@pytest.mark.parametrize("path", sorted({path.rpartition("/")[0] for path in PATHS} - {"/pods"}))
def test_what_touches_no_field_passes(path: str) -> None:
    found = [row for row in broken() if row.path.rpartition("/")[0] == path]
    assert found
    for row in found:
        for new in touched(row.object):
            _, refusal = updated(row, new, copy.deepcopy(row.object))
            assert not refusal, (row.name, refusal)


def test_what_was_applied_can_be_applied_again() -> None:
    mutating = {path for path in PATHS if path.endswith("/mutate")}
    for row in broken():
        path = row.path.rpartition("/")[0] + "/mutate"
        if path not in mutating:
            continue
        judging, _ = asking(row)
        response = answer(judging, path, row.request)
        if not response["allowed"]:
            continue  # no such object can be stored
        stored = patched(copy.deepcopy(row.object), response)
        again, refusal = updated(row, copy.deepcopy(row.object), stored)
        assert not refusal, (row.name, refusal)
        assert again == stored, row.name
        kept = answer(judging, path, row.request | {"object": stored})
        assert operations(kept) == [], row.name
