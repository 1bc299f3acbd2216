"""Tables: the form in which kubectl requests objects for printing."""

from collections.abc import Callable, Sequence
from typing import Any

from pumice.api.durations import UNKNOWN, human_duration
from pumice.api.meta import parse_time
from pumice.embedded.jsonpaths import PathError, compile_path
from pumice.embedded.printers import AGE, NAME, PRINTERS, Cell, Printer
from pumice.embedded.resources import PrinterColumn, Resource
from pumice.embedded.storage import Obj, Version

__all__ = ["Tables"]

_API_VERSION = "meta.k8s.io/v1"


class Tables:
    """Makes tables of objects.

    Args:
        clock: Gives the moment, for ages.
    """

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
                since = parse_time(value) if isinstance(value, str) else None
                return UNKNOWN if since is None else human_duration(moment - since)
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
