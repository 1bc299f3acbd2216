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
how much they are broken.
"""

from collections.abc import Callable, Collection

from pumice.api.fields import FieldError
from pumice.api.suggestions import Suggestions
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.within import Within

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

    def brought(found: FieldError) -> bool:
        if found in standing or found.path in inside:
            return False
        place = found.code, found.path
        was, now = before.excesses.get(place), after.excesses.get(place)
        return was is None or now is None or now > was

    case.errors.extend(filter(brought, after.errors))
    case.warnings.extend(filter(brought, after.warnings))


def _judged(case: Case, judge: Callable[[Case], None], suggestions: Suggestions) -> Case:
    judged = case.sibling(suggestions)
    judge(judged)
    return judged
