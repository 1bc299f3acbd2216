"""Names in natural order: `w-2` before `w-10`."""

import re

__all__ = ["Natural", "natural", "trailing_index"]

Natural = tuple[str | int, ...]
"""Text and numbers in turn, beginning with text, so that any two compare."""

_DIGITS = re.compile(r"([0-9]+)")
_PARTS_WITH_INDEX = 3
_LONGEST_NAME = 253


def natural(name: str) -> Natural:
    """Sort key that compares digits as numbers."""
    parts = _DIGITS.split(name)
    return tuple(_number(part) if place % 2 else part for place, part in enumerate(parts))


def trailing_index(name: str) -> int:
    """The number after the last dash of `job-task-3`, 0 for a name of fewer than three parts.

    Volcano compares it where no plugin decides the order of two pods, before it compares their age.
    """
    parts = name.split("-")
    if len(parts) < _PARTS_WITH_INDEX or not _DIGITS.fullmatch(parts[-1]):
        return 0
    return _number(parts[-1])


def _number(digits: str) -> int:
    """A number in a name; of names in files that no API server takes, only so many digits as a name has count."""
    return int(digits[:_LONGEST_NAME])
