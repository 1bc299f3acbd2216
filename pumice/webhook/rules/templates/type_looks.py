"""The quick look at types: whether a template is in order, without a path and without a message.

It is done for every template, so msgspec does it: for each type of the table there is a struct, made when
the first template comes, and a template is in order if it can be read as the root's. `types` says what is
wrong with the few that cannot.
"""

import re
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Annotated, Any

import msgspec

from pumice.api.pod_types import ROOT, pod_types
from pumice.api.quantities import QuantityError, parse_milli

__all__ = ["LEAVES", "RANGES", "fits", "quantity_problem"]

RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
"""Smallest and largest number of a type."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_LEAP_YEAR = "2000"
_INTS = {
    name: Annotated[int, msgspec.Meta(ge=low, le=high)] for name, (low, high) in RANGES.items()
}


class _Quantity:
    """Stands for a quantity, which msgspec does not know."""


class _Time:
    """Stands for a time; msgspec's own are read in more forms than Kubernetes reads."""


_TYPES: dict[str, Any] = {
    "string": str,
    "boolean": bool,
    **_INTS,
    "quantity": _Quantity,
    "int-or-string": str | _INTS["int32"],
    "time": _Time,
    "any": Any,
}


def fits(template: object) -> bool:
    """Whether a template is in order: all its fields known, of the right type, and none of them null."""
    try:
        msgspec.convert(template, _type_of(ROOT), dec_hook=_read)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


@cache
def _type_of(notation: str) -> Any:
    """What msgspec reads a notation of the table as."""
    if notation in _TYPES:
        return _TYPES[notation]
    if notation.startswith("[]"):
        return list[_type_of(notation[2:])]  # type: ignore[misc]
    if notation.startswith("{}"):
        return dict[str, _type_of(notation[2:])]  # type: ignore[misc]
    fields = pod_types()[notation]
    # Some fields bear names that Python keeps for itself.
    names = {f"field{index}": name for index, name in enumerate(fields)}
    return msgspec.defstruct(
        notation,
        [(own, _type_of(fields[name]), msgspec.UNSET) for own, name in names.items()],
        rename=names,
        forbid_unknown_fields=True,
        frozen=True,
        gc=False,
    )


def _read(kind: type, found: Any) -> Any:
    """Read what msgspec does not know.

    Raises:
        ValueError: It cannot be read; nobody sees the message.
    """
    if kind is _Time:
        if not _is_time(found):
            raise ValueError
    elif type(found) in _AMOUNTS:
        parse_milli(found)
    else:
        raise ValueError
    return _READ[kind]


_AMOUNTS = (str, int, float)
_READ: dict[type, object] = {kind: kind() for kind in (_Quantity, _Time)}


def quantity_problem(found: Any) -> str | None:
    """Say why a text or a number is no quantity, or None when it is."""
    try:
        parse_milli(found)
    except QuantityError as error:
        return str(error)
    return None


def _is_quantity(found: Any) -> bool:
    return type(found) in _AMOUNTS and quantity_problem(found) is None


def _is_time(found: Any) -> bool:
    if type(found) is not str or not _TIME.fullmatch(found):
        return False
    try:
        # Python knows no year 0, Kubernetes does; it was a leap year.
        datetime.fromisoformat(_LEAP_YEAR + found[4:] if found.startswith("0000") else found)
    except ValueError:
        return False
    return True


def _is_int(kind: str) -> Callable[[Any], bool]:
    low, high = RANGES[kind]
    return lambda found: type(found) is int and low <= found <= high


LEAVES: dict[str, Callable[[Any], bool]] = {
    "string": lambda found: type(found) is str,
    "boolean": lambda found: type(found) is bool,
    "int32": _is_int("int32"),
    "int64": _is_int("int64"),
    "quantity": _is_quantity,
    "int-or-string": lambda found: type(found) is str or LEAVES["int32"](found),
    "time": _is_time,
    "any": lambda _: True,
}
"""Whether a single value is of a type that has no parts."""
