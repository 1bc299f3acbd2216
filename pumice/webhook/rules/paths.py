"""Paths of fields, such as `spec.tasks[0].name`: the values at them, and whether one is inside another."""

import copy
import functools
import operator
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any

import msgspec

_SEGMENT = re.compile(r"(?:^|\.)(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]")


def steps_of(path: str) -> list[str | int]:
    """The keys and positions of a field's path; wrong ones for a key with dots."""
    return [
        int(match["index"]) if match["name"] is None else match["name"]
        for match in _SEGMENT.finditer(path)
    ]


def value_at(raw: Any, path: str) -> Any:
    """The value at a path; `msgspec.UNSET` if it cannot be found."""
    if "".join(match[0] for match in _SEGMENT.finditer(path)) != path:
        return msgspec.UNSET
    try:
        return functools.reduce(operator.getitem, steps_of(path), raw)
    except (LookupError, TypeError):
        return msgspec.UNSET


def without(raw: Any, paths: Iterable[str]) -> Any:
    """A copy of a raw object without some of its fields; list items become empty objects.

    A path with a key that has dots is skipped.
    """
    rest = copy.deepcopy(raw)
    for *way, last in filter(None, map(steps_of, paths)):
        try:
            here = functools.reduce(operator.getitem, way, rest)
        except (LookupError, TypeError):
            continue
        if isinstance(here, dict) and isinstance(last, str):
            here.pop(last, None)
        elif isinstance(here, list) and isinstance(last, int) and last < len(here):
            here[last] = {}
    return rest


class Within:
    """A set of paths with their subpaths: `spec.tasks[0].name` is within `spec.tasks[0]`.

    Pairs are not compared one by one, since an object can have as many problems as it has fields. The paths are sorted
    so that the paths inside a path follow it directly; a binary search then finds the paths around another path and
    inside it.
    """

    __slots__ = ("_all", "_outer")

    def __init__(self, paths: Iterable[str]) -> None:
        self._all = sorted(_ordered(path) for path in paths)
        self._outer: list[str] = []
        for path in self._all:
            if not (self._outer and _is_within(path, self._outer[-1])):
                self._outer.append(path)

    def __contains__(self, path: object) -> bool:
        """True if a path is in the set or inside a path of the set."""
        if not isinstance(path, str):
            return False
        ordered = _ordered(path)
        before = bisect_right(self._outer, ordered)
        return before > 0 and _is_within(ordered, self._outer[before - 1])

    def below(self, path: str) -> bool:
        """True if a path of the set is inside the given path."""
        ordered = _ordered(path)
        after = bisect_left(self._all, f"{ordered}\x00")
        return after < len(self._all) and _is_within(self._all[after], ordered)


def _ordered(path: str) -> str:
    """A sort key of a path, in which separators come before all other characters; otherwise `a-b` would be between `a` and `a.b`."""
    return path.replace(".", "\x00").replace("[", "\x01")


def _is_within(path: str, parent: str) -> bool:
    return path.startswith(parent) and (len(path) == len(parent) or path[len(parent)] in "\x00\x01")
