"""Requests that were sent, and the wait for their responses at shutdown.

A request that is cut off has reached the API server or has not. The next leader sees the difference only
when its watch shows it, and until then may do the same again or stumble over it. Answers take
milliseconds, so that it is better to wait for them.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["SentRequests"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

ANSWER_SECONDS = 1.0
"""How long answers are waited for; the hand-over to another process waits as well."""


class SentRequests:
    """Requests of one component that have no response yet."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def send(self, request: Coroutine[Any, Any, T]) -> T:
        """Send a request that goes on when the caller is cancelled, until `answered` gives it up."""
        task = asyncio.create_task(request)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def answered(self) -> None:
        """Wait until everything that was sent is answered, for a bounded time; call it once no more is sent."""
        if not self._tasks:
            return
        done, late = await asyncio.wait(tuple(self._tasks), timeout=ANSWER_SECONDS)
        for task in done:
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.info("answer after the end: %s", error)
        for task in late:
            task.cancel()
        if late:
            logger.warning("%d requests were not answered within %.0f s", len(late), ANSWER_SECONDS)
