from typing import Any

import msgspec
import pytest

from pumice.api import kinds
from pumice.api.fields import FieldError
from pumice.webhook.rules.case import unaffected
from pumice.webhook.rules.paths import Within, value_at, without
from pumice.webhook.schema_problems import COMPARING, schema, type_problems
from tests.kit.builders import job


@pytest.mark.parametrize(
    ("paths", "rest"),
    [
        (["a"], {"b": [{"c": 1}, {"d": {"e": 2}}]}),
        (["b[1].d.e"], {"a": 1, "b": [{"c": 1}, {"d": {}}]}),
        (["b[0]", "b[1].d"], {"a": 1, "b": [{}, {}]}),
        (["b[7]", "x.y", "a.b", "b.c"], {"a": 1, "b": [{"c": 1}, {"d": {"e": 2}}]}),
        ([""], {"a": 1, "b": [{"c": 1}, {"d": {"e": 2}}]}),
    ],
)
def test_fields_are_taken_out_of_a_copy(paths: list[str], rest: Any) -> None:
    whole = {"a": 1, "b": [{"c": 1}, {"d": {"e": 2}}]}
    assert without(whole, paths) == rest
    assert whole == {"a": 1, "b": [{"c": 1}, {"d": {"e": 2}}]}


def trusted(found: list[FieldError], dropped: list[str]) -> list[FieldError]:
    return unaffected(found, Within(dropped), COMPARING)


def test_what_the_missing_field_may_have_caused_is_not_trusted() -> None:
    kept = FieldError("spec.plugins.x", "", "JOB-PLUGIN")
    found = [
        kept,
        FieldError("spec.minAvailable", "", "JOB-MINAVAIL-TOTAL"),
        FieldError("spec.tasks[0].name", "", "JOB-TASK-NAME"),
        FieldError("spec.tasks[0]", "", "JOB-TASK-NAME"),
    ]
    assert trusted(found, ["spec.tasks[0]"]) == [kept]
    assert trusted(found, ["spec.tasks[01]", "spec.task"])[0] == kept


def test_what_holds_a_missing_field_may_lack_it() -> None:
    around = FieldError("spec.policies[0]", "", "POL-NOTHING")
    beside = FieldError("spec.policies[0].action", "", "POL-BAD-ACTION")
    assert trusted([around, beside], ["spec.policies[0].exitCode"]) == [beside]
    assert trusted([around], ["spec.policies[1].exitCode"]) == [around]


def test_what_a_template_compares_holds_beside_fields_outside_of_it() -> None:
    found = [FieldError("spec.tasks[0].template.spec.volumes[0]", "", "TPL-MOUNT")]
    assert trusted(found, ["spec.maxRetry"]) == found


def test_what_stands_at_a_path() -> None:
    whole = {"a": {"b.c": 1}, "d": [None]}
    assert value_at(whole, "d[0]") is None
    assert value_at(whole, "") == whole
    for path in ("a.b.c", "d[1]", "d.e", "d[0].e", "f", "a.", "a.[b]"):
        assert value_at(whole, path) is msgspec.UNSET


def test_only_our_own_kinds_have_a_schema() -> None:
    assert schema(kinds.JOB) is schema(kinds.JOB)
    assert schema(kinds.POD) is None


def test_a_kind_without_a_schema_tells_the_first_problem() -> None:
    error = ValueError("Expected `array`, got `int` - at `$.request.object.spec.containers`")
    assert type_problems(kinds.POD, {}, error) == [
        FieldError(
            "spec.containers",
            'Invalid value: "integer": spec.containers in body must be of type array: "integer"',
            "SCHEMA-TYPE",
            "FieldValueTypeInvalid",
        )
    ]
    assert type_problems(kinds.POD, {}, ValueError("broken"))[0].message == "broken"


def test_a_kind_with_a_schema_tells_all() -> None:
    raw = job(maxRetry="3", volumes={})
    found = type_problems(kinds.JOB, raw, ValueError(""))
    assert {each.path: each.message for each in found} == {
        "spec.maxRetry": 'json: cannot unmarshal the string "3" into an integer; leave out the quotes',
        "spec.volumes": "json: cannot unmarshal an object into a list; write []",
    }
