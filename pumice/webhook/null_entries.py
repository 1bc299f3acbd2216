"""Entries of maps that an API server removes because they are null.

A field that is null is as good as left out. An entry of a map is named by its author: whoever writes
`plugins: {pytorch: }` means a plugin without arguments, and gets a Job without that plugin.
"""

from typing import Any

from pumice.api.fields import FieldError
from pumice.api.structural import Structural
from pumice.api.structural_rules import Path, render

__all__ = ["null_entries"]


_EMPTY = {"array": "[]", "object": "{}", "string": '""'}
"""How nothing is written, by type."""


def null_entries(known: Structural, value: Any) -> list[FieldError]:
    """Warn about each such entry of an object, in the document's order; to be asked before defaulting."""
    found: list[FieldError] = []
    _look(known, value, (), found)
    return found


def _look(known: Structural, value: Any, path: Path, found: list[FieldError]) -> None:
    if isinstance(value, dict):
        for name, item in value.items():
            child = known.properties.get(name, known.additional)
            if child is None:
                continue
            if item is None:
                if child is known.additional and not (child.nullable or child.has_default):
                    found.append(FieldError(render((name, path)), _told(child), "SCHEMA-NULL"))
            else:
                _look(child, item, (name, path), found)
    elif isinstance(value, list) and known.items is not None:
        for index, item in enumerate(value):
            _look(known.items, item, (index, path), found)


def _told(child: Structural) -> str:
    hint = f"; write {_EMPTY[child.type_name]}" if child.type_name in _EMPTY else ""
    return f"is null, and the API server removes it as if it were not there{hint}"
