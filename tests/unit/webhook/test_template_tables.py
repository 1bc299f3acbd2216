"""Tables of checks of pod templates: what rows name, what they judge, and in which order."""

from typing import Any

import pytest

from pumice.plugins import builtin
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.templates.shapes import FieldRule
from pumice.webhook.rules.templates.table import Row, Site, below, compiled, compiled_by_field
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot

RULE = FieldRule("TPL-EXAMPLE", "an example", "None.", "a: 1")
ROWS = (
    Row("a|b", RULE.within(1, 9)),
    Row("list", RULE.unique("name")),
    Row("list[].name", RULE.required(), ""),
    Row("list[].inner[]", RULE.one_of("x", "y")),
    *below("deep", Row("", RULE.required(), ()), Row("c", RULE.within(1, 1), 0)),
)


def paths(found: Any, check: Any = None) -> list[str]:
    case = Case(AdmissionSettings(), Snapshot(), builtin())
    (check or compiled(*ROWS))(Site(case, "t"), found, "", {})
    return [error.path.removeprefix("t.") for error in case.errors]


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        ({"a": 1, "b": 9, "deep": {"c": 1}, "unknown": 0}, []),
        ({"b": 0, "a": 10, "deep": {"c": 1}}, ["a", "b"]),
        ({"deep": {"d": 1}}, ["deep.c"]),
        ({}, ["deep"]),
        ({"list": [], "deep": {"c": 1}}, []),
        ({"list": [{"name": "n"}, {}, {"name": "n"}], "deep": {"c": 1}}, ["list[2].name", "list[1].name"]),
        ({"list": [{"name": "n", "inner": ["x", "z"]}], "deep": {"c": 1}}, ["list[0].inner[1]"]),
    ],
)  # fmt: skip
def test_rows_judge_what_they_name_in_the_order_of_the_table(found: Any, wrong: list[str]) -> None:
    assert paths(found) == wrong


def test_a_table_by_field_judges_in_the_order_of_the_object() -> None:
    check = compiled_by_field(*ROWS[:1])
    assert paths({"b": 0, "other": 0, "a": 0}, check) == ["b", "a"]
