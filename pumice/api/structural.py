"""Structural schemas of CRDs: check, default and prune raw objects as the API server does.

A schema is compiled once into nodes; each node knows whether anything below it has defaults or
could be pruned, so that a preserved pod template costs nothing. Messages are worded as
kube-apiserver words them, because they stand beside its own in the same terminal.

Source: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions", sections
on structural schemas, pruning, defaulting and nullable.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from pumice.api.fields import FieldError, Reason
from pumice.api.meta import parse_time

__all__ = ["Structural", "compile", "default", "prune", "validate"]

Json = Any
Path = tuple[Any, ...]
"""A linked list of path segments, innermost first, rendered only when there is an error."""

_META_FIELDS = frozenset(
    {
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_RESOURCE_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_NAMES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
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


class Structural:
    """One node of a compiled schema, and with it everything below.

    Attributes:
        properties: Named fields.
        additional: Schema of the values of a map's keys that are not named.
        items: Schema of a list's items.
        list_type: `x-kubernetes-list-type`: `atomic`, `set` or `map`.
        list_map_keys: Keys that tell the items of a `map` list apart.
        map_type: `x-kubernetes-map-type`: `granular` or `atomic`.
    """

    __slots__ = (
        "additional",
        "items",
        "list_map_keys",
        "list_type",
        "map_type",
        "properties",
        "_any",
        "_default",
        "_embedded",
        "_has_default",
        "_has_defaults_below",
        "_int_or_string",
        "_nullable",
        "_preserve",
        "_prunes",
        "_required",
        "_root",
        "_rules",
        "_type",
        "_types",
    )

    def __init__(self, schema: dict[str, Any], *, root: bool = False) -> None:
        self._root = root
        self._type: str = schema.get("type", "")
        self._types = _TYPES.get(self._type, ())
        self._int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
        self._nullable = bool(schema.get("nullable"))
        self._preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self._embedded = root or bool(schema.get("x-kubernetes-embedded-resource"))
        self._required: tuple[str, ...] = tuple(schema.get("required", ()))
        self._has_default = "default" in schema
        self._default = schema.get("default")
        self.list_type: str = schema.get("x-kubernetes-list-type", "")
        self.list_map_keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys", ()))
        self.map_type: str = schema.get("x-kubernetes-map-type", "")
        self.properties = {
            name: Structural(child) for name, child in schema.get("properties", {}).items()
        }
        additional, items = schema.get("additionalProperties"), schema.get("items")
        self.additional = Structural(additional) if isinstance(additional, dict) else None
        self._any = additional is True
        self.items = Structural(items) if isinstance(items, dict) else None
        self._rules = tuple(_rules(schema))
        self._has_defaults_below = any(
            child._has_default or child._has_defaults_below for child in self._children()
        )
        open_ended = self._preserve or self._any or (not self.properties and self._type != "object")
        self._prunes = (
            not open_ended
            or self._embedded
            or any(child._prunes for child in self._children())
            or (self._type == "object" and not open_ended)
        )

    def _children(self) -> Iterator["Structural"]:
        yield from self.properties.values()
        if self.additional is not None:
            yield self.additional
        if self.items is not None:
            yield self.items

    def validate(self, value: Json, path: str = "") -> list[FieldError]:
        """All violations in a value, in the order of the document.

        Args:
            value: The value, already pruned and defaulted if that is wanted.
            path: Where the value stands, put before every path.
        """
        errors: list[FieldError] = []
        self._validate(value, (path,) if path else (), errors)
        return errors

    def default(self, value: Json) -> Json:
        """Write defaults into a value, in place.

        A null where the schema allows none gives way to the default, or goes.
        """
        if self._has_default and value is None and not self._nullable:
            value = copy.deepcopy(self._default)
        self._fill(value)
        return value

    def prune(self, value: Json) -> Json:
        """Drop, in place, the fields that the schema does not have."""
        self.prune_paths(value)
        return value

    def prune_paths(self, value: Json) -> list[str]:
        """Prune in place.

        Returns:
            The paths of the fields dropped.
        """
        dropped: list[Path] = []
        self._prune(value, (), dropped)
        return [_render(path) for path in dropped]

    def _validate(self, value: Json, path: Path, errors: list[FieldError]) -> None:
        kind = type(value)
        if kind not in self._types and not self._accepts(value, path, errors):
            return
        for rule in self._rules:
            rule(value, path, errors)
        if kind is dict:
            for name in self._required:
                if name not in value:
                    _add(errors, (name, path), "Required value", "REQUIRED", "FieldValueRequired")
            properties, additional = self.properties, self.additional
            for name, item in value.items():
                child = properties.get(name, additional)
                if child is not None and not (self._root and name in _RESOURCE_FIELDS):
                    child._validate(item, (name, path), errors)
        elif kind is list:
            if self.items is not None:
                for index, item in enumerate(value):
                    self.items._validate(item, (index, path), errors)
            if self.list_type in {"map", "set"}:
                self._unique(value, path, errors)

    def _accepts(self, value: Json, path: Path, errors: list[FieldError]) -> bool:
        """Whether a value whose Python type is not the expected one is fine all the same."""
        if value is None:
            if self._nullable or not (self._type or self._int_or_string):
                return False
        elif self._int_or_string:
            if type(value) in {int, str}:
                return True
        elif not self._type:
            return True
        expected = "integer,string" if self._int_or_string else self._type
        found = _NAMES[type(value)]
        message = f'Invalid value: "{found}": {_render(path)} in body must be of type {expected}: "{found}"'
        _add(errors, path, message, "TYPE", "FieldValueTypeInvalid")
        return False

    def _unique(self, value: list[Json], path: Path, errors: list[FieldError]) -> None:
        seen: set[str] = set()
        for index, item in enumerate(value):
            if self.list_type == "map":
                if not isinstance(item, dict):
                    continue
                item = {key: item[key] for key in self.list_map_keys if key in item}
            text = json.dumps(item, separators=(",", ":"), sort_keys=True)
            if text in seen:
                message = f"Duplicate value: {text}"
                _add(errors, (index, path), message, "DUPLICATE", "FieldValueDuplicate")
            seen.add(text)

    def _fill(self, value: Json) -> None:
        if isinstance(value, dict):
            self._fill_object(value)
        elif isinstance(value, list) and self.items is not None:
            items = self.items
            for index, item in enumerate(value):
                if item is None and items._has_default and not items._nullable:
                    value[index] = copy.deepcopy(items._default)
                items._fill(value[index])

    def _fill_object(self, value: dict[str, Json]) -> None:
        if self._has_defaults_below:
            for name, child in self.properties.items():
                if child._has_default and (
                    name not in value or (value[name] is None and not child._nullable)
                ):
                    value[name] = copy.deepcopy(child._default)
        nulls = []
        for name, item in value.items():
            child_or_none = self.properties.get(name, self.additional)
            if child_or_none is None or (self._root and name in _RESOURCE_FIELDS):
                continue
            if item is None:
                if not child_or_none._nullable and (child_or_none._type or self.properties):
                    nulls.append(name)
            else:
                child_or_none._fill(item)
        for name in nulls:
            del value[name]

    def _prune(self, value: Json, path: Path, dropped: list[Path]) -> None:
        if not self._prunes:
            return
        if isinstance(value, dict):
            self._prune_object(value, path, dropped)
        elif isinstance(value, list) and self.items is not None:
            for index, item in enumerate(value):
                self.items._prune(item, (index, path), dropped)

    def _prune_object(self, value: dict[str, Json], path: Path, dropped: list[Path]) -> None:
        unknown = []
        for name, item in value.items():
            if self._embedded and name in _RESOURCE_FIELDS:
                if name == "metadata" and isinstance(item, dict):
                    for field in [each for each in item if each not in _META_FIELDS]:
                        del item[field]
                        dropped.append((field, (name, path)))
                continue
            child = self.properties.get(name, self.additional)
            if child is not None:
                child._prune(item, (name, path), dropped)
            elif not (self._preserve or self._any):
                unknown.append(name)
        for name in unknown:
            del value[name]
            dropped.append((name, path))


def _render(path: Path) -> str:
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


def _add(
    errors: list[FieldError], path: Path, message: str, code: str, reason: Reason
) -> None:
    errors.append(FieldError(_render(path), message, f"SCHEMA-{code}", reason))


def _shown(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


Rule = Callable[[Json, Path, list[FieldError]], None]


def _rules(schema: dict[str, Any]) -> Iterator[Rule]:
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
            yield _combination(keyword, [Structural(each) for each in schema[keyword]])
    if "not" in schema:
        yield _negation(Structural(schema["not"]))


def _enum(values: list[Json]) -> Rule:
    supported = ", ".join(_shown(value) for value in values)

    def check(value: Json, path: Path, errors: list[FieldError]) -> None:
        if value not in values:
            message = f"Unsupported value: {_shown(value)}: supported values: {supported}"
            _add(errors, path, message, "ENUM", "FieldValueNotSupported")

    return check


def _integer_range(name: str) -> Rule:
    low, high = _RANGES[name]

    def check(value: Json, path: Path, errors: list[FieldError]) -> None:
        if type(value) is int and not low <= value <= high:
            message = f"Invalid value: {value}: {_render(path)} in body must be of type {name}: {value}"
            _add(errors, path, message, "BOUNDS", "FieldValueInvalid")

    return check


def _text_format(name: str) -> Rule:
    matches = _FORMATS[name]

    def check(value: Json, path: Path, errors: list[FieldError]) -> None:
        if isinstance(value, str) and not matches(value):
            where = _render(path)
            shown = _shown(value)
            message = f"Invalid value: {shown}: {where} in body must be of type {name}: {shown}"
            _add(errors, path, message, "TYPE", "FieldValueInvalid")

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
            message = f"Invalid value: {value}: {_render(path)} in body should be {why}"
            _add(errors, path, message, "BOUNDS", "FieldValueInvalid")

    return check


def _pattern(pattern: str) -> Rule:
    # Go's `$` is the end of the text; Python's would also match before a last line break.
    source = re.sub(r"(?<!\\)\$$", r"\\Z", pattern)
    search = re.compile(source, re.ASCII).search

    def check(value: Json, path: Path, errors: list[FieldError]) -> None:
        if isinstance(value, str) and not search(value):
            where = _render(path)
            message = f"Invalid value: {_shown(value)}: {where} in body should match '{pattern}'"
            _add(errors, path, message, "PATTERN", "FieldValueInvalid")

    return check


def _sized(
    type_: type, code: str, broken: Callable[[int, int], bool], text: str, *, shows_size: bool
) -> Callable[[int], Rule]:
    def make(limit: int) -> Rule:
        def check(value: Json, path: Path, errors: list[FieldError]) -> None:
            if isinstance(value, type_) and broken(len(value), limit):
                message = text.format(
                    shown=len(value) if shows_size else _shown(value),
                    where=_render(path),
                    limit=limit,
                )
                _add(errors, path, message, code, "FieldValueInvalid")

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
        str, "LENGTH", _over, "Too long: may not be more than {limit} bytes", shows_size=False
    ),
    "minItems": _sized(
        list,
        "ITEMS",
        _under,
        "Invalid value: {shown}: {where} in body should have at least {limit} items",
        shows_size=True,
    ),
    "maxItems": _sized(
        list, "ITEMS", _over, "Too many: {shown}: must have at most {limit} items", shows_size=True
    ),
    "minProperties": _sized(
        dict,
        "ITEMS",
        _under,
        "Invalid value: {shown}: {where} in body should have at least {limit} properties",
        shows_size=True,
    ),
    "maxProperties": _sized(
        dict, "ITEMS", _over, "Too many: {shown}: must have at most {limit} items", shows_size=True
    ),
}

_COMBINATIONS = {
    "allOf": "must validate all the schemas (allOf)",
    "anyOf": "must validate at least one schema (anyOf)",
    "oneOf": "must validate one and only one schema (oneOf)",
}


def _combination(keyword: str, schemas: list[Structural]) -> Rule:
    def check(value: Json, path: Path, errors: list[FieldError]) -> None:
        matches = 0
        first: list[FieldError] = []
        for schema in schemas:
            found: list[FieldError] = []
            schema._validate(value, path, found)
            matches += not found
            first = first or found
        wanted = {"allOf": matches == len(schemas), "anyOf": matches > 0, "oneOf": matches == 1}
        if not wanted[keyword]:
            where = _render(path)
            message = f"Invalid value: {_shown(value)}: {where} in body {_COMBINATIONS[keyword]}"
            _add(errors, path, message, "COMBINATION", "FieldValueInvalid")
            if matches == 0:
                errors.extend(first)

    return check


def _negation(schema: Structural) -> Rule:
    def check(value: Json, path: Path, errors: list[FieldError]) -> None:
        found: list[FieldError] = []
        schema._validate(value, path, found)
        if not found:
            where = _render(path)
            message = f"Invalid value: {_shown(value)}: {where} in body must not validate the schema (not)"
            _add(errors, path, message, "COMBINATION", "FieldValueInvalid")

    return check


def compile(schema: dict[str, Any]) -> Structural:  # noqa: A001 - the word of the field
    """Compile the schema of a whole object (`openAPIV3Schema` of a CRD's version).

    `apiVersion`, `kind` and `metadata` are known without being named in the schema.
    """
    return Structural(schema, root=True)


def validate(schema: dict[str, Any], value: Json, path: str = "") -> list[FieldError]:
    """All violations of a schema in a value; compile the schema where it is used often."""
    return Structural(schema).validate(value, path)


def default(schema: dict[str, Any], value: Json) -> Json:
    """Write a schema's defaults into a value, in place."""
    return Structural(schema).default(value)


def prune(schema: dict[str, Any], value: Json) -> Json:
    """Drop, in place, the fields of a value that a schema does not have."""
    return Structural(schema).prune(value)
