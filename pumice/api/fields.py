"""Field errors: what is wrong, where, and how to fix it.

The same error is one line in a terminal, one cause in a Kubernetes Status and one object in `pumice lint -o json`, so
it has a path as users write it (`spec.tasks[1].policies[0].event`), a stable code, and a message that says what was
found and what was expected.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from pumice.api.suggestions import Suggestions

__all__ = ["FieldError", "Reason", "closest", "did_you_mean", "plain", "summary"]

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
