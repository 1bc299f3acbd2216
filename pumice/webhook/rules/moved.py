"""Items of lists that have moved: where something stood before an update.

Whoever takes one item out of a list has not touched those behind it, though each has another number
now. An item that is the same as before is found wherever it stands; one that has changed is taken for
the one that stood in its place, unless that has moved on.
"""

from collections import defaultdict, deque
from typing import Any

import msgspec

__all__ = ["Moved"]


class Moved:
    """Two states of an object, and where in the first stood what stands in the second."""

    __slots__ = ("_new", "_old", "_positions")

    def __init__(self, old: Any, new: Any) -> None:
        """Take both, as raw values or as structs."""
        self._old = msgspec.to_builtins(old)
        self._new = msgspec.to_builtins(new)
        self._positions: dict[tuple[int, int], list[int | None]] = {}

    def before(self, path: str) -> str | None:
        """Where that stood which now stands at a path; None for what is in an item that came.

        Whatever is in no list, is missing, or has a key that looks like several, stays in its place.
        """
        old, new, rest, found = self._old, self._new, path, ""
        while rest:
            if isinstance(new, list) and rest.startswith("["):
                number, _, behind = rest[1:].partition("]")
                if not number.isdecimal() or int(number) >= len(new):
                    break
                position = self._align(old, new)[int(number)]
                if position is None:
                    return None
                found += f"[{position}]"
                old, new = old[position], new[int(number)]
            else:
                name = _first(rest.removeprefix("."))
                if not isinstance(new, dict) or name not in new:
                    break
                behind = rest.removeprefix(".")[len(name) :]
                found += rest[: len(rest) - len(behind)]
                old, new = old.get(name) if isinstance(old, dict) else None, new[name]
            rest = behind
        return found + rest

    def _align(self, old: Any, new: list[Any]) -> list[int | None]:
        """The former position of each item of a list."""
        place = id(old), id(new)
        known = self._positions.get(place)
        if known is None:
            known = self._positions[place] = _aligned(old if isinstance(old, list) else [], new)
        return known


def _aligned(old: list[Any], new: list[Any]) -> list[int | None]:
    """The former positions; items before and behind all changes stay in their order, also equal ones."""
    before, after = [_spelt(item) for item in old], [_spelt(item) for item in new]
    found: list[int | None] = [None] * len(after)
    most = min(len(before), len(after))
    head = next((at for at in range(most) if before[at] != after[at]), most)
    tail = next((at for at in range(most - head) if before[-1 - at] != after[-1 - at]), most - head)
    found[:head] = range(head)
    for at in range(1, tail + 1):
        found[-at] = len(before) - at
    between, left = range(head, len(before) - tail), range(head, len(after) - tail)
    if len(between) == len(left):
        for at in left:
            found[at] = at if before[at] == after[at] else None
    _find_equal(found, before, after, between, left)
    taken = set(found)
    for at in left:
        if found[at] is None and at in between and at not in taken:
            found[at] = at
    return found


def _find_equal(
    found: list[int | None], before: list[bytes], after: list[bytes], between: range, left: range
) -> None:
    """Note where equal items stood, the first for the first."""
    taken = set(found)
    known: defaultdict[bytes, deque[int]] = defaultdict(deque)
    for at in between:
        if at not in taken:
            known[before[at]].append(at)
    for at in left:
        if found[at] is None and (equal := known.get(after[at])):
            found[at] = equal.popleft()


def _spelt(item: Any) -> bytes:
    return msgspec.json.encode(item, order="deterministic")


def _first(path: str) -> str:
    """The first name of a path."""
    return path.partition(".")[0].partition("[")[0]
