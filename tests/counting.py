"""Counts of work, for bounds that hold on any machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["calls"]


def calls(work: Callable[[], object]) -> int:
    """Functions that some work calls, those of C included."""
    count = 0

    def called(_frame: FrameType, event: str, _arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
