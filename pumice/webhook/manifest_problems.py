"""What an API server finds in a manifest before webhooks are called: offline it is found here.

It requires valid names, labels and annotations of every kind; schemas of custom resources do not cover metadata, and
rules do not repeat these checks.

It drops unknown fields, and null entries of maps, silently. Most unknown fields are misspelt. Others are fields of
another object: with wrong indentation YAML puts them into the wrong one. A null field is the same as a missing one, but
the key of a map entry has a meaning: `plugins: {pytorch: }` means a plugin without arguments, and becomes a Job without
that plugin.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pumice.api import mistyped
from pumice.api.fields import FieldError, did_you_mean
from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.api.structural import Structural
from pumice.api.structural_rules import Path, render
from pumice.webhook.rules.labels import Problem, annotation_problems, label_problems

__all__ = ["metadata_problems", "null_entries", "readable", "unknown_fields"]

_MAPS: dict[str, Callable[[dict[str, str]], Iterator[Problem]]] = {
    "labels": label_problems,
    "annotations": annotation_problems,
}


def metadata_problems(manifest: dict[str, Any], *, namespaced: bool) -> list[FieldError]:
    """Find invalid names, labels and annotations.

    Values that are not strings are among them, such as `volcano.sh/preemptable: true` without quotes. For
    cluster-scoped kinds the API server drops the namespace.
    """
    found = manifest.get("metadata")
    meta = found if isinstance(found, dict) else {}
    spaces = _namespace_problems(meta) if namespaced else ()
    return [*_name_problems(meta), *spaces, *_entry_problems(meta)]


def readable(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest without labels and annotations that are not strings, so that rules can check the rest."""
    meta = manifest.get("metadata")
    if not isinstance(meta, dict):
        return manifest
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
                message = mistyped.problem("string", value)
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
    return did_you_mean(name, known.names_beside(path)) or _hint_for_map(known, outer, name)


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


def _hint_for_map(known: Structural, outer: str, name: str) -> str:
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
