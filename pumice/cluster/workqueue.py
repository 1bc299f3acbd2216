"""A queue of keys that need work; each key is handled at most once at a time, and namespaces take turns.

This is the queue of a controller. An event says only *that* an object needs a pass, so a key that is added twice before
its pass gets one pass. A key that is added during its pass gets another one afterwards. A key is never handled twice at
the same time. A failed key is added again after a delay that doubles with each failure until `forget`.

Which key is handled next is decided by `Turns`, so that a namespace with thousands of keys does not delay the others. With
a limit for one namespace, long work on its keys leaves workers to the others, too. In a queue whose workers are shared, a
namespace has only its part of them while others are active (`turns.Shares`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from pumice.cluster.clock import Backoff
from pumice.cluster.set_aside import QueueFaults
from pumice.cluster.turns import Shares, Turns

K = TypeVar("K", bound=Hashable)

logger = logging.getLogger(__name__)


class WorkQueue(Generic[K]):
    """A queue of keys for one event loop.

    Attributes:
        retries: Number of retries so far, for metrics.
    """

    def __init__(
        self,
        name: str,
        namespace_of: Callable[[K], str],
        *,
        of_one: int | None = None,
        shared: bool = False,
        backoff: Backoff | None = None,
        faults: QueueFaults[K] | None = None,
    ) -> None:
        """Create an empty queue.

        Args:
            name: Name in logs.
            namespace_of: The namespace of a key; namespaces take turns.
            of_one: Maximum number of keys of one namespace that are handled concurrently; None for all workers.
            shared: Whether a namespace has its part of the workers while others are active, and all of them otherwise.
            backoff: Delays of failed keys; 5 ms doubling to 1000 s in controllers written in Go,
                here from 100 ms to 5 minutes.
            faults: Reports keys whose handler raises; each failure is logged if None.
        """
        self.name = name
        self.retries = 0
        self._backoff = backoff or Backoff(base=0.1, cap=300.0, spread=0.1, seed=name)
        self._faults = faults
        self._namespace_of = namespace_of
        self._ready = Turns(namespace_of, most=of_one)
        self._is_shared = shared
        self._shares: Shares | None = None
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._failures: dict[K, int] = {}
        self._timers: dict[K, tuple[float, asyncio.Handle]] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        """Number of keys that are ready."""
        return len(self._ready)

    @property
    def delayed(self) -> int:
        """Number of keys that are delayed."""
        return len(self._timers)

    def failures(self, key: K) -> int:
        """How often in a row a key has failed."""
        return self._failures.get(key, 0)

    def others_wait(self, key: K) -> bool:
        """True if a key of another namespace could be handled now, but all workers are busy."""
        return not self._waiting and self._ready.others(self._namespace_of(key))

    # Putting in

    def add(self, key: K) -> None:
        """Add a key for a pass as soon as possible."""
        if key in self._working:
            self._again.add(key)
        elif key not in self._ready:
            self._ready.add(key)
            self._note(key)
            self._idle.clear()
            self._wake()

    def add_after(self, key: K, seconds: float) -> None:
        """Add a key for a later pass; of several times the earliest counts."""
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
        """Add a failed key again after its delay.

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
        """Reset the failures of a key after success."""
        if self._failures.pop(key, None) is not None and self._faults is not None:
            self._faults.passed(key)

    # Taking out

    async def get(self) -> K:
        """Wait for a key and take it; return it with `done`."""
        while not self._ready.can_take():
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                # Woken and cancelled at the same time: another worker must take the key.
                if waiter.done() and not waiter.cancelled() and self._ready.can_take():
                    self._wake()
                raise
            finally:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
        key = self._ready.take()
        self._working.add(key)
        if self._ready.can_take():
            self._wake()  # several may be handled now if a limit has been lifted
        return key

    def done(self, key: K) -> None:
        """Return a key; it is added again if it was added meanwhile."""
        self._working.discard(key)
        self._ready.returned(key)
        self._note(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        elif self._ready.can_take():
            self._wake()  # another key of its namespace may be handled now
        elif not self._ready and not self._working:
            self._idle.set()

    async def work(self, handler: Callable[[K], Awaitable[float | None]], workers: int = 1) -> None:
        """Handle keys until cancelled.

        If a handler raises, or is cancelled from inside, the error is reported and the key is added again after its
        delay. If it returns a number of seconds, the key is added again after that time.
        """
        if self._is_shared:
            self._shares = Shares(self._ready, workers)
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
        if self._faults is not None:
            for key in self._failures:
                self._faults.passed(key, heals=False)
        self._failures.clear()

    # Inside

    def _note(self, key: K) -> None:
        """Note that the namespace of a key is active."""
        if self._shares is not None:
            self._shares.note(self._namespace_of(key))

    async def _worker(self, handler: Callable[[K], Awaitable[float | None]]) -> None:
        while True:
            key = await self.get()
            try:
                after = await handler(key)
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                    raise
                delay = self.retry(key)
                if self._faults is not None:
                    self._faults.failed(key, error, delay)
                else:
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
