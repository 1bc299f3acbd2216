"""Functions that run in a child process, so that modules which only they import take no memory of this process.

pydantic takes 8 MiB for as long as a process lives, but the settings are read once, at start.
"""

import gc
import os
import pickle
import threading
from collections.abc import Callable
from typing import IO, Any, NoReturn, TypeVar

_T = TypeVar("_T")


def in_child_process(function: Callable[..., _T], *arguments: object) -> _T:
    """The result of a function that a child process calls.

    This process calls the function itself if it has other threads, whose locks no thread of the child would release; if no
    child can be started; and if the child ends without a result.

    Args:
        function: A function whose result and exceptions can be pickled. It must have no side effects.
        arguments: Its arguments.

    Raises:
        Exception: What the function raises.
    """
    if threading.active_count() > 1:
        return function(*arguments)
    try:
        answer = _answer_of_child(function, arguments)
        result, error = pickle.loads(answer)
    except (OSError, EOFError, pickle.UnpicklingError):
        return function(*arguments)
    if error is not None:
        raise error
    found: _T = result
    return found


def _answer_of_child(function: Callable[..., Any], arguments: tuple[object, ...]) -> bytes:
    ends = os.pipe()
    with os.fdopen(ends[0], "rb") as reading, os.fdopen(ends[1], "wb") as writing:
        child = os.fork()
        if not child:
            _answer(function, arguments, writing)
        writing.close()
        try:
            return reading.read()
        finally:
            os.waitpid(child, 0)


def _answer(
    function: Callable[..., Any], arguments: tuple[object, ...], writing: IO[bytes]
) -> NoReturn:
    """Call the function in the child, and end the child."""
    try:
        gc.disable()  # a collection would write to each page that the child shares with its parent
        answer: tuple[object, Exception | None]
        try:
            answer = function(*arguments), None
        except Exception as error:
            answer = None, error
        writing.write(pickle.dumps(answer))
        writing.close()
    finally:
        os._exit(0)
