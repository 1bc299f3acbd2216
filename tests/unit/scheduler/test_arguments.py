"""Arguments of plugins: types, defaults, complaints."""

from typing import Any

import pytest

from pumice.scheduler.arguments import Arguments, SchedulerArgument
from tests.unit.scheduler.scenes import load_cases

ROWS = [
    (kind, *row)
    for kind in ("integer", "number", "flag", "text")
    for row in load_cases("arguments.yaml", kind)
]


@pytest.mark.parametrize(("kind", "given", "default", "expected"), ROWS)
def test_getters(kind: str, given: Any, default: Any, expected: Any) -> None:
    declared = (SchedulerArgument("a", default, "An argument."),)
    arguments = Arguments({} if given is None else {"a": given}, declared, "here")
    read = getattr(arguments, kind)("a")
    assert read == expected
    assert type(read) is type(expected)
    is_used = given is not None and arguments.is_set("a")
    assert bool(arguments.warnings) is (given is not None and not is_used)


def test_a_wrong_type_is_named_with_path_value_and_default() -> None:
    arguments = Arguments(
        {"w": "10"}, (SchedulerArgument("w", 1, "Weight."),), "tiers[1].arguments"
    )
    assert arguments.warnings == (
        'tiers[1].arguments.w: must be an integer without quotes, found the string "10"; the default 1 stays',
    )


def test_an_unknown_argument_is_named_with_a_guess() -> None:
    arguments = Arguments(
        {"binpack.wieght": 1}, (SchedulerArgument("binpack.weight", 1, "Weight."),)
    )
    assert arguments.warnings == (
        'arguments.binpack.wieght: unknown argument, ignored (did you mean "binpack.weight"?)',
    )


def test_an_absent_argument_is_said_to_be_absent() -> None:
    arguments = Arguments({"x": 1}, (SchedulerArgument("x", 1, "Later.", is_absent=True),))
    assert arguments.warnings == ("arguments.x: not part of this version, ignored",)


def test_prefixes_stand_for_any_name() -> None:
    arguments = Arguments({"r.gpu": 7}, (SchedulerArgument("r.", 1, "Weight.", is_prefix=True),))
    assert (arguments.integer("r.gpu"), arguments.integer("r.foo")) == (7, 1)
    assert arguments.warnings == ()


def test_choices_are_the_only_texts() -> None:
    mode = SchedulerArgument("mode", "a", "Mode.", choices=("a", "b"))
    assert Arguments({"mode": "b"}, (mode,)).text("mode") == "b"
    arguments = Arguments({"mode": "c"}, (mode,))
    assert arguments.text("mode") == "a"
    assert arguments.warnings == (
        "arguments.mode: must be a or b, found the string \"c\"; the default 'a' stays",
    )


def test_asking_for_what_is_not_declared_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="nothing is not declared"):
        Arguments({}, ()).integer("nothing")


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("good", ()),
        ("bad", (("here.x", "must be good"),)),
        (1, (("here.x", "must be a string, in quotation marks, found the integer 1"),)),
    ],
)
def test_a_value_that_cannot_be_used_is_a_problem(value: object, problems: object) -> None:
    def problem(text: str) -> str | None:
        return "must be good" if text == "bad" else None

    declared = (SchedulerArgument("x", "good", "A text.", problem=problem),)
    arguments = Arguments({"x": value}, declared, "here")
    assert (arguments.problems, arguments.warnings) == (problems, ())
