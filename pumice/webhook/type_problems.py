"""Fields of wrong types: the problems of an object that cannot be decoded.

Decoding stops at the first field that it cannot read. The structural schema then finds all of them; without a schema at
least the first one is reported. Messages say what was found and how to fix it, which the API server's do not.

The object without these fields is checked as `check_rest` in `rules/case.py` describes.
"""

import functools
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from pumice.api import structural
from pumice.api.crds import schema_of
from pumice.api.fields import FieldError, did_you_mean
from pumice.api.json_words import either, quoted
from pumice.api.kinds import VOLCANO, Kind
from pumice.api.mistyped import problem
from pumice.api.structural import Structural
from pumice.webhook.questions import UNREADABLE, Question, without_nulls
from pumice.webhook.rules.case import unaffected
from pumice.webhook.rules.catalogue import ALL
from pumice.webhook.rules.jobs.defaults import JOB_ZERO
from pumice.webhook.rules.paths import Within, value_at

__all__ = [
    "COMPARING",
    "brought_type_problems",
    "retold",
    "schema",
    "trusted",
    "type_problems",
]

_WHERE = re.compile(r"(?P<message>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)
_ENVELOPE = re.compile(r"^\.request\.(?:object|oldObject)")
_TYPE = "SCHEMA-TYPE"
_CHOICE = "SCHEMA-ENUM"
_EXPECTED = re.compile(r"Expected `(?P<wanted>\w+)(?: \| null)?`, got `(?P<found>\w+)`")
_SOME_KEY = "[...]"
"""How a decoder writes a key of a map; values below it cannot be found by a path."""

_SCHEMA_TYPES = {
    "int": "integer",
    "float": "number",
    "str": "string",
    "bool": "boolean",
    "array": "array",
    "object": "object",
}
"""Types in the words of schemas, by those of a decoder."""


@functools.cache
def schema(kind: Kind) -> Structural | None:
    """The compiled schema of a kind; None for kinds of others."""
    return structural.compile(schema_of(kind)) if kind in VOLCANO else None


def type_problems(kind: Kind, raw: Any, error: Exception) -> list[FieldError]:
    """Every field of a wrong type in an object that is decoded without types; `error` is why it did not decode."""
    known, readable = schema(kind), without_nulls(raw)
    found = known.validate(readable) if known is not None else ()
    told = [retold(known, readable, each) for each in found if known and each.code == _TYPE]
    return told or [_first(error, raw)]


def retold(known: Structural, raw: Any, found: FieldError) -> FieldError:
    """A problem that a schema found in a raw object; for types and choices, with how to fix it."""
    node, value = known.at(found.path), value_at(raw, found.path)
    if node is None or value is msgspec.UNSET:
        return found
    if found.code == _CHOICE and isinstance(value, str):
        choices = [each for each in node.choices if isinstance(each, str)]
        message = f"must be {either(choices)}, found {quoted(value)}{did_you_mean(value, choices)}"
    elif found.code == _TYPE and type(value) not in node.types_expected:
        message = problem(node.expected, value) + _hint_for_map(node, value)
    else:
        return found  # a text of a wrong format, for example
    return msgspec.structs.replace(found, message=message)


def _hint_for_map(node: Structural, value: Any) -> str:
    """How to write the first name of a list that should be a map of lists, such as `plugins`."""
    if node.additional is None or not node.additional.items or not isinstance(value, list):
        return ""
    return f'; write "{value[0]}: []"' if value and isinstance(value[0], str) else ""


def brought_type_problems(
    kind: Kind, request: Question[msgspec.Raw], error: Exception
) -> list[FieldError]:
    """Type problems of a question's object, without those that the stored object has.

    None for an update that does not change the spec, and for an object that is being deleted.
    """
    try:
        new, old = (
            msgspec.json.decode(raw or b"null") for raw in (request.object, request.old_object)
        )
        problems = type_problems(kind, new, error)
        if request.operation == "UPDATE" and isinstance(new, dict) and isinstance(old, dict):
            meta = new.get("metadata")
            going = isinstance(meta, dict) and bool(meta.get("deletionTimestamp"))
            if going or new.get("spec") == old.get("spec"):
                return []
            problems = [each for each in problems if not _is_untouched(each.path, new, old)]
        return problems
    except UNREADABLE:
        return [_first(error)]  # without types nothing can be read at all


def _is_untouched(path: str, new: Any, old: Any) -> bool:
    found = value_at(new, path)
    return bool(path) and found is not msgspec.UNSET and bool(found == value_at(old, path))


def _first(error: Exception, raw: Any = None) -> FieldError:
    match = _WHERE.fullmatch(str(error))
    text, where = (match["message"], match["path"] or "") if match else (str(error), "")
    path, behind_key, _ = _ENVELOPE.sub("", where).lstrip(".").partition(_SOME_KEY)
    message = text[:1].lower() + text[1:]
    named = _EXPECTED.fullmatch(text) if path else None
    expected = _SCHEMA_TYPES.get(named["wanted"]) if named else None
    if named and expected:
        value = msgspec.UNSET if behind_key else value_at(raw, path)
        found = _SCHEMA_TYPES.get(named["found"], named["found"])
        if value is not msgspec.UNSET:
            message = problem(expected, value)
        else:  # as `structural` says it, with types and without values
            message = (
                f'Invalid value: "{found}": {path} in body must be of type {expected}: "{found}"'
            )
    return FieldError(path, message, _TYPE, "FieldValueTypeInvalid")


def trusted(found: Iterable[FieldError], dropped: Iterable[str]) -> list[FieldError]:
    """Results about an object without some fields that also hold for the whole object; see `unaffected`."""
    return unaffected(found, Within(dropped), COMPARING)


COMPARING = frozenset(
    rule.code for rule in ALL if rule.compares and not rule.code.startswith("TPL-")
) | {JOB_ZERO.code}
"""Rules that compare fields, and the rule whose message has a default that is computed from several fields.

Rules of pod templates drop their own results; see `pod_template`.
"""
