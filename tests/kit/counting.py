"""Counts of work, for bounds that hold on any machine."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


def calls(work: Callable[[], object]) -> int:
    """Functions that some work calls, those of C included."""
    with counting() as so_far:
        work()
        return so_far()


@contextmanager
def counting() -> Iterator[Callable[[], int]]:
    """Count the functions that this thread calls within the block; yields what says how many so far."""
    count = 0

    def called(_frame: FrameType, event: str, _arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        yield lambda: count
    finally:
        sys.setprofile(before)
