"""Notices that a plugin uses more than its arguments: a clock, random numbers, a file, the environment, the network.

Python reports each call of a function that is written in C, and every access to the system ends in such a
call. So the access is noticed whichever module the plugin uses for it, and nothing has to be replaced.
What an import reads is ignored.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["watching"]

_MODULES = {
    "time": "reads the clock (time",
    "random": "takes random numbers (random",
    "posix": "looks at the system (os",
    "nt": "looks at the system (os",
    "_posixsubprocess": "looks at the system (os",
    "socket": "uses the network (socket",
    "_socket": "uses the network (socket",
    "_ssl": "uses the network (socket",
    "select": "uses the network (socket",
}
"""What a call of a module's function, or of a method of its classes, means."""
_OF_TEXT = frozenset(("fspath", "_path_normpath"))
"""Functions of these modules that only look at their argument."""


@contextmanager
def watching(file: str) -> Iterator[list[str]]:
    """Note which calls in this block use something outside the process.

    Args:
        file: The plugin's file; the line of it that led to a call is named.

    Yields:
        What was seen, such as `reads the clock (time.time in line 12)`; filled while the block runs.
    """
    seen: list[str] = []

    def look(frame: FrameType, event: str, argument: Any) -> None:
        what = _outside(frame, event, argument)
        if what and (line := _line(frame, file)) is not None:
            seen.append(f"{what}{line})")

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield seen
    finally:
        sys.setprofile(before if callable(before) else None)


def _outside(frame: FrameType, event: str, argument: Any) -> str:
    if event == "call" and frame.f_code.co_qualname == "_Environ.__getitem__":
        return "reads the environment (os.environ"
    if event != "c_call":
        return ""
    name, owner = argument.__name__, getattr(argument, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, date) and name in ("now", "utcnow", "today"):
        return f"reads the clock ({owner.__name__}.{name}"
    module = argument.__module__ or type(owner).__module__
    if module in ("io", "_io") and name in ("open", "open_code"):
        return "opens a file (open"
    if module in _MODULES and name not in _OF_TEXT:
        return f"{_MODULES[module]}.{name}"
    return ""


def _line(frame: FrameType | None, file: str) -> str | None:
    """The line of the plugin that led to a call; None if the call belongs to an import or to hypothesis.

    hypothesis looks at the clock whenever Python collects garbage.
    """
    if frame is not None and frame.f_globals.get("__name__", "").startswith("hypothesis."):
        return None
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return None
        if file and frame.f_code.co_filename == file:
            return f" in line {frame.f_lineno} of {Path(file).name}"
        frame = frame.f_back
    return ""
