"""Differences between two objects, field by field, as text."""

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

import msgspec

__all__ = ["FieldChange", "changes"]

WIDTH = 60
"""Characters of a value that are shown."""


class _Absent:
    """Placeholder for a missing field."""


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs.

    Attributes:
        path: Path of the field, as in field errors.
        before: Its value before; `ABSENT` if the field was added.
        after: Its value after; `ABSENT` if the field was removed.
    """

    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        """`path: value added`, `path: value removed` or `path: before → after`."""
        if self.before is ABSENT:
            return f"{self.path}: {_shown(self.after)} added"
        if self.after is ABSENT:
            return f"{self.path}: {_shown(self.before)} removed"
        return f"{self.path}: {_shown(self.before)} → {_shown(self.after)}"


def changes(before: Any, after: Any, path: str = "") -> list[FieldChange]:
    """All fields that differ, in the order of the later object."""
    found: list[FieldChange] = []
    _compare(before, after, path, found)
    return found


def _compare(before: Any, after: Any, path: str, found: list[FieldChange]) -> None:
    if before is ABSENT and isinstance(after, dict) and after:
        before = {}  # the entries of a new map are reported one by one
    if isinstance(before, dict) and isinstance(after, dict):
        for key, new in after.items():
            old = before.get(key, ABSENT)
            if not _same(old, new):
                _compare(old, new, _field(path, key), found)
        for key, old in before.items():
            if key not in after:
                _compare(old, ABSENT, _field(path, key), found)
    elif isinstance(before, list) and isinstance(after, list):
        for at, (old, new) in enumerate(zip_longest(before, after, fillvalue=ABSENT)):
            if not _same(old, new):
                _compare(old, new, f"{path}[{at}]", found)
    elif not _same(before, after):
        found.append(FieldChange(path, before, after))


def _same(before: Any, after: Any) -> bool:
    """True if two values are equal as JSON, where 1 is neither true nor 1.0.

    Objects are mostly equal, so the cost of a comparison is the cost of this function.
    """
    if type(before) is not type(after) or before != after:
        return False
    if not isinstance(after, dict | list):
        return True
    return msgspec.json.encode(before) == msgspec.json.encode(after)


def _field(path: str, key: str) -> str:
    if "." in key or "/" in key:
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
