"""Keys that need work, each at most once at a time.

The queue of a controller: events say *that* an object needs a look, not what happened to it, so a key
that is added again before its turn is one turn, and a key that is added during its turn gets another
one afterwards. One key is never worked on twice at once. A key whose work failed comes back after a
delay that doubles from failure to failure, until it is forgotten.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from pumice.cluster.backoff import Backoff

__all__ = ["WorkQueue"]

K = TypeVar("K", bound=Hashable)

logger = logging.getLogger(__name__)


class WorkQueue(Generic[K]):
    """A queue of keys for one event loop.

    Attributes:
        retries: How many failures have been put back so far, for metrics.
    """

    def __init__(self, name: str, *, backoff: Backoff | None = None) -> None:
        """Make an empty queue.

        Args:
            name: Stands in logs.
            backoff: Delays of failed keys; 5 ms doubling to 1000 s in controllers written in Go,
                here from 100 ms to 5 minutes.
        """
        self.name = name
        self.retries = 0
        self._backoff = backoff or Backoff(base=0.1, cap=300.0, spread=0.1, seed=name)
        # A dict is a set that keeps the order of arrival.
        self._ready: dict[K, None] = {}
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._failures: dict[K, int] = {}
        self._timers: dict[K, tuple[float, asyncio.Handle]] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        """Keys that could be worked on now."""
        return len(self._ready)

    @property
    def delayed(self) -> int:
        """Keys that wait for a moment."""
        return len(self._timers)

    def failures(self, key: K) -> int:
        """How often in a row a key has failed."""
        return self._failures.get(key, 0)

    # Putting in

    def add(self, key: K) -> None:
        """Have a key worked on as soon as possible."""
        if key in self._working:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = None
            self._idle.clear()
            self._wake()

    def add_after(self, key: K, seconds: float) -> None:
        """Have a key worked on later; of several moments the earliest counts."""
        if seconds <= 0:
            self._cancel(key)
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if key in self._timers:
            pending, timer = self._timers[key]
            if pending <= due:
                return
            timer.cancel()
        self._timers[key] = due, loop.call_later(seconds, self._due, key)

    def retry(self, key: K) -> float:
        """Have a failed key worked on after its delay.

        Returns:
            The delay in seconds.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.retries += 1
        delay = self._backoff.delay(failures)
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Count a key's failures from zero again: its work succeeded."""
        self._failures.pop(key, None)

    # Taking out

    async def get(self) -> K:
        """Wait for a key and take it; give it back with `done`."""
        while not self._ready:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                # Woken and cancelled at once: another worker must take what we were woken for.
                if waiter.done() and not waiter.cancelled() and self._ready:
                    self._wake()
                raise
            finally:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
        key = next(iter(self._ready))
        del self._ready[key]
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        """Give a key back; it is worked on again if it was added meanwhile."""
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        elif not self._ready and not self._working:
            self._idle.set()

    async def work(self, handler: Callable[[K], Awaitable[float | None]], workers: int = 1) -> None:
        """Work until cancelled.

        A handler that raises is logged and its key comes back after its delay, also one that is cancelled from
        inside; one that returns a number of seconds has its key looked at again after these.

        Args:
            handler: Does the work of one key.
            workers: How many keys are worked on at once.
        """
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._worker(handler))

    async def settled(self) -> None:
        """Wait until no key is ready or being processed; delayed keys do not count."""
        await self._idle.wait()

    def close(self) -> None:
        """Drop all delayed keys."""
        for key in list(self._timers):
            self._cancel(key)

    # Inside

    async def _worker(self, handler: Callable[[K], Awaitable[float | None]]) -> None:
        while True:
            key = await self.get()
            try:
                after = await handler(key)
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                    raise
                delay = self.retry(key)
                logger.exception("%s: %s failed, again in %.1f s", self.name, key, delay)
            else:
                self.forget(key)
                if after is not None:
                    self.add_after(key, after)
            finally:
                self.done(key)

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _cancel(self, key: K) -> None:
        pending = self._timers.pop(key, None)
        if pending is not None:
            pending[1].cancel()

    def _wake(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
                return


def _is_cancelled() -> bool:
    """True if the current task itself is cancelled, and not only something that it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
