"""What is of the wrong type: asked only when an object does not decode.

Decoding stops at the first field that it cannot read. The structural schema then names all of
them, as the API server would; what has no schema has at least the one that stopped decoding.
"""

import re
from functools import cache
from typing import Any

import msgspec

from pumice.api import structural
from pumice.api.crds import schema_of
from pumice.api.fields import FieldError
from pumice.api.kinds import VOLCANO, Kind
from pumice.api.reviews import Request
from pumice.api.structural import Structural
from pumice.webhook.questions import without_nulls
from pumice.webhook.salvage import steps_of

__all__ = ["brought_type_problems", "schema", "type_problems"]

_WHERE = re.compile(r"(?P<message>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)
_ENVELOPE = re.compile(r"^\.request\.(?:object|oldObject)")
_TYPE = "SCHEMA-TYPE"
_EXPECTED = re.compile(r"Expected `(?P<wanted>\w+)(?: \| null)?`, got `(?P<found>\w+)`")
_SOME_KEY = "[...]"
"""How a decoder writes a key of a map; what is behind one cannot be found by a path."""

_SCHEMA_TYPES = {
    "int": "integer",
    "float": "number",
    "str": "string",
    "bool": "boolean",
    "array": "array",
    "object": "object",
}
"""Types as schemas call them, by how a decoder does."""


@cache
def schema(kind: Kind) -> Structural | None:
    """The compiled schema of a kind; None for one whose schema is not ours."""
    return structural.compile(schema_of(kind)) if kind in VOLCANO else None


def type_problems(kind: Kind, raw: Any, error: Exception) -> list[FieldError]:
    """Every field of a wrong type.

    Args:
        kind: Kind of the object.
        raw: The object, decoded without types.
        error: Why it did not decode.
    """
    return _by_schema(kind, raw) or [_first(error)]


def _by_schema(kind: Kind, raw: Any) -> list[FieldError]:
    known = schema(kind)
    return [] if known is None else _of_types(known.validate(without_nulls(raw)))


def brought_type_problems(kind: Kind, request: Request, error: Exception) -> list[FieldError]:
    """Type problems of a request's object, without those that the stored object has already.

    None for an update that leaves the spec alone, and for an object that is being deleted.
    """
    try:
        return _brought(kind, request, error)
    except (ValueError, RecursionError):
        return [_first(error)]  # without types nothing can be read at all


def _brought(kind: Kind, request: Request, error: Exception) -> list[FieldError]:
    new, old = msgspec.json.decode(request.object), msgspec.json.decode(request.old_object)
    problems = type_problems(kind, new, error)
    if request.operation != "UPDATE" or not isinstance(new, dict) or not isinstance(old, dict):
        return problems
    meta = new.get("metadata")
    going = isinstance(meta, dict) and bool(meta.get("deletionTimestamp"))
    if going or new.get("spec") == old.get("spec"):
        return []
    standing = set(_by_schema(kind, old))
    return [
        problem
        for problem in problems
        if problem not in standing and not _is_untouched(problem.path, new, old)
    ]


def _is_untouched(path: str, new: Any, old: Any) -> bool:
    """Whether a field is there, and the same as before."""
    for step in steps_of(path):
        try:
            new, old = new[step], old[step]
        except (LookupError, TypeError):
            return False
    return bool(path) and bool(new == old)


def _of_types(errors: list[FieldError]) -> list[FieldError]:
    return [error for error in errors if error.code == _TYPE]


def _first(error: Exception) -> FieldError:
    match = _WHERE.fullmatch(str(error))
    text, where = (match["message"], match["path"] or "") if match else (str(error), "")
    path = _ENVELOPE.sub("", where).lstrip(".").partition(_SOME_KEY)[0]
    named = _EXPECTED.fullmatch(text) if path else None
    said = _as_schemas_say(path, named["wanted"], named["found"]) if named else None
    message = said or text[:1].lower() + text[1:]
    return FieldError(path, message, _TYPE, "FieldValueTypeInvalid")


def _as_schemas_say(path: str, wanted: str, found: str) -> str | None:
    """The same fault in the words of `structural`; None for a type that schemas do not know."""
    expected, actual = _SCHEMA_TYPES.get(wanted), _SCHEMA_TYPES.get(found, found)
    if expected is None:
        return None
    return f'Invalid value: "{actual}": {path} in body must be of type {expected}: "{actual}"'
