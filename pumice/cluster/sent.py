"""Requests that were sent, and the wait for their responses at shutdown.

A request that is aborted may have reached the API server. The next leader sees its effect only when its watch shows it,
and until then it may repeat the request or get a conflict. Responses take milliseconds, so waiting for them is better.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["SentRequests"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

ANSWER_SECONDS = 1.0
"""How long responses are awaited; the hand-over to another process waits as well."""


class SentRequests:
    """Requests of one component that have no response yet."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def send(self, request: Coroutine[Any, Any, T]) -> T:
        """Send a request that continues if the caller is cancelled, until `answered` stops waiting."""
        task = asyncio.create_task(request)
        self._tasks.add(task)
        task.add_done_callback(self._note)
        return await asyncio.shield(task)

    def _note(self, task: asyncio.Task[Any]) -> None:
        """Forget a request that has its response, and mark its error as retrieved: a cancelled caller does not do so."""
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    async def answered(self) -> None:
        """Wait for all responses for a limited time. Call it after the last request."""
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
