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
from collections.abc import Callable, Collection

from pumice.api.fields import FieldError
from pumice.api.suggestions import Suggestions
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.moved import Moved
from pumice.webhook.rules.within import Within

__all__ = ["judge_update"]

_NUMBER = re.compile(r"\[\d+\]")
"""The position of an item, in a message."""


def judge_update(
    case: Case,
    judge_new: Callable[[Case], None],
    judge_old: Callable[[Case], None],
    *,
    covered: Collection[str] = (),
    objects: tuple[object, object] | None = None,
) -> None:
    """Judge an update and keep only the problems that it brings.

    Args:
        case: Where new problems go.
        judge_new: Judges the object as it would be.
        judge_old: Judges it as it is; called only when the former found anything.
        covered: Paths of which the case says already that they must not change; what is wrong
            with their new values goes without saying.
        objects: The object as it is and as it would be, whose paths those of problems are, so that
            items of lists are known again where they have moved; without them each is what stood
            in its place.
    """
    after = _judged(case, judge_new, Suggestions())
    case.missing_queues.extend(after.missing_queues)
    case.crashes.extend(after.crashes)
    if not after.errors and not after.warnings:
        return
    if not after.suggestions.spent:
        before = _judged(case, judge_old, Suggestions())
    if after.suggestions.spent or before.suggestions.spent:
        # Some problems have a suggestion, others went without: they compare only without any.
        after = _judged(case, judge_new, Suggestions(0))
        before = _judged(case, judge_old, Suggestions(0))
    inside = Within(covered)
    standing = {*before.errors, *before.warnings}
    anywhere = {_unnumbered(each, each.path) for each in standing} if objects is not None else ()
    moved = Moved(*objects) if objects is not None else None

    def brought(found: FieldError) -> bool:
        if after.is_crash(found):
            return True  # nobody has judged the update, though the same was so before
        if found.path in inside:
            return False
        path = found.path if moved is None else moved.before(found.path)
        if path is None:
            return True
        if found in standing if path == found.path else _unnumbered(found, path) in anywhere:
            return False
        was = before.excesses.get((found.code, path))
        now = after.excesses.get((found.code, found.path))
        return was is None or now is None or now > was

    case.errors.extend(filter(brought, after.errors))
    case.warnings.extend(filter(brought, after.warnings))


def _unnumbered(found: FieldError, path: str) -> tuple[str, str, str]:
    """A problem at a path, whatever positions its message names, which may have moved, too."""
    return found.code, path, _NUMBER.sub("[]", found.message)


def _judged(case: Case, judge: Callable[[Case], None], suggestions: Suggestions) -> Case:
    judged = case.sibling(suggestions)
    judge(judged)
    return judged
