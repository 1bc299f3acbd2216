"""Messages of bounded length, for statuses, conditions and events.

A message names what users wrote: tasks, queues, resources, nodes. Any of these may be long and there may be any number of them,
while the API server refuses an object that is too large, and with it its whole status. So lists name the first parts and the
number of the others, and what is written is cut.
"""

from collections.abc import Iterable

LONGEST = 4096
"""Bytes of the longest message of a status or a condition."""

LONGEST_LIST = 1024
"""Bytes of the longest list inside a message, so that a message may have several."""


def counted(number: int, noun: str) -> str:
    """A number with a noun: `1 queue`, `3 queues`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(parts: Iterable[str], separator: str = ", ", most: int = LONGEST_LIST) -> str:
    """Parts as one text; of too many the first ones, and how many more there are: `a, b, and 3 more`.

    Args:
        parts: The parts.
        separator: What stands between two of them.
        most: Maximum number of bytes, at least 64.
    """
    found = list(parts)
    whole = separator.join(found)
    if _size(whole) <= most:
        return whole
    more = separator if separator.endswith("and ") else f"{separator}and "
    room = most - _size(f"{more}{len(found)} more")
    if len(found) == 1:
        return shortened(found[0], most)
    shown = [shortened(found[0], room)]
    room -= _size(shown[0])
    for part in found[1:]:
        room -= _size(separator) + _size(part)
        if room < 0:
            break
        shown.append(part)
    return f"{separator.join(shown)}{more}{len(found) - len(shown)} more"


def shortened(text: str, most: int = LONGEST) -> str:
    """A text of at most so many bytes; one that was cut ends with `…`."""
    if _size(text) <= most:
        return text
    end = "…"
    kept = text[:most].encode(errors="replace")[: most - _size(end)]
    return kept.decode(errors="ignore") + end


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))
