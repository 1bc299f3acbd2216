"""Kubernetes quantities as exact integers.

A quantity is kept in milli-units (`500m` CPU is 500, `1Gi` is 1073741824000), because sums of floats have rounding
errors, and a scheduler would add them up over many pods. Fractions of a milli-unit are rounded away from zero, as
Kubernetes does for milli-values.

Format: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

import re
from fractions import Fraction

from pumice.api.json_words import shown
from pumice.api.remembering import remembered

MILLI = 1000
"""Milli-units in one unit."""

_PATTERN = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))"
    r"(?P<suffix>[eE][+-]?\d+|Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?)",
    re.ASCII,
)
_NEARLY = re.compile(
    r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kKmMgGtTpP])(?P<binary>[iI])?(?P<bytes>[bB])?", re.ASCII
)
"""A number with a unit that is usual elsewhere: `4GB`, `4 Gi`, `512mb`, `4g`."""
_BAD_SUFFIX = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)[eEinumkKMGTP]*[+-]?\d*", re.ASCII)
"""Text that Kubernetes takes for a quantity with a suffix, valid or not."""

_SCALE: dict[str, Fraction] = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
_BINARY = (("Ei", 2**60), ("Pi", 2**50), ("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
_LARGEST_EXPONENT = 30
"""Bound on `1e<n>`: enough for any machine, and too small for a manifest to cause gigabytes of digits."""

_LONGEST = 100
"""Bound on the length of a quantity, for the same reason."""


class QuantityError(ValueError):
    """A value that is not a quantity; the message shows it and the expected form, in Kubernetes' words."""

    def __init__(self, found: str, problem: str = "") -> None:
        """Report a value that is not a quantity; without `problem` the message says that its form is wrong."""
        wrong = problem or "quantities must match the regular expression of Kubernetes"
        super().__init__(f"{wrong}: found {found}; write a quantity such as 500m, 2 or 4Gi")


def parse_milli(value: object) -> int:
    """Read a quantity as milli-units.

    Args:
        value: Text such as `250m`, `1.5`, `2Gi`, `1e3`, or a number as YAML and JSON give it.

    Returns:
        The quantity in thousandths of a unit, rounded away from zero, so that a negative quantity
        never becomes 0.

    Raises:
        QuantityError: The value is not a quantity.
    """
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value * MILLI
    if isinstance(value, float):
        return _parse_text(repr(value))
    raise QuantityError(shown(value))


@remembered(4096)
def _parse_text(text: str) -> int:
    amount = _exact(text)
    up = -(-abs(amount.numerator) // amount.denominator)
    return up if amount >= 0 else -up


def _exact(text: str) -> Fraction:
    match = _PATTERN.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        has_form = len(text) <= _LONGEST and _BAD_SUFFIX.fullmatch(text)
        problem = "unable to parse quantity's suffix" if has_form else ""
        found = text[:_LONGEST]
        raise QuantityError(f'"{found}"{_did_you_mean(found)}', problem)
    suffix = match["suffix"]
    if suffix[:1] in ("e", "E") and suffix != "E" and not suffix.endswith("i"):
        exponent = int(suffix[1:])
        if abs(exponent) > _LARGEST_EXPONENT:
            raise QuantityError(f'"{text}"', f"exponents must be at most {_LARGEST_EXPONENT}")
        scale = Fraction(10) ** exponent
    else:
        scale = _SCALE[suffix]
    return Fraction(match["number"]) * scale * MILLI


def _did_you_mean(text: str) -> str:
    """` (did you mean "4G" or "4Gi"?)` for a text with a unit that is nearly one of Kubernetes'; otherwise empty."""
    match = _NEARLY.fullmatch(text)
    if match is None:
        return ""
    number, letter = match["number"], match["unit"].upper()
    if match["unit"] == "m" and not (match["binary"] or match["bytes"]):  # only the blank is wrong
        return f' (did you mean "{number}m"?)'
    binary = f'"{number}{letter}i"'
    if match["binary"]:
        return f" (did you mean {binary}?)"
    decimal = "k" if letter == "K" else letter
    return f' (did you mean "{number}{decimal}" or {binary}?)'


def is_whole_milli(text: str) -> bool:
    """Whether no part of a quantity is finer than a milli-unit.

    Raises:
        QuantityError: The text is not a quantity.
    """
    return _exact(text).denominator == 1


def format_milli(milli: int) -> str:
    """Write milli-units as the shortest usual quantity: `250m`, `3`, `4Gi`.

    Whole multiples of 1024 units take a binary suffix, everything else is plain or `m`, so that
    what is written parses to the same value.
    """
    if milli % MILLI:
        return f"{milli}m"
    units = milli // MILLI
    for suffix, factor in _BINARY:
        if units and units % factor == 0:
            return f"{units // factor}{suffix}"
    return str(units)
