"""Keywords of structural schemas: the types of their values, and what they check beyond types, a small function each.

Messages are worded as kube-apiserver words them.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from pumice.api.fields import FieldError, Reason
from pumice.api.meta import parse_time

_KEYWORDS: tuple[tuple[str, type | tuple[type, ...]], ...] = (
    ("additionalProperties", (dict, bool)),
    ("allOf", list),
    ("anyOf", list),
    ("enum", list),
    ("format", str),
    ("items", dict),
    ("maxItems", int),
    ("maxLength", int),
    ("maxProperties", int),
    ("maximum", (int, float)),
    ("minItems", int),
    ("minLength", int),
    ("minProperties", int),
    ("minimum", (int, float)),
    ("multipleOf", (int, float)),
    ("not", dict),
    ("oneOf", list),
    ("pattern", str),
    ("properties", dict),
    ("required", list),
    ("type", str),
    ("x-kubernetes-list-map-keys", list),
    ("x-kubernetes-list-type", str),
    ("x-kubernetes-map-type", str),
)


class SchemaError(ValueError):
    """An invalid schema: a keyword has a value of the wrong type."""


def check_keywords(schema: Any) -> None:
    """Check the keywords of one node.

    Raises:
        SchemaError: The schema is invalid.
    """
    if not isinstance(schema, dict):
        raise SchemaError(f"expected a schema, found {schema!r}")
    for keyword, types in _KEYWORDS:
        if keyword in schema and not isinstance(schema[keyword], types):
            raise SchemaError(f"{keyword}: unexpected value {schema[keyword]!r}")
    if schema.get("multipleOf") == 0:
        raise SchemaError("multipleOf: expected a number other than 0")
    for keyword in ("required", "x-kubernetes-list-map-keys"):
        if any(not isinstance(name, str) for name in schema.get(keyword, ())):
            raise SchemaError(f"{keyword}: expected names, found {schema[keyword]!r}")


Json = Any
Path = tuple[Any, ...]
"""A linked list of path segments, innermost first, rendered only when there is an error."""
Rule = Callable[[Json, Path, list[FieldError]], None]
"""Checks a value and adds its violations."""


class CompiledSchema(Protocol):
    """A compiled schema."""

    def check(self, value: Json, path: Path, errors: list[FieldError]) -> None:
        """Add all violations in a value."""


_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


def _is_time(value: str) -> bool:
    return parse_time(value) is not None and "T" in value.upper()


_FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": _is_time,
    "date": lambda value: bool(re.fullmatch(r"\d{4}-\d{2}-\d{2}", value)),
    "uuid": lambda value: bool(
        re.fullmatch(r"(?i)[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", value)
    ),
}


def render(path: Path) -> str:
    """A path as text: `spec.tasks[1].name`."""
    segments: list[Any] = []
    while len(path) == 2:
        segments.append(path[0])
        path = path[1]
    text = str(path[0]) if path else ""
    for segment in reversed(segments):
        if isinstance(segment, int):
            text += f"[{segment}]"
        else:
            text += f".{segment}" if text else str(segment)
    return text


def add(errors: list[FieldError], path: Path, message: str, code: str, reason: Reason) -> None:
    """Add an error; its code is `SCHEMA-` with `code`."""
    errors.append(FieldError(render(path), message, f"SCHEMA-{code}", reason))


def _shown(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def rules_of(
    schema: dict[str, Any], node: Callable[[dict[str, Any]], CompiledSchema]
) -> Iterator[Rule]:
    """The checks of one node beyond its type, in a fixed order."""
    if "enum" in schema:
        yield _enum(schema["enum"])
    if schema.get("format") in _RANGES:
        yield _integer_range(schema["format"])
    elif schema.get("format") in _FORMATS:
        yield _text_format(schema["format"])
    if "minimum" in schema or "maximum" in schema or "multipleOf" in schema:
        yield _bounds(schema)
    if "pattern" in schema:
        yield _pattern(schema["pattern"])
    for keyword, rule in _SIZES.items():
        if keyword in schema:
            yield rule(schema[keyword])
    for keyword in ("allOf", "anyOf", "oneOf"):
        if keyword in schema and not schema.get("x-kubernetes-int-or-string"):
            yield _combination(keyword, [node(each) for each in schema[keyword]])
    if "not" in schema:
        yield _negation(node(schema["not"]))


def _enum(values: list[Json]) -> Rule:
    supported = ", ".join(_shown(value) for value in values)

    def check(value: Json, path: Path, errors: list[FieldError]) -> None:
        if value not in values:
            message = f"Unsupported value: {_shown(value)}: supported values: {supported}"
            add(errors, path, message, "ENUM", "FieldValueNotSupported")

    return check


def _integer_range(name: str) -> Rule:
    low, high = _RANGES[name]

    def check(value: Json, path: Path, errors: list[FieldError]) -> None:
        if type(value) is int and not low <= value <= high:
            message = (
                f"Invalid value: {value}: {render(path)} in body must be of type {name}: {value}"
            )
            add(errors, path, message, "BOUNDS", "FieldValueInvalid")

    return check


def _text_format(name: str) -> Rule:
    matches = _FORMATS[name]

    def check(value: Json, path: Path, errors: list[FieldError]) -> None:
        if isinstance(value, str) and not matches(value):
            where = render(path)
            shown = _shown(value)
            message = f"Invalid value: {shown}: {where} in body must be of type {name}: {shown}"
            add(errors, path, message, "TYPE", "FieldValueTypeInvalid")

    return check


def _bounds(schema: dict[str, Any]) -> Rule:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    above, below = bool(schema.get("exclusiveMinimum")), bool(schema.get("exclusiveMaximum"))

    def problem(value: float) -> str | None:
        if low is not None and (value <= low if above else value < low):
            return f"greater than {'' if above else 'or equal to '}{low}"
        if high is not None and (value >= high if below else value > high):
            return f"less than {'' if below else 'or equal to '}{high}"
        if step is not None and value % step:
            return f"a multiple of {step}"
        return None

    def check(value: Json, path: Path, errors: list[FieldError]) -> None:
        if type(value) in {int, float} and (why := problem(value)):
            message = f"Invalid value: {value}: {render(path)} in body should be {why}"
            add(errors, path, message, "BOUNDS", "FieldValueInvalid")

    return check


def _pattern(pattern: str) -> Rule:
    # Go's `$` is the end of the text; Python's would also match before a last line break.
    source = re.sub(r"(?<!\\)\$$", r"\\Z", pattern)
    try:
        search = re.compile(source, re.ASCII).search
    except re.error:
        # A pattern that Go supports and Python does not: it cannot be checked here.
        return lambda _value, _path, _errors: None

    def check(value: Json, path: Path, errors: list[FieldError]) -> None:
        if isinstance(value, str) and not search(value):
            where = render(path)
            message = f"Invalid value: {_shown(value)}: {where} in body should match '{pattern}'"
            add(errors, path, message, "PATTERN", "FieldValueInvalid")

    return check


def _sized(
    type_: type[str] | type[list[Any]] | type[dict[str, Any]],
    code: str,
    broken: Callable[[int, int], bool],
    text: str,
    *,
    shows_size: bool,
    reason: Reason = "FieldValueInvalid",
) -> Callable[[int], Rule]:
    def make(limit: int) -> Rule:
        def check(value: Json, path: Path, errors: list[FieldError]) -> None:
            if isinstance(value, type_) and broken(len(value), limit):
                message = text.format(
                    shown=len(value) if shows_size else _shown(value),
                    where=render(path),
                    limit=limit,
                    plural="" if limit == 1 else "s",
                )
                add(errors, path, message, code, reason)

        return check

    return make


def _under(size: int, limit: int) -> bool:
    return size < limit


def _over(size: int, limit: int) -> bool:
    return size > limit


_SIZES: dict[str, Callable[[Any], Rule]] = {
    "minLength": _sized(
        str,
        "LENGTH",
        _under,
        "Invalid value: {shown}: {where} in body should be at least {limit} chars long",
        shows_size=False,
    ),
    "maxLength": _sized(
        str,
        "LENGTH",
        _over,
        "Too long: may not be more than {limit} bytes",
        shows_size=False,
        reason="FieldValueTooLong",
    ),
    "minItems": _sized(
        list,
        "ITEMS",
        _under,
        "Invalid value: {shown}: {where} in body should have at least {limit} items",
        shows_size=True,
    ),
    "maxItems": _sized(
        list,
        "ITEMS",
        _over,
        "Too many: {shown}: must have at most {limit} item{plural}",
        shows_size=True,
        reason="FieldValueTooMany",
    ),
    "minProperties": _sized(
        dict,
        "ITEMS",
        _under,
        "Invalid value: {shown}: {where} in body should have at least {limit} properties",
        shows_size=True,
    ),
    "maxProperties": _sized(
        dict,
        "ITEMS",
        _over,
        "Too many: {shown}: must have at most {limit} item{plural}",
        shows_size=True,
        reason="FieldValueTooMany",
    ),
}

_COMBINATIONS = {
    "allOf": "must validate all the schemas (allOf)",
    "anyOf": "must validate at least one schema (anyOf)",
    "oneOf": "must validate one and only one schema (oneOf)",
}


def _combination(keyword: str, schemas: list[CompiledSchema]) -> Rule:
    def check(value: Json, path: Path, errors: list[FieldError]) -> None:
        matches = 0
        first: list[FieldError] = []
        for schema in schemas:
            found: list[FieldError] = []
            schema.check(value, path, found)
            matches += not found
            first = first or found
        wanted = {"allOf": matches == len(schemas), "anyOf": matches > 0, "oneOf": matches == 1}
        if not wanted[keyword]:
            where = render(path)
            count = "none valid" if not matches else f"{matches} valid alternatives"
            found_text = f". Found {count}" if keyword == "oneOf" else ""
            message = f'Invalid value: "": "{where}" {_COMBINATIONS[keyword]}{found_text}'
            add(errors, path, message, "COMBINATION", "FieldValueInvalid")
            if matches == 0:
                errors.extend(first)

    return check


def _negation(schema: CompiledSchema) -> Rule:
    def check(value: Json, path: Path, errors: list[FieldError]) -> None:
        found: list[FieldError] = []
        schema.check(value, path, found)
        if not found:
            message = f'Invalid value: "": "{render(path)}" must not validate the schema (not)'
            add(errors, path, message, "COMBINATION", "FieldValueInvalid")

    return check
