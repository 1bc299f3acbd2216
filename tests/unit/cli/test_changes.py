"""Differences are told field by field, in the words of field errors."""

from typing import Any

import pytest

from pumice.cli.files.changes import changes


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["a: 1 → 2"]),
        ({}, {"a": {"b": [], "c": {}}}, ["a.b: [] added", "a.c: {} added"]),
        ({"a": 1, "b": 2}, {"b": 2}, ["a: 1 removed"]),
        ({"a": [{"x": 1}]}, {"a": [{"x": 2}, 3]}, ["a[0].x: 1 → 2", "a[1]: 3 added"]),
        ({"a": {}}, {"a": {"volcano.sh/x": "y"}}, ['a[volcano.sh/x]: "y" added']),
        ({"a": 1}, {"a": True}, ["a: 1 → true"]),
        ({"a": None}, {"a": {}}, ["a: null → {}"]),
    ],
)
def test_changes(before: Any, after: Any, lines: list[str]) -> None:
    assert [str(change) for change in changes(before, after)] == lines


def test_long_values_are_cut() -> None:
    [change] = changes({}, {"a": "x" * 500})
    assert len(str(change)) < 100
    assert "…" in str(change)
