"""Ratcheting: an update is judged by what it touches.

An object may have been admitted by an older version, by other settings, or before there was
admission. It must still be possible to label, scale and delete it, so a problem that was there before
the update, word for word, is not held against the update.
"""

from collections.abc import Callable, Collection

from pumice.api.fields import FieldError
from pumice.webhook.rules.case import Case

__all__ = ["judge_update"]


def judge_update(
    case: Case,
    judge_new: Callable[[Case], None],
    judge_old: Callable[[Case], None],
    *,
    covered: Collection[str] = (),
) -> None:
    """Judge an update and keep only the problems that it brings.

    Args:
        case: Where new problems go.
        judge_new: Judges the object as it would be.
        judge_old: Judges it as it is; called only when the former found anything.
        covered: Paths of which the case says already that they must not change; what is wrong
            with their new values goes without saying.
    """
    after = case.sibling()
    judge_new(after)
    case.missing_queues.extend(after.missing_queues)
    case.crashes.extend(after.crashes)
    if not after.errors and not after.warnings:
        return
    before = case.sibling()
    judge_old(before)
    case.errors.extend(_brought(after.errors, before.errors, covered))
    case.warnings.extend(_brought(after.warnings, before.warnings, covered))


def _brought(
    after: list[FieldError], before: list[FieldError], covered: Collection[str]
) -> list[FieldError]:
    standing = set(before)
    return [
        found
        for found in after
        if found not in standing and not any(_within(found.path, path) for path in covered)
    ]


def _within(path: str, parent: str) -> bool:
    return path == parent or path.startswith((f"{parent}.", f"{parent}["))
