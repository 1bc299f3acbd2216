"""A queue of objects whose status must be written."""

import logging
from collections.abc import Awaitable, Callable

from pumice.cluster.backoff import Backoff
from pumice.cluster.errors import ApiError, Conflict
from pumice.cluster.set_aside import QueueFaults
from pumice.cluster.turns import first_segment
from pumice.cluster.workqueue import WorkQueue
from pumice.scheduler.worker.metrics import SchedulerMetrics

__all__ = ["WriteQueue"]

logger = logging.getLogger(__name__)


class WriteQueue:
    """Writes several objects at once, each by one write at a time; failed writes are repeated with growing delays.

    What is written is decided when an object's turn has come, so that only the newest finding is.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[str], Awaitable[None]],
        metrics: SchedulerMetrics,
        faults: QueueFaults[str],
        *,
        namespace_of: Callable[[str], str] = first_segment,
    ) -> None:
        """Create a queue; `run` must run.

        Args:
            name: Kind of the objects, in logs and metrics.
            write: Writes one object, by `namespace/name`.
            metrics: What is counted.
            faults: Reports objects whose write fails unexpectedly.
            namespace_of: The namespace of a key; namespaces take turns.
        """
        self._name = name
        self._write = write
        self._metrics = metrics
        self._queue: WorkQueue[str] = WorkQueue(name, namespace_of, shared=True, faults=faults)
        self._backoff = Backoff(base=0.2, cap=30.0, seed=name)
        self._failures: dict[str, int] = {}

    def add(self, key: str, seconds: float = 0.0) -> None:
        """Schedule the write of an object in this many seconds; an earlier time that is already scheduled is kept."""
        self._queue.add_after(key, seconds)

    def count(self, result: str) -> None:
        """Count a write by its result."""
        self._metrics.writes.labels(self._name, result).inc()

    async def run(self, workers: int) -> None:
        """Write until cancelled, several objects concurrently."""
        try:
            await self._queue.work(self._turn, workers)
        finally:
            self._queue.close()

    async def _turn(self, key: str) -> float | None:
        try:
            await self._write(key)
        except ApiError as error:
            # A conflict is not an error: the watch will show the change, and the next turn uses it.
            level, result = logging.WARNING, "failed"
            if isinstance(error, Conflict):
                level, result = logging.DEBUG, "conflict"
            self.count(result)
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            delay = self._backoff.delay(failures - 1, error.retry_after)
            logger.log(
                level, "writing %s of %s: %s; again in %.1f s", self._name, key, error, delay
            )
            return delay
        self._failures.pop(key, None)
        return None
