"""A field of a wrong type hides only rules that may need it, and adds nothing about other fields."""

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.webhook.offline import ManifestResult, judge
from pumice.webhook.rules.catalogue import by_code
from pumice.webhook.rules.paths import Within, steps_of, value_at
from tests.unit.webhook.reviewing import KINDS, Row, rows
from tests.unit.webhook.test_template_properties import JSON, places

Raw = dict[str, Any]

APART = {
    "Job": (
        ("spec.maxRetry", "three"),
        ("spec.ttlSecondsAfterFinished", "60"),
        ("spec.runningEstimate", 5),
        ("metadata.labels", {"a": 1}),
        ("spec.tasks[0].maxRetry", "2"),
        ("spec.tasks[0].template.spec.terminationGracePeriodSeconds", "30"),
    ),
    "Queue": (
        ("spec.reclaimable", "no"),
        ("spec.type", 1),
        ("spec.priority", "5"),
        ("metadata.labels", {"a": 1}),
    ),
    "PodGroup": (("spec.priorityClassName", 5), ("metadata.labels", {"a": 1})),
    "CronJob": (("spec.failedJobsHistoryLimit", "many"), ("metadata.labels", {"a": 1})),
    "JobFlow": (("metadata.labels", {"a": 1}),),
    "HyperNode": (("metadata.labels", {"a": 1}), ("spec.tierName", 5)),
}
"""Fields of a kind, with a value of a wrong type, that no other rule looks at."""


@cache
def _created() -> list[tuple[Row, Raw]]:
    """The objects of all rows that are creations, as files hold them."""
    found = []
    for row in rows():
        if row.request["operation"] == "CREATE" and isinstance(row.object.get("spec"), dict):
            kind = KINDS[row.path]
            whole = {"apiVersion": kind.api_version, "kind": kind.kind} | row.object
            found.append((row, json.loads(json.dumps(whole))))  # nothing is shared any more
    return found


def _told(found: ManifestResult, path: str, *, comparing: bool = True) -> set[tuple[str, str]]:
    """Path and message of each result, but for results about one field.

    Args:
        found: The results.
        path: The field.
        comparing: Include results of rules that compare fields.
    """
    inside = Within([path])
    return {
        (each.path, each.message)
        for each in (*found.errors, *found.warnings)
        if each.path not in inside
        and each.code != "TPL-DOUBTFUL"  # of two containers with one port, true on any network
        and (comparing or not (_compares(each.code, path) or inside.below(each.path)))
    }


def _compares(code: str, path: str) -> bool:
    """True if a result may need the field at a path, as pod templates and objects judge it apart."""
    rule, in_template = by_code(code), ".template." in path
    compares = rule is not None and (rule.compares or code == "JOB-ZERO")
    return compares and code.startswith("TPL-") == in_template and "metadata" not in path


def _scalars(value: Any, path: str) -> Iterator[str]:
    """Paths of all numbers and booleans."""
    if isinstance(value, bool | int):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            if "." not in key:
                yield from _scalars(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _scalars(item, f"{path}[{index}]")


@pytest.mark.parametrize("kind", sorted({row.path for row, _ in _created()}))
def test_beside_quotes_too_many_nothing_is_reported_that_would_not_be_without_them(
    kind: str,
) -> None:
    quoted = 0
    for row, right in _created():
        if row.path != kind:
            continue
        admission = row.admission()
        expected = judge(admission, copy.deepcopy(right))
        for path in _scalars(right["spec"], "spec"):
            wrong = _instead(right, path, json.dumps(value_at(right, path)))
            found = judge(admission, wrong)
            types = [each for each in found.errors if each.code in ("SCHEMA-TYPE", "TPL-TYPE")]
            if path not in [each.path for each in types]:
                continue  # a text may stand there, too
            quoted += 1
            assert _told(found, path) <= _told(expected, path), (row.name, path)
    assert quoted or kind.startswith(("/jobflows", "/pods")), "no field was quoted"


@pytest.mark.parametrize("kind", sorted({row.path for row, _ in _created()}))
def test_beside_an_annotation_without_quotes_nothing_is_reported_that_would_not_be_with_them(
    kind: str,
) -> None:
    for row, right in _created():
        annotations = right["metadata"].get("annotations") or {}
        if row.path != kind or not annotations:
            continue
        admission = row.admission()
        expected = judge(admission, copy.deepcopy(right))
        for key, value in annotations.items():
            if value not in ("true", "false", *map(str, range(1000))):
                continue
            wrong = copy.deepcopy(right)
            wrong["metadata"]["annotations"][key] = json.loads(value)
            path = f"metadata.annotations[{key}]"
            found = judge(admission, wrong)
            assert path in [each.path for each in found.errors]
            assert _told(found, path) <= _told(expected, path), (row.name, path)


@pytest.mark.parametrize("kind", sorted(APART))
def test_a_field_that_no_rule_looks_at_hides_only_rules_that_compare_fields(kind: str) -> None:
    for row, right in _created():
        if right["kind"] != kind:
            continue
        admission = row.admission()
        expected = judge(admission, copy.deepcopy(right))
        for path, value in APART[kind]:
            wrong = _with(right, path, value)
            if wrong is not None:
                found = judge(admission, wrong)
                assert _told(found, path) <= _told(expected, path), (row.name, path)
                certain = _told(found, path, comparing=False)
                assert certain == _told(expected, path, comparing=False), (row.name, path)


def _instead(right: Raw, path: str, value: Any) -> Raw:
    """An object with another value at a path."""
    wrong = copy.deepcopy(right)
    *outer, last = steps_of(path)
    here: Any = wrong
    for step in outer:
        here = here[step]
    here[last] = value
    return wrong


def _with(right: Raw, path: str, value: Any) -> Raw | None:
    """An object with another value at a path; None where there is nothing to hold it."""
    *outer, last = steps_of(path)
    wrong = copy.deepcopy(right)
    here: Any = wrong
    for step in outer:
        try:
            here = here[step]
        except (LookupError, TypeError):
            return None
    if not isinstance(here, dict):
        return None
    here[str(last)] = {**(here.get("labels") or {}), **value} if last == "labels" else value
    return wrong


@settings(deadline=None)
@given(st.data(), JSON)
def test_no_rule_raises_offline_on_any_json_in_any_place(data: st.DataObject, value: Any) -> None:
    row, right = data.draw(st.sampled_from(_created()))
    wrong = copy.deepcopy(right)
    holder, key = data.draw(st.sampled_from(list(places(wrong))))
    holder[key] = value
    before = json.dumps(wrong)
    admission = row.admission()

    first = judge(admission, wrong)
    assert json.dumps(wrong) == before
    assert judge(admission, wrong) == first
