"""Tables: the form in which kubectl requests objects for printing.

Printer columns of CRDs use a part of JSONPath: fields (`.a.b`, `["a"]` in single quotes, a backslash before a dot inside a
name), indexes (`[0]`, `[-1]`, `[*]`) and filters that compare a field of an item with a literal (`[?(@.type=="Ready")]`).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pumice.api.durations import human_age
from pumice.embedded.printers import AGE, NAME, PRINTERS, Cell, Printer
from pumice.embedded.resources import PrinterColumn, Resource
from pumice.embedded.storage import Obj, Version

Step = Callable[[Any], Iterator[Any]]
Evaluate = Callable[[Any], list[Any]]

_TOKEN = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\\])+)
      | \[(?P<index>-?\d+|\*)\]
      | \['(?P<quoted>[^']*)'\]
      | \[\?\(\s*@(?P<path>(?:\.(?:\\.|[^.\s=!<>)\\])+)+)\s*
            (?P<operator>==|!=)\s*(?P<literal>"[^"]*"|'[^']*'|[\w.-]+)\s*\)\]""",
    re.VERBOSE,
)


class PathError(ValueError):
    """A JSONPath that is not understood here."""


def compile_path(text: str) -> Evaluate:
    """Compile a path into a function from an object to all values found.

    Raises:
        PathError: When the path is not understood.
    """
    source = text.strip().removeprefix("{").removesuffix("}")
    if not source.startswith((".", "[")):
        source = f".{source}"
    steps: list[Step] = []
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise PathError(f"JSONPath {text!r}: cannot read {source[position:]!r}")
        steps.append(_step(match))
        position = match.end()

    def evaluate(obj: Any) -> list[Any]:
        values = [obj]
        for step in steps:
            values = [found for value in values for found in step(value)]
        return values

    return evaluate


def _step(match: re.Match[str]) -> Step:
    if match["field"] is not None:
        return _field(re.sub(r"\\(.)", r"\1", match["field"]))
    if match["quoted"] is not None:
        return _field(match["quoted"])
    if match["index"] is not None:
        return _index(match["index"])
    return _filter(match["path"], match["operator"], match["literal"])


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and value.get(name) is not None:
            yield value[name]

    return step


def _index(text: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        items = list(value.values()) if isinstance(value, dict) else value
        if not isinstance(items, list):
            return
        if text == "*":
            yield from items
        elif -len(items) <= int(text) < len(items):
            yield items[int(text)]

    return step


def _filter(path: str, operator: str, literal: str) -> Step:
    evaluate = compile_path(path)
    wanted = literal.strip("\"'")

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            found = evaluate(item)
            equal = bool(found) and _as_literal(found[0]) == wanted
            if equal is (operator == "=="):
                yield item

    return step


def _as_literal(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_API_VERSION = "meta.k8s.io/v1"


class Tables:
    """Makes tables of objects."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._custom: dict[int, tuple[Resource, Printer]] = {}

    def table(
        self, resource: Resource, versions: Sequence[Version], include: str, *, headed: bool
    ) -> dict[str, Any]:
        """A table without its metadata.

        Args:
            resource: What the objects are.
            versions: The objects.
            include: `None`, `Metadata` or `Object`: what of the object each row carries.
            headed: Whether to describe the columns.
        """
        printer = self._printer(resource)
        moment = self._clock()
        definitions = [_definition(column) for column, _ in printer] if headed else []
        return {
            "kind": "Table",
            "apiVersion": _API_VERSION,
            "metadata": {},
            "columnDefinitions": definitions,
            "rows": [
                {
                    "cells": [cell(version.obj, moment) for _, cell in printer],
                    "object": _row_object(version.obj, include),
                }
                for version in versions
            ],
        }

    def _printer(self, resource: Resource) -> Printer:
        if resource.columns is None:
            return PRINTERS.get(resource.key, (NAME, AGE))
        known = self._custom.get(id(resource))
        if known is None or known[0] is not resource:
            printer = (NAME, *((column, _cell(column)) for column in resource.columns))
            known = self._custom[id(resource)] = (resource, printer)
        return known[1]


def _definition(column: PrinterColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _row_object(obj: Obj, include: str) -> Obj | None:
    match include:
        case "None":
            return None
        case "Object":
            return obj
        case _:
            return {
                "kind": "PartialObjectMetadata",
                "apiVersion": _API_VERSION,
                "metadata": obj["metadata"],
            }


def _cell(column: PrinterColumn) -> Cell:
    """The cell of a CRD's printer column; nothing where the path cannot be read."""
    try:
        evaluate = compile_path(column.path)
    except PathError:
        return lambda _obj, _moment: None

    def cell(obj: Obj, moment: float) -> Any:
        found = evaluate(obj)
        if not found:
            return None
        value = found[0]
        match column.type:
            case "date":
                return human_age(value if isinstance(value, str) else None, moment)
            case "integer":
                return value if type(value) is int else None
            case "number":
                return value if type(value) in {int, float} else None
            case "boolean":
                return value if isinstance(value, bool) else None
            case _:
                return value if isinstance(value, str) else _text(value)

    return cell


def _text(value: Any) -> str:
    """A value that is no text, written into a column of text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(_text(each) for each in value) + "]"
    return str(value)
