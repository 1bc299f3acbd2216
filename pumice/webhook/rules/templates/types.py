"""Types of a pod template's fields: values that the API server could not decode.

The API server stops at the first such field. Here all of them are reported, and the rest is checked. For that `read`
copies an invalid template without the unreadable values, and with nulls as the API server reads them: a null field is
absent, a null in a list or a map is an empty value. Nearly all templates are valid, and msgspec decides that: each type
of the table has a struct, created with the first template, and a template is valid if it decodes into the root's
struct.

An unknown field may be newer than this version of Pumice and is accepted. It is reported only if its name is nearly
that of another field.
"""

import difflib
import re
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Annotated, Any

import msgspec

from pumice.api.json_words import type_problem
from pumice.api.meta import Raw
from pumice.api.pods import ROOT, pod_types
from pumice.api.quantities import QuantityError, parse_milli
from pumice.api.remembering import remembered
from pumice.webhook.rules.templates.resources import TPL_QUANTITY
from pumice.webhook.rules.templates.shapes import FieldRule, warned
from pumice.webhook.rules.templates.table import Site

TPL_TYPE = FieldRule(
    "TPL-TYPE",
    "fields of a pod template have the type that Kubernetes gives them",
    "The API server cannot decode a pod with a string in place of an integer, or a list in place of an object.",
    'template: {spec: {hostNetwork: "true"}}',
    reason="FieldValueTypeInvalid",
)
TPL_UNKNOWN = warned(
    "TPL-UNKNOWN",
    "fields of a pod template exist",
    "The API server drops unknown fields, so a misspelt field has no effect.",
    "template: {spec: {containers: [{name: main, image: busybox, ressources: {…}}]}}",
)

_ALIKE = 0.8
"""Share of common characters above which an unknown field counts as a misspelling. `hostnameOverride` is newer than `hostname`, and these two must not count as alike."""

_LONGEST_SHOWN = 60
_SPELLING = 4000
"""Work of comparing a field with those of its type, for the budget of suggestions."""
_EMPTY: dict[str, Any] = {"string": "", "boolean": False, "int32": 0, "int64": 0, "quantity": "0"}
"""Empty values of types; for all others it is an empty object."""
_COLLECTIONS: dict[str, Any] = {"[]": list, "{}": dict}
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_LEAP_YEAR = "2000"
_INTS = {
    name: Annotated[int, msgspec.Meta(ge=low, le=high)] for name, (low, high) in _RANGES.items()
}


class _Quantity:
    """A quantity, for msgspec, which has no such type."""


class _Time:
    """A time; msgspec's own type accepts more forms than Kubernetes."""


_READ: dict[type, object] = {_Quantity: _Quantity(), _Time: _Time()}
"""What values of these types are read as; only whether they can be read counts."""


def _read(kind: type, found: object) -> object:
    """Check a value of a type that msgspec does not have.

    Raises:
        ValueError: It has another type.
    """
    if kind is _Quantity:
        if type(found) is not str and type(found) is not int and type(found) is not float:
            raise ValueError
        parse_milli(found)
    elif type(found) is not str or not _TIME.fullmatch(found):
        raise ValueError
    else:
        # Python knows no year 0, Kubernetes does; it was a leap year.
        datetime.fromisoformat(_LEAP_YEAR + found[4:] if found.startswith("0000") else found)
    return _READ[kind]


_TYPES: dict[str, Any] = {
    "string": str,
    "boolean": bool,
    **_INTS,
    "quantity": _Quantity,
    "int-or-string": str | _INTS["int32"],
    "time": _Time,
    "any": Any,
}


def fits(found: object, notation: str = ROOT) -> bool:
    """True if all fields of a template are known, have the right type, and are not null.

    Args:
        found: The template, or a value in it.
        notation: The type, in the notation of `pod_types`.
    """
    try:
        msgspec.convert(found, _type_of(notation), dec_hook=_read)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


@cache
def _type_of(notation: str) -> Any:
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


def read(
    site: Site, found: Raw, notation: str = ROOT, rule: FieldRule | None = None
) -> tuple[Raw, list[str]]:
    """Report wrong types and misspelt fields of a template for which `fits` is false.

    Args:
        site: The position of the template.
        found: The template, or another object.
        notation: Its type, in the notation of `pod_types`.
        rule: The rule that wrong types break in an object outside of templates; there misspelt fields are not reported.

    Returns:
        A copy in which every field has the right type and none is null, and the paths of the values that were left out.
    """
    reader = _TypeReader(site, rule)
    return reader.value(site.path, found, notation), reader.unreadable


class _TypeReader:
    def __init__(self, site: Site, rule: FieldRule | None) -> None:
        self._site = site
        self._rule = rule
        self.unreadable: list[str] = []

    def value(self, path: str, found: Any, notation: str) -> Any:
        """The value as the API server reads it; None if it cannot."""
        is_object = notation in pod_types()
        expected: Any = dict if is_object else _COLLECTIONS.get(notation[:2])
        if expected is None:
            return found if fits(found, notation) else self._wrong(path, found, notation)
        if type(found) is not expected:
            return self._wrong(path, found, "array" if expected is list else "object")
        if is_object:
            return self._object(path, found, notation)
        inner = notation[2:]
        empty = _EMPTY.get(inner, {})
        if expected is dict:
            read = {
                key: empty if value is None else self.value(f"{path}.{key}", value, inner)
                for key, value in found.items()
            }
            return {key: value for key, value in read.items() if value is not None}
        items = [
            value if value is None else self.value(f"{path}[{index}]", value, inner)
            for index, value in enumerate(found)
        ]
        # An unreadable item stays as an empty value, so that the later items keep their indexes.
        return [empty if value is None else value for value in items]

    def _object(self, path: str, found: Any, name: str) -> Any:
        fields, case = pod_types()[name], self._site.case
        result: Raw = {}
        for field, value in found.items():
            notation = fields.get(field)
            if notation is None:
                if self._rule is None and not case.suggestions.spent:
                    case.suggestions.charge(_SPELLING)
                    if close := _close(field, name):
                        message = f'there is no field "{field}" (did you mean "{close}"?)'
                        case.report(TPL_UNKNOWN, f"{path}.{field}", message)
                result[field] = value
            elif value is not None:
                readable = self.value(f"{path}.{field}", value, notation)
                if readable is not None:
                    result[field] = readable
        return result

    def _wrong(self, path: str, found: Any, expected: str) -> None:
        self.unreadable.append(path)
        is_amount = expected == "quantity" and type(found) in (str, float)
        rule = self._rule or (TPL_QUANTITY if is_amount else TPL_TYPE)
        self._site.case.report(rule, path, _problem(found, expected))


def _problem(found: Any, expected: str) -> str:
    if expected in _RANGES and type(found) is int:
        low, high = _RANGES[expected]
        return f"must be between {low} and {high}, found {found}"
    if expected == "quantity" and type(found) in (str, float):
        try:
            parse_milli(found)
        except QuantityError as error:
            return str(error)
    return type_problem(expected, found)


@remembered(1024)
def _close(field: str, name: str) -> str:
    """The field of a type with nearly this name, or an empty text."""
    return alike(field, pod_types()[name])


def alike(field: str, known: Iterable[str]) -> str:
    """The known name that is nearly this one, or an empty text; case is ignored."""
    if len(field) > _LONGEST_SHOWN:
        return ""
    originals = {each.lower(): each for each in known}
    close = difflib.get_close_matches(field.lower(), originals, n=1, cutoff=_ALIKE)
    return originals[close[0]] if close else ""
