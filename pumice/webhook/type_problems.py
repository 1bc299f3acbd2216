"""Fields of wrong types: what is wrong with them, asked only when an object does not decode, and the object without them.

Decoding stops at the first field that it cannot read. The structural schema then names all of them; what has no schema has
at least the one that stopped decoding. Both say what the API server does not: what was found there, and how to fix it.

The rules check the object without these fields, so that a wrong type and a misspelt plugin in one object are both
reported. The value that was meant is not guessed, and results that its absence may have caused are left out.
"""

import copy
import functools
import operator
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
from pumice.api.reviews import Request
from pumice.api.structural import Structural
from pumice.webhook.questions import without_nulls
from pumice.webhook.rules.catalogue import ALL
from pumice.webhook.rules.jobs.defaults import JOB_ZERO
from pumice.webhook.rules.within import unaffected

__all__ = [
    "brought_type_problems",
    "retold",
    "schema",
    "steps_of",
    "trusted",
    "type_problems",
    "value_at",
    "without",
]

_WHERE = re.compile(r"(?P<message>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)
_ENVELOPE = re.compile(r"^\.request\.(?:object|oldObject)")
_TYPE = "SCHEMA-TYPE"
_CHOICE = "SCHEMA-ENUM"
_EXPECTED = re.compile(r"Expected `(?P<wanted>\w+)(?: \| null)?`, got `(?P<found>\w+)`")
_SOME_KEY = "[...]"
"""How a decoder writes a key of a map; what is behind one cannot be found by a path."""

_SEGMENT = re.compile(r"(?:^|\.)(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]")

_SCHEMA_TYPES = {
    "int": "integer",
    "float": "number",
    "str": "string",
    "bool": "boolean",
    "array": "array",
    "object": "object",
}
"""Types as schemas call them, by how a decoder does."""


@functools.cache
def schema(kind: Kind) -> Structural | None:
    """The compiled schema of a kind; None for one whose schema is not ours."""
    return structural.compile(schema_of(kind)) if kind in VOLCANO else None


def type_problems(kind: Kind, raw: Any, error: Exception) -> list[FieldError]:
    """Every field of a wrong type in an object that is decoded without types; `error` is why it did not decode."""
    known, readable = schema(kind), without_nulls(raw)
    found = known.validate(readable) if known is not None else ()
    told = [retold(known, readable, each) for each in found if known and each.code == _TYPE]
    return told or [_first(error, raw)]


def retold(known: Structural, raw: Any, found: FieldError) -> FieldError:
    """A problem that a schema found in a raw object; of one with a type or a choice, how to fix it."""
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
    """How to write the first name of a list that should be a map of lists, as plugins are."""
    if node.additional is None or not node.additional.items or not isinstance(value, list):
        return ""
    return f'; write "{value[0]}: []"' if value and isinstance(value[0], str) else ""


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
    return [each for each in problems if not _is_untouched(each.path, new, old)]


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
        known = value is not msgspec.UNSET
        message = problem(expected, value) if known else _as_schemas_say(path, expected, found)
    return FieldError(path, message, _TYPE, "FieldValueTypeInvalid")


def _as_schemas_say(path: str, expected: str, found: str) -> str:
    """The same fault in the words of `structural`, which tells types and no values."""
    return f'Invalid value: "{found}": {path} in body must be of type {expected}: "{found}"'


def without(raw: Any, paths: Iterable[str]) -> Any:
    """A copy of a raw object without some of its fields; list items become empty objects.

    A path that cannot be followed, because a key of it has dots, is passed over.
    """
    rest = copy.deepcopy(raw)
    for path in paths:
        _remove(rest, steps_of(path))
    return rest


def value_at(raw: Any, path: str) -> Any:
    """What stands at a path; `msgspec.UNSET` where it cannot be followed."""
    if "".join(match[0] for match in _SEGMENT.finditer(path)) != path:
        return msgspec.UNSET
    try:
        return functools.reduce(operator.getitem, steps_of(path), raw)
    except (LookupError, TypeError):
        return msgspec.UNSET


def steps_of(path: str) -> list[str | int]:
    """The keys and positions that lead to a field; wrong ones for a key with dots."""
    return [
        int(match["index"]) if match["name"] is None else match["name"]
        for match in _SEGMENT.finditer(path)
    ]


def _remove(here: Any, steps: list[str | int]) -> None:
    for step in steps[:-1]:
        try:
            here = here[step]
        except (LookupError, TypeError):
            return
    last = steps[-1] if steps else None
    if isinstance(here, dict) and isinstance(last, str):
        here.pop(last, None)
    elif isinstance(here, list) and isinstance(last, int) and last < len(here):
        here[last] = {}


def trusted(found: Iterable[FieldError], dropped: Iterable[str]) -> list[FieldError]:
    """Results about the rest that hold for the whole object, too; see `unaffected`."""
    return unaffected(found, dropped, _COMPARING)


_COMPARING = frozenset(
    rule.code for rule in ALL if rule.compares and not rule.code.startswith("TPL-")
) | {JOB_ZERO.code}
"""Rules that compare fields, and the one whose message names a default that is computed from several.

Rules of pod templates compare fields of one template, which drops its own; see `pod_template`.
"""
