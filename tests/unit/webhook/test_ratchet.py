from collections.abc import Callable
from typing import Any

import pytest

from pumice.plugins import builtin
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.updates import judge_update
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot

RULE = Rule("JOB-A", "a", "b.", "c")
OTHER = Rule("JOB-B", "a", "b.", "c")
DOUBT = Rule("JOB-C", "a", "b.", "c", level="warn")

Raw = dict[str, Any]
Judge = Callable[[Case], object]


def brought(new: Judge, old: Judge, covered: tuple[str, ...] = ()) -> list[str]:
    """Codes and paths of what an update is told, whatever there is to judge."""
    case = Case(AdmissionSettings(), Snapshot(), builtin(), creating=False)
    judges = {"new": new, "old": old}
    checks = ((RULE, lambda case, which: judges[which](case)),)
    judge_update(case, checks, "new", "old", covered=covered)  # type: ignore[arg-type]
    return told_by(case)


def told_by(case: Case) -> list[str]:
    return [f"{found.code} {found.path}" for found in (*case.errors, *case.warnings)]


def says(rule: Rule, path: str, message: str = "is wrong", excess: int | None = None) -> Judge:
    return lambda case: case.report(rule, path, message, excess=excess)


def nothing(case: Case) -> None:
    pass


@pytest.mark.parametrize(
    ("new", "old", "told"),
    [
        (says(RULE, "a"), nothing, True),
        (says(RULE, "a"), says(RULE, "a"), False),
        (says(RULE, "a"), says(RULE, "b"), True),
        (says(RULE, "a"), says(OTHER, "a"), True),
        (says(RULE, "a", "found x"), says(RULE, "a", "found y"), True),
        (says(RULE, "a", "by 3", 3), says(RULE, "a", "by 3", 3), False),
        (says(RULE, "a", "9 of 6", 3), says(RULE, "a", "8 of 5", 3), False),
        (says(RULE, "a", "by 2", 2), says(RULE, "a", "by 3", 3), False),
        (says(RULE, "a", "by 4", 4), says(RULE, "a", "by 3", 3), True),
        (says(RULE, "a", "by 3", 3), says(RULE, "b", "by 3", 3), True),
        (says(RULE, "a", "by 3", 3), says(OTHER, "a", "by 3", 3), True),
        (says(RULE, "a", "by 3", 3), says(RULE, "a", "is no number"), True),
        (says(DOUBT, "a", "by 2", 2), says(DOUBT, "a", "by 3", 3), False),
        (says(DOUBT, "a", "by 4", 4), says(DOUBT, "a", "by 3", 3), True),
    ],
)
def test_an_update_is_refused_for_what_it_brings(new: Judge, old: Judge, told: bool) -> None:
    assert bool(brought(new, old)) == told


def test_what_is_refused_already_is_not_judged_besides() -> None:
    def new(case: Case) -> None:
        for path in ("spec.a", "spec.a.b", "spec.a[0].b", "spec.ab", "spec"):
            case.report(RULE, path, "is wrong")

    assert brought(new, nothing, ("spec.a",)) == ["JOB-A spec.ab", "JOB-A spec"]


def test_the_stored_object_is_judged_only_where_something_is_wrong() -> None:
    def never(case: Case) -> None:
        raise AssertionError("nobody asked")

    assert brought(nothing, never) == []


def test_looked_up_queues_and_crashes_are_kept() -> None:
    def check(case: Case, subject: str) -> None:
        if subject == "new":
            case.queue("gone")
            raise ValueError("x")

    case = Case(AdmissionSettings(), Snapshot(), builtin(), creating=False)
    judge_update(case, ((RULE, check),), "new", "old")
    assert case.missing_queues == ["gone"]
    assert [code for code, _ in case.crashes] == ["JOB-A"]
    assert [error.code for error in case.errors] == ["JOB-A"]


def test_what_cannot_be_judged_is_refused_although_it_never_could() -> None:
    def crashing(case: Case) -> None:
        case.crashed("JOB-A", ValueError("x"))

    assert brought(crashing, crashing) == ["JOB-A "]


def even(case: Case, subject: Raw) -> None:
    for index, number in enumerate(subject["spec"]):
        if number % 2:
            case.report(RULE, f"spec[{index}]", f"must be even, found {number}")


def there_once(case: Case, subject: Raw) -> None:
    numbers = subject["spec"]
    for index, number in enumerate(numbers):
        if (first := numbers.index(number)) < index:
            case.report(OTHER, f"spec[{index}]", f"is there already, at position [{first}]")


def told_of(checks: tuple[Callable[[Case, Raw], None], ...], old: Raw, new: Raw) -> list[str]:
    """Codes and paths of what an update of an object is told."""
    case = Case(AdmissionSettings(), Snapshot(), builtin(), creating=False)
    judge_update(case, [(RULE, check) for check in checks], new, old)
    return told_by(case)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ([1, 3, 5], [3, 5], []),
        ([1, 3, 5], [5, 3, 1], []),
        ([1, 3], [2, 1, 3], []),
        ([1, 3], [1, 2, 3], []),
        ([1, 3], [3, 7], ["JOB-A spec[1]"]),
        ([1, 3], [5, 1, 3], ["JOB-A spec[0]"]),
        ([1], [1, 1], ["JOB-A spec[1]", "JOB-B spec[1]"]),
        ([2, 4, 4], [4, 4], []),
        ([2, 4, 4], [4, 4, 4], ["JOB-B spec[1]", "JOB-B spec[2]"]),
        ([4, 2], [4, 5], ["JOB-A spec[1]"]),
    ],
)
def test_an_item_that_moves_is_not_touched(old: list[int], new: list[int], told: list[str]) -> None:
    assert told_of((even, there_once), {"spec": old}, {"spec": new}) == told


def test_an_excess_moves_with_its_item() -> None:
    def large(case: Case, subject: Raw) -> None:
        by = subject["by"]
        index = subject["spec"].index({"b": 2})
        case.report(RULE, f"spec[{index}].b", f"by {by} in spec", excess=by)

    old = {"by": 3, "spec": [{"a": 1}, {"b": 2}]}
    for now, told in ((2, False), (3, False), (4, True)):
        assert bool(told_of((large,), old, {"by": now, "spec": [{"b": 2}]})) == told


def test_what_stands_may_be_judged_otherwise() -> None:
    case = Case(AdmissionSettings(), Snapshot(), builtin(), creating=False)
    number = {"spec": [1]}
    judge_update(case, ((RULE, even),), number, number, standing=())
    assert told_by(case) == ["JOB-A spec[0]"]
