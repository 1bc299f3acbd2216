"""Two long calculations at the same time, one in this process and one in a child."""

import os
import signal
import threading
from collections.abc import Callable
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from pumice.cli.exits import UserError

_T = TypeVar("_T")


def in_two_processes(
    here: Callable[[], _T], there: Callable[[Callable[[], bool]], _T]
) -> tuple[_T, _T]:
    """The results of two functions; the second one runs in a child process.

    The child ends with this process, whatever ends it. Both must end soon after KeyboardInterrupt, which SIGINT raises once in each of them, and return what they have. A second SIGINT ends the
    child without a result.

    Args:
        here: Runs in this process.
        there: Runs in the child, and is told whether the first one is over. Its result and its exceptions are pickled.

    Raises:
        UserError: The child ended without a result.
        Exception: What one of the functions raises.
    """
    context = get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    over = context.Event()
    child = context.Process(target=_answer, args=(lambda: there(over.is_set), sending))
    child.start()
    sending.close()
    interrupted = waiting = False

    def interrupt(*_: object) -> None:
        nonlocal interrupted
        is_first, interrupted = not interrupted, True
        if is_first and child.pid is not None:
            os.kill(child.pid, signal.SIGINT)
        if not (is_first and waiting):
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        first = here()
        over.set()
        waiting = True
        result, error = receiving.recv()
    except EOFError:
        child.join()
        raise UserError(
            f"the process of the second configuration ended without a result (exit code {child.exitcode}): there may be too little "
            "memory for two runs at the same time"
        ) from None
    finally:
        signal.signal(signal.SIGINT, before)
        child.terminate()
        child.join()
    if error is not None:
        raise error
    return first, result


def _answer(function: Callable[[], Any], sending: Connection) -> None:
    os.setpgid(0, 0)  # so that Ctrl-C reaches the child once: through its parent
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        answer: tuple[Any, BaseException | None] = function(), None
    except BaseException as error:
        answer = None, error
    sending.send(answer)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
