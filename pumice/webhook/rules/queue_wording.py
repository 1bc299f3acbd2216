"""Words that messages about queues share."""

from collections.abc import Iterable, Sequence

__all__ = ["chained", "counted", "listed"]

_SHOWN = 10


def counted(number: int, noun: str) -> str:
    """A number of things: `1 queue`, `3 queues`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(items: Iterable[str]) -> str:
    """Items with commas between them, cut where they are many."""
    shown = list(items)
    return ", ".join(shown[:_SHOWN]) + (", …" if len(shown) > _SHOWN else "")


def chained(names: Sequence[str], arrow: str) -> str:
    """Names one behind the other, cut in the middle where they are many."""
    if len(names) <= _SHOWN:
        return arrow.join(names)
    half = _SHOWN // 2
    return arrow.join([*names[:half], "…", *names[-half:]])
