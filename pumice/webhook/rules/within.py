"""Tests whether paths are inside other paths, without comparing each pair.

An object can have as many problems as it has fields. The paths are sorted so that the paths inside a path
follow it directly; a binary search then finds the paths around another path and inside it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable

from pumice.api.fields import FieldError


class Within:
    """A set of paths with their subpaths: `spec.tasks[0].name` is within `spec.tasks[0]`."""

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


def unaffected(
    found: Iterable[FieldError], dropped: Iterable[str], comparing: Container[str]
) -> list[FieldError]:
    """Results about an object without some fields that also hold for the whole object.

    Rules about one field are right about every field that is present. Results at a dropped field or its parents may be
    wrong, and so may results of rules that compare fields.

    Takes the results, the paths of the fields, and the codes of the rules that compare fields.
    """
    gone = Within(dropped)
    return [
        each
        for each in found
        if each.code not in comparing and each.path not in gone and not gone.below(each.path)
    ]


def _ordered(path: str) -> str:
    """A sort key of a path, in which separators come before all other characters; otherwise `a-b` would be between `a` and `a.b`."""
    return path.replace(".", "\x00").replace("[", "\x01")


def _is_within(path: str, parent: str) -> bool:
    return path.startswith(parent) and (len(path) == len(parent) or path[len(parent)] in "\x00\x01")
