"""Field errors: what is wrong, where, and how to mend it.

The same error is one line in a terminal, one cause in a Kubernetes Status and one object in
`pumice lint -o json`, so it carries a path as users write it (`spec.tasks[1].policies[0].event`), a
stable code, and a message that says what was found and what would be right.
"""

import difflib
from collections.abc import Iterable
from typing import Literal

import msgspec

__all__ = ["FieldError", "Reason", "did_you_mean", "summary"]

Reason = Literal[
    "FieldValueRequired",
    "FieldValueInvalid",
    "FieldValueDuplicate",
    "FieldValueNotFound",
    "FieldValueNotSupported",
    "FieldValueForbidden",
    "FieldValueTypeInvalid",
]
"""Cause types of `metav1.StatusCause.reason`."""


class FieldError(msgspec.Struct, frozen=True, order=True):
    """One violation of one rule at one place.

    Attributes:
        path: Where, in the dotted form that kubectl prints, list indexes in brackets. Empty for
            the object as a whole.
        message: What was found and what would be right; one sentence without the path.
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
        return f"{where}{self.message} [{self.code}]"


def summary(errors: Iterable[FieldError]) -> str:
    """All errors as text, one a line, in the order given."""
    return "\n".join(str(error) for error in errors)


def did_you_mean(found: str, candidates: Iterable[str]) -> str:
    """` (did you mean "x"?)` for the closest candidate, or an empty string when none is close."""
    originals = {candidate.lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(found.lower(), sorted(originals), n=1)
    return f' (did you mean "{originals[close[0]]}"?)' if close else ""
