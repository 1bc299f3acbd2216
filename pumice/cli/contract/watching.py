"""Where a plugin looks beyond its arguments: at a clock, a random number, a file, the network.

Python reports every call that it makes to a function written in C, and whatever asks the world outside
ends in one of those. So it is noticed however the plugin came by the function, and nothing has to be
replaced by a decoy. What an import reads is not meant.
"""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["watching"]

_DATES = frozenset(("now", "utcnow", "today"))
_SYSTEM = frozenset(("posix", "nt", "_posixsubprocess"))
_OF_TEXT = frozenset(("fspath", "_path_normpath"))
"""Functions of the system's modules that look at their argument alone."""
_NETWORK = frozenset(("_socket", "_ssl", "select"))


@contextmanager
def watching(file: str) -> Iterator[list[str]]:
    """Note what the calls of this block ask the outside world.

    Args:
        file: The plugin's file, whose lines are named where one of them is to blame.

    Yields:
        What was seen, such as `reads the clock (time.time in line 12)`; filled while the block runs.
    """
    seen: list[str] = []

    def look(frame: FrameType, event: str, argument: Any) -> None:
        what = _outside(frame, event, argument)
        if what and not _is_other(frame):
            seen.append(f"{what}{_line(frame, file)})")

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield seen
    finally:
        sys.setprofile(before if callable(before) else None)


def _outside(frame: FrameType, event: str, argument: Any) -> str:
    if event == "call":
        code = frame.f_code
        is_environment = code.co_name == "__getitem__" and code.co_qualname.startswith("_Environ.")
        return "reads the environment (os.environ" if is_environment else ""
    return _of_function(argument) if event == "c_call" else ""


def _of_function(function: Any) -> str:
    name = getattr(function, "__name__", "")
    module = getattr(function, "__module__", None) or ""
    owner = getattr(function, "__self__", None)
    if module == "time":
        return f"reads the clock (time.{name}"
    if name in _DATES and isinstance(owner, type) and issubclass(owner, date):
        return f"reads the clock ({owner.__name__}.{name}"
    if name == "urandom":
        return "takes random numbers (os.urandom"
    if isinstance(owner, random.Random):
        return f"takes random numbers (random.{name}"
    if module in ("_io", "io") and name in ("open", "open_code"):
        return "opens a file (open"
    if module in _SYSTEM and name not in _OF_TEXT:
        return f"looks at the system (os.{name}"
    if module in _NETWORK or type(owner).__module__ in ("socket", "_socket"):
        return f"uses the network (socket.{name}"
    return ""


def _is_other(frame: FrameType | None) -> bool:
    """Whether a call is an import's, or of what hypothesis does whenever memory is tidied up."""
    if frame is not None and frame.f_globals.get("__name__", "").startswith("hypothesis."):
        return True
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _line(frame: FrameType | None, file: str) -> str:
    """The line of the plugin that led to a call."""
    while frame is not None:
        if file and frame.f_code.co_filename == file:
            return f" in line {frame.f_lineno} of {Path(file).name}"
        frame = frame.f_back
    return ""
