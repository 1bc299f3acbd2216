from collections.abc import Callable

import pytest

from pumice.plugins import builtin
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.ratchet import judge_update
from pumice.webhook.rules.rule import Rule
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot

RULE = Rule("JOB-A", "a", "b.", "c")
OTHER = Rule("JOB-B", "a", "b.", "c")
DOUBT = Rule("JOB-C", "a", "b.", "c", level="warn")

Judge = Callable[[Case], object]


def brought(new: Judge, old: Judge, covered: tuple[str, ...] = ()) -> list[str]:
    """Codes and paths of what an update is told."""
    case = Case(AdmissionSettings(), Snapshot(), builtin(), creating=False)
    judge_update(case, new, old, covered=covered)  # type: ignore[arg-type]
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
def test_an_update_is_told_what_it_brings(new: Judge, old: Judge, told: bool) -> None:
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
    def new(case: Case) -> None:
        case.queue("gone")
        case.crashed("JOB-A", ValueError("x"))

    case = Case(AdmissionSettings(), Snapshot(), builtin(), creating=False)
    judge_update(case, new, nothing)
    assert case.missing_queues == ["gone"]
    assert [code for code, _ in case.crashes] == ["JOB-A"]
    assert [error.code for error in case.errors] == ["JOB-A"]
