"""Differences of two raw values, as Kubernetes compares objects.

A missing field, null, an empty text, list and map are the same; so are `1` and `1000m` where a
quantity is expected, and zero and nothing for the fields of a pod whose Go type cannot tell them
apart.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from pumice.api.quantities import parse_milli

__all__ = ["Difference", "differences", "shown"]


class Difference(NamedTuple):
    """A field that differs; None stands for a missing one."""

    path: str
    old: Any
    new: Any


_QUANTITY_MAPS = frozenset({"requests", "limits", "capacity", "overhead"})
_MAPS = _QUANTITY_MAPS | {"annotations", "labels", "matchLabels", "nodeSelector", "plugins"}
"""Maps, where a key with an empty value is there, unlike a field with one."""
_QUANTITIES = frozenset({"sizeLimit", "divisor"})
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
"""Fields that Go cannot leave unset, so that zero or false is the same as nothing."""


def differences(old: Any, new: Any, path: str) -> Iterator[Difference]:
    """Find what differs, as deep as it is an object or a list of the same length.

    Args:
        old: Value before.
        new: Value after.
        path: Where both stand.
    """
    yield from _differences(old, new, path, "", "")


def _differences(old: Any, new: Any, path: str, key: str, parent: str) -> Iterator[Difference]:
    if old == new and type(old) is type(new):
        return
    if isinstance(old, dict | None) and isinstance(new, dict | None) and (old or new):
        before, after = old or {}, new or {}
        for name in sorted(before.keys() | after.keys()):
            where = f"{path}.{name}"
            if key in _MAPS and (before.get(name) is None) != (after.get(name) is None):
                yield Difference(where, before.get(name), after.get(name))
                continue
            yield from _differences(before.get(name), after.get(name), where, name, key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _differences(before, after, f"{path}[{index}]", "", key)
    elif not _equal(old, new, key, parent):
        yield Difference(path, old, new)


def _equal(old: Any, new: Any, key: str, parent: str) -> bool:
    if _unset(old, key) and _unset(new, key):
        return True
    if key in _QUANTITIES or parent in _QUANTITY_MAPS:
        try:
            return parse_milli(old) == parse_milli(new)
        except ValueError:
            return False
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


def _unset(value: Any, key: str) -> bool:
    if value is None or value in ("", [], {}):
        return True
    return key in _ZERO_IS_UNSET and not value


def shown(value: Any) -> str:
    """A value as a message shows it, cut where it is long."""
    if value is None:
        return "nothing"
    text = f'"{value}"' if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_LONGEST = 120
