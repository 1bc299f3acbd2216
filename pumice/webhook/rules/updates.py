"""Updates: only problems that the update brings count.

An object may have been admitted by an older version, by other settings, or before there was
admission. It must still be possible to label, scale and delete it. So both the stored and the new
object are checked, and a problem of the new one counts if

- the stored one has no problem of this code at this place, or
- the problem can be measured (`Case.report(…, excess=)`) and it grew, or
- the problem cannot be measured and its message changed, since the field has another wrong value.

So a Job whose `minAvailable` exceeds its pods can get more pods, also if they are still not enough; it cannot get
fewer. Rules whose message has numbers that an update may change report an excess.

Removing an item of a list changes the index of later items. An unchanged item is found at any index. A changed item is
compared with the one that was at its index, unless that one has moved.
"""

import re
from collections import defaultdict, deque
from collections.abc import Collection
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from pumice.api.fields import FieldError, Suggestions
from pumice.api.meta import ObjectMeta
from pumice.webhook.rules.case import Case, Check, run
from pumice.webhook.rules.paths import Within


class _UpdatedObject(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...

    @property
    def spec(self) -> object: ...


T = TypeVar("T")
AnObject = TypeVar("AnObject", bound=_UpdatedObject)

_NUMBER = re.compile(r"\[\d+\]")
"""The position of an item, in a message."""

_STEP = re.compile(r"\[(\d+)\]|\.?([^.\[]+)")
"""A position or a name, in a path."""


def judge(
    case: Case,
    checks: Collection[Check[AnObject]],
    new: AnObject,
    old: AnObject | None,
    *,
    standing: Collection[Check[AnObject]] | None = None,
) -> None:
    """Check a new object, or the changes of an update; `standing` as in `judge_update`."""
    if old is None:
        run(case, checks, new)
    elif not leaves_spec(new, old):
        judge_update(case, checks, new, old, standing=standing)


def leaves_spec(new: _UpdatedObject, old: _UpdatedObject) -> bool:
    """True if an update is not checked: the object is being deleted, or its spec does not change.

    Finalizers can be removed and annotations added, independent of the rules.
    """
    return bool(new.metadata.deletion_timestamp) or new.spec == old.spec


def judge_update(
    case: Case,
    checks: Collection[Check[T]],
    new: T,
    old: T,
    *,
    standing: Collection[Check[T]] | None = None,
    covered: Collection[str] = (),
) -> None:
    """Check an update, and keep only the problems that it causes.

    Args:
        case: The case, which gets the new problems.
        checks: The checks.
        new: The new object.
        old: The stored object; checked only if the new one has problems.
        standing: Checks of the stored object, if they differ.
        covered: Paths of immutable fields that are already reported; problems of their new values are dropped.
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
        # Only some problems have a suggestion, so they are compared without suggestions.
        after = _judged(case, checks, new, Suggestions(0))
        before = _judged(case, standing, old, Suggestions(0))
    inside = Within(covered)
    known = {*before.errors, *before.warnings}
    anywhere = {_unnumbered(each, each.path) for each in known}
    moved = Moved(old, new)

    def brought(found: FieldError) -> bool:
        if after.is_crash(found):
            return True  # the update was not checked, even if the stored object has this problem
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
    """A problem at a path, without item numbers in its message, which may have changed."""
    return found.code, path, _NUMBER.sub("[]", found.message)


def _judged(case: Case, checks: Collection[Check[T]], subject: T, suggestions: Suggestions) -> Case:
    judged = case.sibling(suggestions)
    run(judged, checks, subject)
    return judged


class Moved:
    """Two states of an object, and the old path of each item of the new one."""

    __slots__ = ("_new", "_old", "_positions")

    def __init__(self, old: Any, new: Any) -> None:
        self._old = msgspec.to_builtins(old)
        self._new = msgspec.to_builtins(new)
        self._positions: dict[tuple[int, int], list[int | None]] = {}

    def before(self, path: str) -> str | None:
        """The old path of a value that is now at a path; None for a value in an added item.

        Values outside of lists, missing values, and values below keys with dots keep their path.
        """
        old, new, end, found = self._old, self._new, 0, ""
        while step := _STEP.match(path, end):
            index, name = step.groups()
            if index and isinstance(new, list) and int(index) < len(new):
                place = id(old), id(new)
                if place not in self._positions:
                    self._positions[place] = _aligned(old if isinstance(old, list) else [], new)
                position = self._positions[place][int(index)]
                if position is None:
                    return None
                found += f"[{position}]"
                old, new = old[position], new[int(index)]
            elif name and isinstance(new, dict) and name in new:
                found += step[0]
                old, new = old.get(name) if isinstance(old, dict) else None, new[name]
            else:
                break
            end = step.end()
        return found + path[end:]


def _aligned(old: list[Any], new: list[Any]) -> list[int | None]:
    """The old positions: equal items are matched in order, other items by position if that item has not moved.

    In a list of the same length, an equal item in the same place is the same item.
    """
    spelt = partial(msgspec.json.encode, order="deterministic")
    before, after = [spelt(item) for item in old], [spelt(item) for item in new]
    found: list[int | None] = [None] * len(after)
    if len(before) == len(after):
        found = [at if before[at] == item else None for at, item in enumerate(after)]
    taken = set(found)
    known: defaultdict[bytes, deque[int]] = defaultdict(deque)
    for at, item in enumerate(before):
        if at not in taken:
            known[item].append(at)
    for at, item in enumerate(after):
        if found[at] is None and (equal := known.get(item)):
            found[at] = equal.popleft()
    taken = set(found)
    return [
        at if was is None and at < len(before) and at not in taken else was
        for at, was in enumerate(found)
    ]
