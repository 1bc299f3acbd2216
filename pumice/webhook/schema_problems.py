"""Problems that need no rules: what the schema of a kind refuses, and what an API server does before it calls webhooks.

Fields of wrong types are the problems of an object that cannot be decoded. Decoding stops at the first field that it
cannot read. The structural schema then finds all of them; without a schema at least the first one is reported. Messages
say what was found and how to fix it, which the API server's do not. The object without these fields is checked as
`check_rest` in `rules/case.py` describes.

Offline, three more are found, which an API server does not leave to webhooks:

- It requires valid names, labels and annotations of every kind; schemas of custom resources do not cover metadata, and
  rules do not repeat these checks.
- It drops unknown fields silently. Most are misspelt. Others are fields of another object: with wrong indentation YAML
  puts them into the wrong one.
- It drops null entries of maps silently. A null field is the same as a missing one, but the key of a map entry has a
  meaning: `plugins: {pytorch: }` means a plugin without arguments, and becomes a Job without that plugin.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from pumice.api import structural
from pumice.api.crds import schema_of
from pumice.api.fields import FieldError, did_you_mean
from pumice.api.json_words import either, quoted, type_problem
from pumice.api.kinds import VOLCANO, Kind
from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.api.raw import object_in
from pumice.api.structural import Structural
from pumice.api.structural_rules import Path, render
from pumice.webhook.questions import UNREADABLE, Question, without_nulls
from pumice.webhook.rules.catalogue import ALL
from pumice.webhook.rules.jobs.defaults import JOB_ZERO
from pumice.webhook.rules.labels import Problem, annotation_problems, label_problems
from pumice.webhook.rules.paths import value_at

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
        message = type_problem(node.expected, value) + _hint_for_map(node, value)
    else:
        return found  # a text of a wrong format, for example
    return msgspec.structs.replace(found, message=message)


def _hint_for_map(node: Structural, value: Any) -> str:
    """How to write the first name of a list that should be a map of lists, such as `plugins`."""
    if node.additional is None or not node.additional.items or not isinstance(value, list):
        return ""
    return f'; write "{value[0]}: []"' if value and isinstance(value[0], str) else ""


def brought_type_problems(
    kind: Kind, request: Question[msgspec.Raw | None], error: Exception
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
            message = type_problem(expected, value)
        else:  # as `structural` says it, with types and without values
            message = (
                f'Invalid value: "{found}": {path} in body must be of type {expected}: "{found}"'
            )
    return FieldError(path, message, _TYPE, "FieldValueTypeInvalid")


COMPARING = frozenset(
    rule.code for rule in ALL if rule.compares and not rule.code.startswith("TPL-")
) | {JOB_ZERO.code}
"""Rules that compare fields, and the rule whose message has a default that is computed from several fields.

Rules of pod templates drop their own results; see `pod_template`.
"""


_MAPS: dict[str, Callable[[dict[str, str]], Iterator[Problem]]] = {
    "labels": label_problems,
    "annotations": annotation_problems,
}


def metadata_problems(manifest: dict[str, Any], *, namespaced: bool) -> list[FieldError]:
    """Find invalid names, labels and annotations.

    Values that are not strings are among them, such as `volcano.sh/preemptable: true` without quotes. For
    cluster-scoped kinds the API server drops the namespace.
    """
    meta = object_in(manifest, "metadata")
    spaces = _namespace_problems(meta) if namespaced else ()
    return [*_name_problems(meta), *spaces, *_entry_problems(meta)]


def readable(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest without labels and annotations that are not strings, so that rules can check the rest."""
    meta = object_in(manifest, "metadata")
    kept = {
        field: {key: each for key, each in meta[field].items() if isinstance(each, str | None)}
        for field in _MAPS
        if isinstance(meta.get(field), dict)
    }
    return {**manifest, "metadata": {**meta, **kept}} if kept else manifest


def _name_problems(meta: dict[str, Any]) -> Iterator[FieldError]:
    field = "name" if meta.get("name") else "generateName"
    name = meta.get(field)
    if not name:
        message = "must be set, or generateName"
        yield FieldError("metadata.name", message, "SCHEMA-NAME", "FieldValueRequired")
    elif not isinstance(name, str):
        yield FieldError(f"metadata.{field}", "must be a string", "SCHEMA-NAME")
    else:
        may_end_with_dash = field == "generateName" and name.endswith("-")
        whole = f"{name[:-1]}a" if may_end_with_dash else name
        if problem := dns_subdomain_problem(whole):
            message = problem.replace(f'"{whole}"', f'"{name}"')
            yield FieldError(f"metadata.{field}", message, "SCHEMA-NAME")


def _namespace_problems(meta: dict[str, Any]) -> Iterator[FieldError]:
    namespace = meta.get("namespace")
    if isinstance(namespace, str) and namespace and (problem := dns_label_problem(namespace)):
        yield FieldError("metadata.namespace", problem, "SCHEMA-NAME")


def _entry_problems(meta: dict[str, Any]) -> Iterator[FieldError]:
    for field, problems in _MAPS.items():
        entries = meta.get(field)
        if not isinstance(entries, dict):
            continue
        texts = {}
        for key, value in entries.items():
            if isinstance(value, str):
                texts[key] = value
            elif value is not None:
                path = f"metadata.{field}[{key}]"
                message = type_problem("string", value)
                yield FieldError(path, message, "SCHEMA-TYPE", "FieldValueTypeInvalid")
        for where, message in problems(texts):
            yield FieldError(f"metadata.{field}[{where[1:]}]", message, "SCHEMA-LABELS")


_INWARD = 2
"""How many levels below its place a field is searched: `template.spec.containers` for `containers`."""


def unknown_fields(known: Structural, dropped: Iterable[str]) -> list[FieldError]:
    """Warn about every path that pruning by the schema drops, with what was probably meant."""
    said = "is not a field of this kind and is dropped"
    return [FieldError(path, f"{said}{_hint(known, path)}", "SCHEMA-UNKNOWN") for path in dropped]


def _hint(known: Structural, path: str) -> str:
    outer, _, name = path.rpartition(".")
    places = _inward(known, outer, name) or _outward(known, outer, name)
    if len(places) == 1:
        return f' (did you mean "{places[0]}"?)'
    return did_you_mean(name, known.names_beside(path)) or _hint_for_entry(known, outer, name)


def _inward(known: Structural, outer: str, name: str) -> list[str]:
    """Paths of the nearest fields of that name in objects below."""
    level = [(outer, known.at(outer))]
    for _ in range(_INWARD):
        level = [
            below for path, node in level if node is not None for below in _objects(path, node)
        ]
        if found := [f"{path}.{name}" for path, node in level if node and name in node.properties]:
            return found
    return []


def _objects(path: str, node: Structural) -> Iterator[tuple[str, Structural]]:
    for field, child in node.properties.items():
        if not path and field == "status":  # which is not the user's
            continue
        below = f"{path}.{field}" if path else field
        if child.properties:
            yield below, child
        elif child.items is not None:
            yield f"{below}[]", child.items


def _outward(known: Structural, outer: str, name: str) -> list[str]:
    """The path of the nearest field of that name in a parent object, without the root."""
    while outer := outer.rpartition(".")[0]:
        node = known.at(outer)
        if node is not None and name in node.properties:
            return [f"{outer}.{name}"]
    return []


def _hint_for_entry(known: Structural, outer: str, name: str) -> str:
    """The entry of that name, if an object has one map and no other field: `guarantee.resource.cpu`."""
    node = known.at(outer)
    if node is None or len(node.properties) != 1:
        return ""
    ((field, child),) = node.properties.items()
    return f' (did you mean "{outer}.{field}.{name}"?)' if child.additional is not None else ""


_EMPTY = {"array": "[]", "object": "{}", "string": '""'}
"""Empty values by type, as they are written."""


def null_entries(known: Structural, value: Any) -> list[FieldError]:
    """Warn about each null entry of an object in the document's order; call it before defaulting."""
    return [*_nulls(known, value, ())]


def _nulls(known: Structural, value: Any, path: Path) -> Iterator[FieldError]:
    if isinstance(value, dict):
        for name, item in value.items():
            child = known.properties.get(name, known.additional)
            if child is None:
                continue
            if item is not None:
                yield from _nulls(child, item, (name, path))
            elif child is known.additional and not (child.nullable or child.has_default):
                hint = f"; write {_EMPTY[child.type_name]}" if child.type_name in _EMPTY else ""
                message = f"is null, and the API server removes it as if it were not there{hint}"
                yield FieldError(render((name, path)), message, "SCHEMA-NULL")
    elif isinstance(value, list) and known.items is not None:
        for index, item in enumerate(value):
            yield from _nulls(known.items, item, (index, path))
