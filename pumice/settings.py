"""Settings and configuration files that people write: pydantic reads them, this module reports what is wrong with them.

Every problem has the same form, whatever it is about: the path, what is expected, what was found, and the nearest
known key. pydantic takes 8 MiB and 50 ms, so this module is imported where there is something to read, and not before.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from msgspec.structs import replace
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from pumice.api.documents import parse, written
from pumice.api.fields import Suggestions
from pumice.api.json_words import either, shown
from pumice.api.setting_errors import SettingError, SettingProblem
from pumice.api.yaml_values import DocumentError

Location = tuple[str | int, ...]
Schema = dict[str, Any]

UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
"""Codes of a key that a model, or a dataclass, does not have."""

_EXPECTED = {
    "invalid_key": "must have strings as keys",
    "string": "must be a string",
    "int": "must be an integer",
    "float": "must be a number",
    "bool": "must be true or false",
    "list": "must be a list",
    "tuple": "must be a list",
    "greater_than_equal": "must be at least {ge}",
    "string_too_short": "must have at least {min_length} character",
    "too_short": "must have at least {min_length}",
    **dict.fromkeys(("dict", "mapping", "model", "dataclass"), "must be an object"),
}
"""What is expected, by pydantic's code (`invalid_key`) or its first word (`int_parsing`)."""


class FilePart(BaseModel):
    """An object of a file. Keys are in camel case; an optional key whose value is null counts as left out."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, alias_generator=to_camel, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        optional = {each.alias for each in cls.model_fields.values() if not each.is_required()}
        return {
            key: each for key, each in value.items() if not is_null(each) or key not in optional
        }


def is_null(value: Any) -> bool:
    """True if a value is null, also if it is a scalar that is kept as written."""
    return value is None or getattr(value, "is_null", False)


def document(raw: bytes, *, as_written: bool = False) -> Any:
    """The value of a YAML or JSON file; None if the file has no document that is not empty.

    Args:
        raw: The file.
        as_written: Whether scalars are kept as they are written, and values have their lines.

    Raises:
        SettingError: The file cannot be read, or has several documents.
    """
    try:
        found = (
            [(each.line, each) for each in written(raw)]
            if as_written
            else [(line, value) for _, line, value in parse(raw)]
        )
    except DocumentError as error:
        raise SettingError([SettingProblem((), str(error), "yaml", error.line)]) from None
    if len(found) > 1:
        message = "must be one document, here begins another"
        raise SettingError([SettingProblem((), message, "yaml", found[1][0])])
    return found[0][1] if found else None


def read(model: Any, value: Any, context: Any = None, at: Location = ()) -> Any:
    """Read a value.

    Args:
        model: A model, or another type that pydantic knows.
        value: What was written, as JSON has it.
        context: What validators get.
        at: Location of the value.

    Raises:
        SettingError: The value does not fit the model; lists all problems.
    """
    adapter = _adapter(model)
    try:
        return adapter.validate_python(value, context=context)
    except ValidationError as error:
        raise SettingError(_problems(error, adapter, at)) from None


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    """What reads values of a type; to make it takes longer than to read a file."""
    return TypeAdapter(model)


def read_leniently(
    model: Any, value: Any, context: Any = None, at: Location = ()
) -> tuple[Any, tuple[SettingProblem, ...]]:
    """Read a value as Volcano does, which ignores unknown keys: they are warnings.

    Raises:
        SettingError: The value does not fit the model for another reason.
    """
    try:
        return read(model, value, context, at), ()
    except SettingError as error:
        problems = error.problems
    others = [each for each in problems if each.code not in UNKNOWN]
    unknown = tuple(
        replace(each, message=each.message.replace("key", "key, ignored", 1))
        for each in problems
        if each.code in UNKNOWN
    )
    if not others:
        for each in unknown:
            value = _without(value, each.location[len(at) :])
        try:
            return read(model, value, context, at), unknown
        except SettingError as error:
            others = list(error.problems)
    raise SettingError(others, unknown)


def checked(problem: Callable[[Any], str | None], code: str = "") -> AfterValidator:
    """Makes a validator from a function that returns what is wrong with a value, or None."""

    def check(value: Any) -> Any:
        if found := problem(value):
            raise PydanticCustomError(code or "value", "{text}", {"text": found})
        return value

    return AfterValidator(check)


def refuse(problems: Iterable[tuple[Location, str]], code: str = "") -> None:
    """Refuse a value in a validator if there are problems.

    Args:
        problems: Locations below the value, each with its problem.
        code: Code of the problems.

    Raises:
        ValidationError: There is at least one problem.
    """
    details = [
        InitErrorDetails(
            type=PydanticCustomError(code or "value", "{text}", {"text": text}),
            loc=location,
            input=None,
        )
        for location, text in problems
    ]
    if details:
        raise ValidationError.from_exception_data("", details)


def json_schema(model: Any) -> Schema:
    """The JSON schema without references, since messages about referenced schemas are hard to read."""
    schema = _adapter(model).json_schema()
    inlined: Schema = _inlined(schema, schema.pop("$defs", {}))
    return inlined


def _inlined(part: Any, definitions: Mapping[str, Schema]) -> Any:
    if isinstance(part, list):
        return [_inlined(each, definitions) for each in part]
    if not isinstance(part, dict):
        return part
    whole = {**definitions.get(part.get("$ref", "").rpartition("/")[2], {}), **part}
    return {
        key: {name: _inlined(each, definitions) for name, each in value.items()}
        if key == "properties"
        else _inlined(value, definitions)
        for key, value in whole.items()
        if key not in ("$ref", "title")
        and (key != "default" or isinstance(value, bool | int | str))
    }


def _problems(
    error: ValidationError, adapter: TypeAdapter[Any], at: Location
) -> list[SettingProblem]:
    """Pydantic's errors as problems in Pumice's words."""
    suggestions = Suggestions()
    schema: Schema = {}
    found = []
    for each in error.errors(include_url=False):
        location = tuple(step for step in each["loc"] if step != "[key]")
        if each["type"] == "invalid_key":
            location = location[:-1]
        if each["type"] in UNKNOWN:
            schema = schema or adapter.json_schema()
            known = list(_at(schema, location[:-1]).get("properties", ()))
            hint = suggestions.did_you_mean(str(location[-1]), known)
            rest = ", …" if len(known) > _MOST_KEYS else ""
            message = f"unknown key{hint or ', known are ' + ', '.join(known[:_MOST_KEYS]) + rest}"
        elif each["type"] == "missing":
            schema = schema or adapter.json_schema()
            what = _at(schema, location).get("description")
            message = f"must be set{f' ({what})' if what else ''}"
        else:
            message = _message(each, suggestions)
        found.append(SettingProblem((*at, *location), message, each["type"]))
    return found


def _message(error: ErrorDetails, suggestions: Suggestions) -> str:
    kind, context, value = error["type"], error.get("ctx", {}), error["input"]
    if own := context.get("text") or context.get("error"):
        return str(own)
    if kind == "literal_error":
        known = [each.strip("'") for each in context["expected"].replace(" or ", ", ").split(", ")]
        hint = suggestions.did_you_mean(value, known) if isinstance(value, str) else ""
        return f"must be {either(known)}, found {_found(value)}{hint}"
    expected = _EXPECTED.get(kind) or _EXPECTED.get(kind.partition("_")[0])
    if expected is None:
        return f"{error['msg'][:1].lower()}{error['msg'][1:]}, found {_found(value)}"
    if kind.endswith("too_short"):
        return f"{expected.format(**context)}, found {len(value) or 'none'}"
    return f"{expected.format(**context)}, found {_found(value)}"


def _found(value: object) -> str:
    if isinstance(value, list | tuple):
        return "a list"
    try:
        text = shown(None if is_null(value) else value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_LONGEST, _MOST_KEYS = 120, 12


def _at(schema: Schema, location: Location) -> Schema:
    """The part of a schema that describes a location."""
    definitions = schema.get("$defs", {})

    def resolved(part: Schema) -> Schema:
        return definitions[part["$ref"].rpartition("/")[2]] if "$ref" in part else part

    part = resolved(schema)
    for step in location:
        below = part.get("items") if isinstance(step, int) else part.get("properties", {}).get(step)
        part = resolved(below or part.get("additionalProperties") or {})
    return part


def _without(value: Any, location: Location) -> Any:
    """A value without the part at a location. A part that an alias repeats stays at its other locations."""
    first, *rest = location
    if isinstance(value, list):
        return [
            _without(each, tuple(rest)) if index == first else each
            for index, each in enumerate(value)
        ]
    if not rest:
        return {key: each for key, each in value.items() if key != first}
    return {**value, first: _without(value[first], tuple(rest))}
