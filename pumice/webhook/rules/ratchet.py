"""Ratcheting: an update is judged by what it touches.

An object may have been admitted by an older version, by other settings, or before there was
admission. It must still be possible to label, scale and delete it, so the object is judged as it is
and as it would be, and of the problems of the latter only those count that the update brings:

- there was none of this code at this place, or
- there was one that can be measured (`Case.report(…, excess=)`) and it grew, or
- there was one that cannot be measured and it reads differently now, since the field has another
  value that is wrong, too.

So a Job with more `minAvailable` than pods can get more pods although still not enough, which changes
the message; it cannot get fewer. Rules whose message holds numbers that an update may change report by
how much they are broken. And of two bad items of a list one can go, although the other moves up.
"""

import re
from collections.abc import Collection
from typing import TypeVar

from pumice.api.fields import FieldError
from pumice.api.suggestions import Suggestions
from pumice.webhook.rules.case import Case, Check, run
from pumice.webhook.rules.moved import Moved
from pumice.webhook.rules.within import Within

__all__ = ["judge_update"]

T = TypeVar("T")

_NUMBER = re.compile(r"\[\d+\]")
"""The position of an item, in a message."""


def judge_update(
    case: Case,
    checks: Collection[Check[T]],
    new: T,
    old: T,
    *,
    standing: Collection[Check[T]] | None = None,
    covered: Collection[str] = (),
) -> None:
    """Judge an update and keep only the problems that it brings.

    Args:
        case: Where new problems go.
        checks: What is judged.
        new: The object as it would be.
        old: The object as it is; judged only when anything was found in the former.
        standing: What the object as it is is judged by, where that is not the same.
        covered: Paths of which the case says already that they must not change; what is wrong
            with their new values goes without saying.
    """
    after = _judged(case, checks, new, Suggestions())
    case.missing_queues.extend(after.missing_queues)
    case.crashes.extend(after.crashes)
    if not after.errors and not after.warnings:
        return
    standing = checks if standing is None else standing
    if not after.suggestions.spent:
        before = _judged(case, standing, old, Suggestions())
    if after.suggestions.spent or before.suggestions.spent:
        # Some problems have a suggestion, others went without: they compare only without any.
        after = _judged(case, checks, new, Suggestions(0))
        before = _judged(case, standing, old, Suggestions(0))
    inside = Within(covered)
    known = {*before.errors, *before.warnings}
    anywhere = {_unnumbered(each, each.path) for each in known}
    moved = Moved(old, new)

    def brought(found: FieldError) -> bool:
        if after.is_crash(found):
            return True  # nobody has judged the update, though the same was so before
        if found.path in inside:
            return False
        path = moved.before(found.path)
        if path is None:
            return True
        if found in known if path == found.path else _unnumbered(found, path) in anywhere:
            return False
        was = before.excesses.get((found.code, path))
        now = after.excesses.get((found.code, found.path))
        return was is None or now is None or now > was

    case.errors.extend(filter(brought, after.errors))
    case.warnings.extend(filter(brought, after.warnings))


def _unnumbered(found: FieldError, path: str) -> tuple[str, str, str]:
    """A problem at a path, whatever positions its message names, which may have moved, too."""
    return found.code, path, _NUMBER.sub("[]", found.message)


def _judged(case: Case, checks: Collection[Check[T]], subject: T, suggestions: Suggestions) -> Case:
    judged = case.sibling(suggestions)
    run(judged, checks, subject)
    return judged
