"""What differs between two objects, field by field, for people to read."""

from dataclasses import dataclass
from typing import Any, Final

import msgspec

__all__ = ["Change", "changes"]

WIDTH = 60
"""Characters of a value that are shown."""


class _Absent:
    """What stands for a field that is not there."""


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs.

    Attributes:
        path: Where, as in field errors.
        before: Its value; `ABSENT` when it was not there.
        after: Its value now; `ABSENT` when it is gone.
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


def changes(before: Any, after: Any, path: str = "") -> list[Change]:
    """All fields that differ, in the order of the later object."""
    if before is ABSENT and isinstance(after, dict) and after:
        before = {}  # a map that is new is told entry by entry
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [*after, *(key for key in before if key not in after)]
        pairs = [
            (_field(path, key), before.get(key, ABSENT), after.get(key, ABSENT)) for key in keys
        ]
    elif isinstance(before, list) and isinstance(after, list):
        pairs = [
            (
                f"{path}[{at}]",
                before[at] if at < len(before) else ABSENT,
                after[at] if at < len(after) else ABSENT,
            )
            for at in range(max(len(before), len(after)))
        ]
    else:
        same = type(before) is type(after) and before == after
        return [] if same else [Change(path, before, after)]
    return [change for where, old, new in pairs for change in changes(old, new, where)]


def _field(path: str, key: str) -> str:
    if "." in key or "/" in key:
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
