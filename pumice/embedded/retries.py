"""Work at one object that may fail unexpectedly: logged once, and tried again after growing pauses, while all else goes on."""

import asyncio
from collections.abc import Callable, Hashable

import structlog

LONGEST_SECONDS = 300.0
"""Longest pause; the first one takes a second, and each is twice as long as the one before."""

_log = structlog.get_logger(__name__)


class Retries:
    """Repeats what fails. Nothing is repeated once the loop of the server has ended."""

    def __init__(self) -> None:
        self._failures: dict[Hashable, int] = {}

    def attempt(self, key: Hashable, work: Callable[[], object]) -> None:
        """Do some work inside an event loop, now and, if it raises, again later.

        Args:
            key: What it is about, in logs, too.
            work: Has no effect if there is nothing to do any more.
        """
        try:
            work()
        except Exception:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            if failures == 1:
                _log.exception("failed unexpectedly; it is tried again", about=key)
            pause = min(LONGEST_SECONDS, 2.0 ** (failures - 1))
            asyncio.get_running_loop().call_later(pause, self.attempt, key, work)
        else:
            self._failures.pop(key, None)
