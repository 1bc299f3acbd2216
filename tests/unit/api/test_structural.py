"""Structural schemas: checking, defaulting and pruning raw objects."""

import copy
from typing import Any

import pytest

from pumice.api import structural
from pumice.api.crds import all_crds
from tests.kit.builders import job
from tests.kit.tables import table


def rows(name: str) -> list[Any]:
    return [pytest.param(row, id=row["name"]) for row in table(f"structural/{name}")]


def job_schema() -> structural.Structural:
    [crd] = [each for each in all_crds() if each["spec"]["names"]["kind"] == "Job"]
    return structural.compile(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


@pytest.mark.parametrize("row", rows("validation"))
def test_validation_names_every_violation(row: dict[str, Any]) -> None:
    errors = structural.Structural(row["schema"]).validate(row["value"])

    found = [[error.path, error.code, error.message] for error in errors]
    assert found == row.get("errors", [])


@pytest.mark.parametrize("row", rows("defaults"))
def test_defaults_are_written(row: dict[str, Any]) -> None:
    schema = structural.Structural(row["schema"])
    result = schema.default(copy.deepcopy(row["value"]))

    assert result == row["result"]
    assert schema.default(copy.deepcopy(result)) == result


@pytest.mark.parametrize("row", rows("pruning"))
def test_unknown_fields_are_dropped_and_named(row: dict[str, Any]) -> None:
    value = copy.deepcopy(row["value"])

    dropped = structural.Structural(row["schema"]).prune_paths(value)

    assert value == row["result"]
    assert sorted(dropped) == sorted(row["dropped"])


def test_defaults_of_two_objects_are_not_shared() -> None:
    schema = {"type": "object", "properties": {"list": {"type": "array", "default": []}}}
    compiled = structural.Structural(schema)
    first, second = compiled.default({}), compiled.default({})

    first["list"].append(1)

    assert second == {"list": []}


def test_paths_begin_with_the_path_given() -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"b": {"type": "integer"}}}

    errors = structural.Structural(schema).validate({"b": "x"}, "spec.tasks[0]")

    assert [error.path for error in errors] == ["spec.tasks[0].a", "spec.tasks[0].b"]


def test_a_whole_object_keeps_kind_and_metadata() -> None:
    schema = structural.compile({"type": "object", "properties": {"spec": {"type": "object"}}})
    obj = {"apiVersion": "v1", "kind": "Foo", "metadata": {"name": "x", "colour": "red"}, "foo": 1}

    dropped = schema.prune_paths(obj)

    assert sorted(dropped) == ["foo", "metadata.colour"]
    assert obj == {"apiVersion": "v1", "kind": "Foo", "metadata": {"name": "x"}}
    assert schema.validate(obj) == []


def test_a_job_is_defaulted_and_keeps_its_pod_templates() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i", "younger": {"than": "us"}}]}}
    obj = job(tasks=[{"name": "t", "replicas": 1, "template": template, "typo": 1}])
    schema = job_schema()

    dropped = schema.prune_paths(obj)
    schema.default(obj)

    assert dropped == ["spec.tasks[0].typo"]
    assert obj["spec"]["queue"] == "default"
    assert obj["spec"]["tasks"][0]["template"] == template
    assert schema.validate(obj) == []
