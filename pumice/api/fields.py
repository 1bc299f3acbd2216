"""Field errors: what is wrong, where, and how to fix it.

The same error is one line in a terminal, one cause in a Kubernetes Status and one object in `pumice lint -o json`, so
it has a path as users write it (`spec.tasks[1].policies[0].event`), a stable code, and a message that says what was
found and what was expected, and perhaps which name was probably meant.

Comparing names takes time, and a manifest can hold any number of them. So suggestions have a budget of work; when it is
spent, problems are reported without a suggestion. Work is counted, not timed: the same names give the same suggestions on
every machine.
"""

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Literal

import msgspec

BUDGET = 4_000_000
"""Work for the suggestions of one review: slightly more than a tenth of a second.

It is enough to compare three names of 20 characters with 10,000 different names each.
"""

_LONGEST_NAME = 253
_ALIKE = 0.6
"""Share of common characters in the same order from which on a name counts as close; the default of `difflib`."""

_CALL = 200
_EACH = 24
_RATIO = 300
"""Fixed work of a call, of a candidate and of a full comparison."""


class Suggestions:
    """Finds the names that were probably meant, as long as the budget lasts.

    Attributes:
        left: Work that may still be done; below 0 when more was asked for.
    """

    __slots__ = ("left",)

    def __init__(self, budget: int | None = None) -> None:
        """Create suggestions with a budget.

        Args:
            budget: Allowed work, about the number of compared pairs of characters; `BUDGET` if left out.
        """
        self.left = BUDGET if budget is None else budget

    @property
    def spent(self) -> bool:
        """True if the budget is spent, so that a name may lack its suggestion."""
        return self.left <= 0

    def charge(self, work: int) -> None:
        """Subtract the work of a comparison that is made elsewhere."""
        self.left -= work

    def did_you_mean(self, found: str, candidates: Iterable[str]) -> str:
        """` (did you mean "x"?)` for the closest candidate, or an empty string when none is close."""
        meant = self.closest(found, candidates)
        return "" if meant is None else f' (did you mean "{meant}"?)'

    def closest(self, found: str, candidates: Iterable[str]) -> str | None:
        """The closest candidate, or None when none is close or the budget is spent."""
        if self.left <= 0 or len(found) > _LONGEST_NAME:
            return None  # a longer text is not a misspelt name
        self.left -= _CALL
        originals: dict[str, str] = {}
        for candidate in candidates:
            self.left -= _EACH
            if self.left <= 0:
                return None
            if len(candidate) <= _LONGEST_NAME:
                originals[candidate.lower()] = candidate
        return self._best(found.lower(), originals)

    def _best(self, wanted: str, originals: dict[str, str]) -> str | None:
        """The closest candidate; of equally close ones the last in the alphabet.

        A candidate must be at least as close as the best so far. Two cheap upper bounds avoid most full comparisons.
        """
        matcher = SequenceMatcher(b=wanted)
        length = len(wanted)
        least: float = _ALIKE
        best: str | None = None
        for name in originals:
            if 2 * min(len(name), length) < least * (len(name) + length):
                continue
            self.left -= 2 * (len(name) + length)
            matcher.set_seq1(name)
            if matcher.quick_ratio() >= least:
                ratio = matcher.ratio()
                # The search is repeated on the left and on the right of every equal part.
                parts = len(matcher.get_matching_blocks())
                self.left -= _RATIO + len(name) * length * parts // 2
                if ratio > least or (ratio == least and (best is None or name > best)):
                    least, best = ratio, name
            if self.left <= 0:
                return None
        return None if best is None else originals[best]


Reason = Literal[
    "FieldValueRequired",
    "FieldValueInvalid",
    "FieldValueDuplicate",
    "FieldValueNotFound",
    "FieldValueNotSupported",
    "FieldValueForbidden",
    "FieldValueTypeInvalid",
    "FieldValueTooLong",
    "FieldValueTooMany",
]
"""Cause types of `metav1.StatusCause.reason`."""


class FieldError(msgspec.Struct, frozen=True, order=True):
    """One violation of one rule at one place.

    Attributes:
        path: Where, in the dotted form that kubectl prints, list indexes in brackets. Empty for
            the object as a whole.
        message: What was found and what was expected; one sentence without the path.
        code: Stable name of the rule, for example `JOB-DUP-TASK`.
        reason: Kubernetes' class of the error.
    """

    path: str
    message: str
    code: str
    reason: Reason = "FieldValueInvalid"

    def __str__(self) -> str:
        """`path: message [code]`, the line that a terminal shows."""
        where = f"{self.path}: " if self.path else ""
        return plain(f"{where}{self.message} [{self.code}]")

    def within(self, longest: int) -> str:
        """The line of `__str__`, cut before its code to at most this many characters."""
        line = str(self)
        if len(line) <= longest:
            return line
        end = f"… [{self.code}]"
        return line[: max(longest - len(end), 0)] + end


def plain(text: str) -> str:
    r"""A string as one line that is safe to print on a terminal: control characters become `\n`, `\x1b`."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def summary(errors: Iterable[FieldError]) -> str:
    """All errors as text, one a line, in the order given."""
    return "\n".join(str(error) for error in errors)


def did_you_mean(found: str, candidates: Iterable[str]) -> str:
    """` (did you mean "x"?)` for the closest candidate, or an empty string when none is close.

    Use it for one or two names. For many names share one budget (`Suggestions`).
    """
    return Suggestions().did_you_mean(found, candidates)


def closest(found: str, candidates: Iterable[str]) -> str | None:
    """The closest candidate, or None when none is close."""
    return Suggestions().closest(found, candidates)
