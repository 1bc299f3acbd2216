"""YAML scalars as Kubernetes reads them: numbers, booleans, nulls and strings.

PyYAML implements all of YAML 1.1, kubectl does not: it reads `12:30` as a string and not as the number 750, and keeps a
time as a string.
"""

import math
import re
from collections.abc import Callable
from typing import Final

TAG: Final = "tag:yaml.org,2002:"
"""Prefix of the tags of YAML itself, written as `!!`."""

NUMERIC: Final = "+-.0123456789"
"""Characters that a number may begin with."""

INTEGER: Final = re.compile(
    r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$", re.ASCII
)
FLOAT: Final = re.compile(
    r"(?:[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
    re.ASCII,
)
_MOST_DIGITS = 4000
_BASES = {"0b": 2, "0x": 16, "0o": 8}

NULLS: Final = ("", "~", "null", "Null", "NULL")
"""Texts that mean null when they are not quoted."""

_TRUTHS = {
    spelling: truth
    for word, truth in (
        ("yes", True),
        ("no", False),
        ("true", True),
        ("false", False),
        ("on", True),
        ("off", False),
    )
    for spelling in (word, word.capitalize(), word.upper())
}
_WORDS: dict[str, bool | None] = {**dict.fromkeys(NULLS), **_TRUTHS}

Scalar = str | int | float | bool | None


class ScalarError(ValueError):
    """A scalar that is not valid for its tag, or that JSON cannot hold."""


def plain(text: str) -> Scalar:
    """The value of a scalar without quotes and without a tag.

    Raises:
        ScalarError: JSON cannot hold it.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in NUMERIC:
        return text
    try:
        # Integers are checked first, because kubectl's pattern for floats matches them, too.
        if INTEGER.match(text):
            return _integer(text)
        if FLOAT.match(text):
            return number(text)
    except ScalarError:
        raise
    except ValueError:
        pass  # nothing but underscores, or too many digits
    return text


def tagged(tag: str, text: str) -> Scalar:
    """The value of a scalar with a tag; `!` alone means a string.

    Raises:
        ScalarError: The text is not valid for the tag, or the tag has no counterpart in JSON.
    """
    make = _MAKERS.get(tag)
    shown = tag.replace(TAG, "!!")
    if make is None:
        raise ScalarError(f"tag {shown} has no counterpart in JSON and cannot be used")
    try:
        return make(text)
    except ScalarError:
        raise
    except (ValueError, LookupError):
        raise ScalarError(f"{text!r} is no {shown}") from None


def _integer(text: str) -> int:
    digits = text.replace("_", "").lstrip("+-")
    if len(digits) > _MOST_DIGITS:
        raise ValueError("more digits than Python writes as text")
    base = _BASES.get(digits[:2]) or (8 if digits.startswith("0") else 10)
    number = int(digits, base)
    return -number if text.startswith("-") else number


def number(text: str) -> float:
    """A number that JSON or YAML writes with a fraction or an exponent.

    A whole number becomes an integer: kubectl, or the API server before it calls a webhook, writes `1.0` as `1`. Go
    does so below 1e21.

    Raises:
        ScalarError: JSON cannot hold it.
    """
    found = float(text.lower().replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
    if not math.isfinite(found):
        raise ScalarError(f"number {text!r} cannot be written as JSON")
    return int(found) if abs(found) < _LARGEST_WHOLE and found.is_integer() else found


_LARGEST_WHOLE = 1e21


def _null(text: str) -> None:
    if text not in NULLS:
        raise ValueError


_MAKERS: dict[str, Callable[[str], Scalar]] = {
    "!": str,
    f"{TAG}str": str,
    f"{TAG}timestamp": str,
    f"{TAG}int": _integer,
    f"{TAG}float": number,
    f"{TAG}bool": _TRUTHS.__getitem__,
    f"{TAG}null": _null,
}
