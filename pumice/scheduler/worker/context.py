"""What the parts of a term share."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.events import EventRecorder
from pumice.scheduler import ClusterState
from pumice.scheduler.worker.feeds import Caches
from pumice.scheduler.worker.metrics import SchedulerMetrics

__all__ = ["NOT_LEADING_SECONDS", "TermContext"]

T = TypeVar("T")

logger = logging.getLogger(__name__)

NOT_LEADING_SECONDS = 0.5
"""How long a write waits that finds the Lease expired; its renewal or the end of the term follows."""

DRAIN_SECONDS = 1.0
"""How long the end of a term waits for answers to requests that were sent."""


@dataclass(frozen=True, slots=True)
class TermContext:
    """The objects that one term works with.

    Attributes:
        client: Session with the API server.
        state: The cluster with what is assumed of it.
        caches: The cluster as the API server last showed it.
        recorder: Records events for users.
        metrics: What is counted.
        clock: Tells the time and waits.
        wake: Asks for a cycle.
        leads: Whether this process holds the Lease by its own clock.
    """

    client: Client
    state: ClusterState
    caches: Caches
    recorder: EventRecorder
    metrics: SchedulerMetrics
    clock: Clock
    wake: Callable[[], None]
    leads: Callable[[], bool]
    _sent: set[asyncio.Task[Any]] = field(default_factory=set)

    async def send(self, request: Coroutine[Any, Any, T]) -> T:
        """Send a request that `drain` waits for, also when the caller is cancelled."""
        task = asyncio.create_task(request)
        self._sent.add(task)
        task.add_done_callback(self._sent.discard)
        return await asyncio.shield(task)

    async def drain(self) -> None:
        """Wait for the answers to what was sent, so that the next leader sees its results."""
        if not self._sent:
            return
        done, late = await asyncio.wait(tuple(self._sent), timeout=DRAIN_SECONDS)
        for task in done:
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.info("at the end of the term: %s", error)
        for task in late:
            task.cancel()
        if late:
            logger.warning("%d requests were not answered before the end of the term", len(late))
