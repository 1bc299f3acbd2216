"""What is said about settings and configuration files, whatever they are about."""

from typing import Any, Literal

import pytest
from pydantic import Field

from pumice.api.setting_errors import SettingError
from pumice.settings import FilePart, read, read_leniently


class Inner(FilePart):
    kind: Literal["first", "second"] = "first"
    most_pods: int = 1
    weights: dict[str, float] = Field(default={})


class File(FilePart):
    is_on: bool = False
    parts: list[Inner] = Field(default=[])


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ([], ["must be an object, found a list"]),
        ({"isOn": "yes"}, ['isOn: must be true or false, found the string "yes"']),
        ({"parts": {}}, ["parts: must be a list, found an object"]),
        ({"is_on": True}, ['is_on: unknown key (did you mean "isOn"?)']),
        ({"x": None}, ["x: unknown key, known are isOn, parts"]),
        ({1: 2}, ["must have strings as keys, found the integer 1"]),
        (
            {"parts": [{"kind": "frist", "mostPod": 2}, 5]},
            [
                'parts[0].kind: must be first or second, found the string "frist" (did you mean "first"?)',
                'parts[0].mostPod: unknown key (did you mean "mostPods"?)',
                "parts[1]: must be an object, found the integer 5",
            ],
        ),
        ({"parts": [{"weights": {"a": "x"}}]}, ['parts[0].weights.a: must be a number, found the string "x"']),
        ({"parts": [{"mostPods": 1.5}]}, ["parts[0].mostPods: must be an integer, found the number 1.5"]),
        ({"parts": [{"mostPods": True}]}, ["parts[0].mostPods: must be an integer, found the boolean true"]),
    ],
)  # fmt: skip
def test_each_problem_is_a_line_with_path_expectation_and_finding(
    value: Any, lines: list[str]
) -> None:
    with pytest.raises(SettingError) as caught:
        read(File, value)
    assert str(caught.value).splitlines() == lines


HUGE = 16**9000


@pytest.mark.parametrize(
    "value", [{"isOn": HUGE}, {"isOn": "x" * 10**6}, {"x" * 10**6: 1}, {"a\x1b[2J\n": "\x1b[2J"}]
)
def test_a_line_is_short_and_does_nothing_to_a_terminal(value: Any) -> None:
    with pytest.raises(SettingError) as caught:
        read(File, value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400
    assert "pydantic" not in str(caught.value)


def test_null_counts_as_left_out() -> None:
    assert read(File, {"isOn": True, "parts": None}) == read(File, {"isOn": True})


def test_unknown_keys_may_be_ignored_but_not_what_else_is_wrong() -> None:
    part = {"kindd": "second", "mostPods": 2}
    found, warnings = read_leniently(File, {"parts": [part, part], "y": {}})
    assert [each.most_pods for each in found.parts] == [2, 2]
    assert [str(each) for each in warnings] == [
        'parts[0].kindd: unknown key, ignored (did you mean "kind"?)',
        'parts[1].kindd: unknown key, ignored (did you mean "kind"?)',
        "y: unknown key, ignored, known are isOn, parts",
    ]
    with pytest.raises(
        SettingError, match=r"^isOn: must be true or false, found the integer 1$"
    ) as caught:
        read_leniently(File, {"isOn": 1, "y": 2})
    assert [str(each) for each in caught.value.warnings] == [
        "y: unknown key, ignored, known are isOn, parts"
    ]
