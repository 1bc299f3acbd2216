"""Steps of a plan: patches from what is stored to what is wanted, and plans without a step."""

from typing import Any

import pytest

from pumice.api.kinds import CONFIG_MAP
from pumice.controller.plan import CreateObject, Plan, RequeueAfter, contains, difference

Raw = dict[str, Any]


@pytest.mark.parametrize(
    ("stored", "wanted", "patch"),
    [
        ({"a": 1, "more": 2}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"spec": {"x": 1}}, {"spec": {"y": 2}}, {"spec": {"y": 2}}),
        ({"ports": [{"p": 1, "nodePort": 9}]}, {"ports": [{"p": 1}]}, {}),
        ({"ports": [{"p": 1}]}, {"ports": [{"p": 1}, {"p": 2}]}, {"ports": [{"p": 1}, {"p": 2}]}),
        ({}, {"empty": "", "no": False, "none": [], "map": {}}, {}),
        ({"flag": True}, {"flag": False}, {"flag": False}),
        ({"data": {"a": "1", "b": "2"}}, {"data": {"a": "1"}}, {"data": {"b": None}}),
        ({"labels": {"a": "1", "b": "2"}}, {"labels": {"a": "1"}}, {}),
        ({"data": "text"}, {"data": {"a": "1"}}, {"data": {"a": "1"}}),
    ],
)
def test_difference(stored: Raw, wanted: Raw, patch: Raw) -> None:
    assert difference(stored, wanted, ("data",)) == patch


def test_what_is_wanted_contains_itself() -> None:
    value = {"a": [{"b": {"c": 1}}], "d": "x"}
    assert contains(value, value)


def test_a_plan_that_only_waits_is_empty() -> None:
    assert not Plan.of([], [RequeueAfter(3)])
    assert Plan.of([CreateObject(CONFIG_MAP, {})])
