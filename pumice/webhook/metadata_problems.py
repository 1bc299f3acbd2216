"""What an API server itself asks of an object's metadata, whatever its kind: a name, labels and annotations.

Schemas of custom resources say nothing of metadata, and rules leave to the API server what it says by itself.
"""

from collections.abc import Callable, Iterator
from typing import Any

from pumice.api.fields import FieldError
from pumice.api.names import dns_subdomain_problem
from pumice.webhook.rules.differences import brief
from pumice.webhook.rules.labels import Problem, annotation_problems, label_problems

__all__ = ["metadata_problems", "with_texts"]

_MAPS: dict[str, Callable[[dict[str, str]], Iterator[Problem]]] = {
    "labels": label_problems,
    "annotations": annotation_problems,
}


def metadata_problems(manifest: dict[str, Any]) -> list[FieldError]:
    """Say what is wrong with the name, and which labels and annotations no object can have.

    Those that are no texts are among them, which `volcano.sh/preemptable: true` becomes for lack of quotes.
    """
    meta = manifest.get("metadata")
    if not isinstance(meta, dict):
        return [_nameless()]
    return [*_name_problems(meta), *_entry_problems(meta)]


def with_texts(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest as far as its labels and annotations can be read, for rules to judge what they can."""
    meta = manifest.get("metadata")
    if not isinstance(meta, dict):
        return manifest
    kept = {
        field: {key: value for key, value in meta[field].items() if _is_text(value)}
        for field in _MAPS
        if isinstance(meta.get(field), dict) and not all(map(_is_text, meta[field].values()))
    }
    return {**manifest, "metadata": {**meta, **kept}} if kept else manifest


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _name_problems(meta: dict[str, Any]) -> Iterator[FieldError]:
    name = meta.get("name")
    if not name:
        if not meta.get("generateName"):
            yield _nameless()
        return
    problem = dns_subdomain_problem(name) if isinstance(name, str) else "must be a text"
    if problem:
        yield FieldError("metadata.name", problem, "SCHEMA-NAME")


def _nameless() -> FieldError:
    message = "must be set, or generateName"
    return FieldError("metadata.name", message, "SCHEMA-NAME", "FieldValueRequired")


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
                hint = "" if isinstance(value, dict | list) else "; put it in quotes"
                message = f"must be a text, found {brief(value)}{hint}"
                yield FieldError(path, message, "SCHEMA-TYPE", "FieldValueTypeInvalid")
        for where, problem in problems(texts):
            yield FieldError(f"metadata.{field}[{where[1:]}]", problem, "SCHEMA-LABELS")
