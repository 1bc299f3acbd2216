"""Differences of two raw values, as Kubernetes compares objects: what an update changes, and what admission does.

A missing field, null, an empty text, list and map are the same; so are `1` and `1000m` where a
quantity is expected, `60s` and `1m` where a duration is, and zero and nothing for the fields of a pod
whose Go type cannot tell them apart.

If the lengths of two lists differ and their items have names, items are matched by name, so that one more variable is
one difference and not two whole lists.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from pumice.api.durations import parse_nanoseconds
from pumice.api.quantities import parse_milli


class Difference(NamedTuple):
    """A field that differs; None means that it is missing."""

    path: str
    old: Any
    new: Any

    def __str__(self) -> str:
        """`path: value added`, `path: value removed` or `path: old → new`."""
        if self.old is None:
            return f"{self.path}: {shown(self.new)} added"
        if self.new is None:
            return f"{self.path}: {shown(self.old)} removed"
        return f"{self.path}: {shown_change(self.old, self.new)}"


_QUANTITY_MAPS = frozenset({"requests", "limits", "capacity", "overhead"})
_MAPS = _QUANTITY_MAPS | {"annotations", "labels", "matchLabels", "nodeSelector", "plugins"}
"""Maps, in which a key with an empty value counts as present."""
_QUANTITIES = frozenset({"sizeLimit", "divisor"})
_DURATIONS = frozenset({"timeout", "runningEstimate"})
_IDENTITIES = ("mountPath", "name", "containerPort")
"""Fields that identify items of a list; the first one that all items have is used."""
_ZERO_IS_UNSET = frozenset(
    {
        "containerPort",
        "failureThreshold",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostPort",
        "initialDelaySeconds",
        "periodSeconds",
        "readOnly",
        "stdin",
        "stdinOnce",
        "successThreshold",
        "timeoutSeconds",
        "tty",
    }
)
"""Fields that Go cannot leave unset, so that zero or false equals a missing field."""


def differences(
    old: Any, new: Any, path: str, key: str = "", parent: str = ""
) -> Iterator[Difference]:
    """Find the differences, recursively for objects and for lists of equal length.

    The value is that of field `key` in the object or list of field `parent`.
    """
    if old == new and type(old) is type(new):
        return
    if isinstance(old, dict | None) and isinstance(new, dict | None) and (old or new):
        before, after = old or {}, new or {}
        for name in sorted(before.keys() | after.keys()):
            where = f"{path}.{name}" if path else name
            if key in _MAPS and (before.get(name) is None) != (after.get(name) is None):
                yield Difference(where, before.get(name), after.get(name))
                continue
            yield from differences(before.get(name), after.get(name), where, name, key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{path}[{index}]", "", key)
    elif isinstance(old, list) and isinstance(new, list) and (field := _identity([*old, *new])):
        yield from _by_identity(old, new, path, key, field)
    elif not _equal(old, new, key, parent):
        yield Difference(path, old, new)


def _identity(items: list[Any]) -> str | None:
    """The field that identifies the items of two lists, if there is one."""
    for field in _IDENTITIES:
        if all(isinstance(each, dict) and isinstance(each.get(field), str | int) for each in items):
            return field
    return None


def _by_identity(
    old: list[Any], new: list[Any], path: str, key: str, field: str
) -> Iterator[Difference]:
    """Differences of two lists: removed, added and changed items."""
    before = {each[field]: (index, each) for index, each in enumerate(old)}
    after = {each[field]: (index, each) for index, each in enumerate(new)}
    if len(before) < len(old) or len(after) < len(new):
        yield Difference(path, old, new)
        return
    for name, (index, each) in before.items():
        if name not in after:
            yield Difference(f"{path}[{index}]", each, None)
    for name, (index, each) in after.items():
        if name not in before:
            yield Difference(f"{path}[{index}]", None, each)
        else:
            yield from differences(before[name][1], each, f"{path}[{index}]", "", key)


def _equal(old: Any, new: Any, key: str, parent: str) -> bool:
    if _unset(old, key) and _unset(new, key):
        return True
    if key in _QUANTITIES or parent in _QUANTITY_MAPS:
        try:
            return parse_milli(old) == parse_milli(new)
        except ValueError:
            return False
    if key in _DURATIONS and isinstance(old, str) and isinstance(new, str):
        span = parse_nanoseconds(old)
        return old == new if span is None else span == parse_nanoseconds(new)
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


def _unset(value: Any, key: str) -> bool:
    if value is None or value in ("", [], {}):
        return True
    return key in _ZERO_IS_UNSET and not value


def shown(value: Any) -> str:
    """A value as a message shows it, cut where it is long."""
    text = _text(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def shown_change(old: Any, new: Any) -> str:
    """Two values for a message; long ones begin shortly before their first difference."""
    before, after = _text(old), _text(new)
    if len(before) <= _LONGEST and len(after) <= _LONGEST:
        return f"{before} → {after}"
    shorter = min(len(before), len(after))
    part = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    start = max(part - _BEFORE, 0)
    return " → ".join(_cut(text, start) for text in (before, after))


_LONGEST = 120
_BEFORE = 30


def _cut(text: str, start: int) -> str:
    end = start + _LONGEST
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def _text(value: Any) -> str:
    if value is None:
        return "nothing"
    return f'"{value}"' if isinstance(value, str) else msgspec.json.encode(value).decode()
