"""Selectors, owners and times."""

import msgspec
import pytest

from pumice.api.meta import LabelSelector, ObjectMeta, controller_of, format_time, parse_time


@pytest.mark.parametrize(
    ("operator", "values", "labels", "selected"),
    [
        ("In", ["a"], {"k": "a"}, True),
        ("In", ["a"], {"k": "b"}, False),
        ("In", ["a"], {}, False),
        ("NotIn", ["a"], {"k": "a"}, False),
        ("NotIn", ["a"], {}, True),
        ("Exists", None, {"k": ""}, True),
        ("Exists", None, {}, False),
        ("DoesNotExist", None, {}, True),
        ("DoesNotExist", None, {"k": ""}, False),
        ("Nonsense", None, {"k": ""}, False),
    ],
)
def test_selector_expressions(
    operator: str, values: list[str] | None, labels: dict[str, str], selected: bool
) -> None:
    expression = {"key": "k", "operator": operator} | ({"values": values} if values else {})
    selector = msgspec.convert({"matchExpressions": [expression]}, LabelSelector)
    assert selector.matches(labels) is selected


def test_labels_and_expressions_must_all_hold() -> None:
    selector = LabelSelector(match_labels={"a": "1", "b": "2"})
    assert selector.matches({"a": "1", "b": "2", "c": "3"})
    assert not selector.matches({"a": "1"})
    assert LabelSelector().matches({})


def test_the_controller_is_the_owner_that_manages() -> None:
    owners = [{"name": "x"}, {"name": "y", "controller": True}]
    owner = controller_of(msgspec.convert({"ownerReferences": owners}, ObjectMeta))
    assert owner is not None
    assert owner.name == "y"
    assert controller_of(ObjectMeta()) is None


def test_times_read_and_write_as_kubernetes_does() -> None:
    assert parse_time("1970-01-01T00:01:00Z") == 60.0
    assert parse_time("1970-01-01T01:00:00.5+01:00") == 0.5
    assert parse_time("1970-01-01T00:01:00") == 60.0
    assert parse_time("yesterday") is None
    assert parse_time(None) is None
    assert format_time(60.9) == "1970-01-01T00:01:00Z"
    assert format_time(86_399.9) == "1970-01-01T23:59:59Z"
    assert format_time(951_782_400) == "2000-02-29T00:00:00Z"
    assert format_time(-0.1) == "1969-12-31T23:59:59Z"
    assert format_time(-62135596800) == "0001-01-01T00:00:00Z"
