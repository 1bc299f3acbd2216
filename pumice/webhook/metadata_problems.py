"""What the API server requires of the metadata of every kind: name, namespace, labels and annotations.

Schemas of custom resources do not cover metadata, and rules do not repeat the checks of the API server.
"""

from collections.abc import Callable, Iterator
from typing import Any

from pumice.api import mistyped
from pumice.api.fields import FieldError
from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.webhook.rules.labels import Problem, annotation_problems, label_problems

__all__ = ["metadata_problems", "readable"]

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
