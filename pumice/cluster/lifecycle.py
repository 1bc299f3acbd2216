"""A process of tasks that must not end.

A component has a few background tasks (a cache, a server, a worker). Each must run until the process gets a signal to
stop. If a task ends earlier, even without an error, the process would seem to run and do nothing. So the end is an
error: it is logged with the task's name, all other tasks are stopped, and the process exits so that its supervisor
restarts it.

At a stop (SIGTERM, SIGINT or the event) tasks are cancelled one after the other, the last started first, so that a
server drains while its caches are still current.

Responses to requests that were sent are awaited at a stop, which takes milliseconds (`SentRequests`). A request that is aborted
may have reached the API server. The next leader sees its effect only when its watch shows it, and until then it may repeat the
request or get a conflict.
"""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

logger = logging.getLogger(__name__)


class TaskEndedError(Exception):
    """A task that should run forever returned."""


@dataclass(frozen=True, slots=True)
class SupervisedTask:
    """One background task.

    Attributes:
        name: Name in logs.
        run: Called once; its coroutine runs until it is cancelled.
        grace: Seconds that it may take to end after being cancelled.
    """

    name: str
    run: Callable[[], Awaitable[None]]
    grace: float = 10.0


@contextmanager
def stop_on_signals(
    stop: asyncio.Event,
    signals: Iterable[signal.Signals] = (signal.SIGTERM, signal.SIGINT),
) -> Iterator[None]:
    """Set an event when a signal arrives; the second signal has its default effect.

    Call it in the main thread, inside the event loop.
    """
    loop = asyncio.get_running_loop()
    handled = list(signals)

    def restore() -> None:
        while handled:
            loop.remove_signal_handler(handled.pop())

    def stopped(number: signal.Signals) -> None:
        logger.info("%s received, stopping", number.name)
        stop.set()
        restore()

    for number in list(handled):
        loop.add_signal_handler(number, stopped, number)
    try:
        yield
    finally:
        restore()


async def run_until_stopped(
    tasks: Iterable[SupervisedTask],
    *,
    stop: asyncio.Event | None = None,
    signals: Iterable[signal.Signals] = (signal.SIGTERM, signal.SIGINT),
) -> None:
    """Run tasks until the process gets a signal to stop or one of them ends.

    Args:
        tasks: The tasks in the order of starting; they are stopped in reverse order.
        stop: Stops everything when set; signals set it too.
        signals: Signals that stop; none if the caller handles them.

    Raises:
        TaskEndedError: When a task returned.
        Exception: The first exception of a task; later ones are logged.
    """
    stop = stop or asyncio.Event()
    stopping = asyncio.create_task(stop.wait(), name="stop")
    started: list[tuple[SupervisedTask, asyncio.Task[None]]] = []
    with stop_on_signals(stop, signals):
        try:
            started.extend(
                (each, asyncio.create_task(_as_coroutine(each), name=each.name)) for each in tasks
            )
            running = [task for _, task in started]
            await asyncio.wait([stopping, *running], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            faults = [fault for each, task in started if (fault := _fault(each, task))]
            for each, task in reversed(started):
                await _end(each, task)
    if faults:
        raise faults[0]


async def _as_coroutine(each: SupervisedTask) -> None:
    await each.run()


def _fault(each: SupervisedTask, task: asyncio.Task[None]) -> Exception | None:
    """Why a task is not running."""
    if not task.done():
        return None
    if task.cancelled():
        logger.error("%s was cancelled from inside; stopping", each.name)
        return TaskEndedError(f"{each.name} was cancelled from inside")
    error = task.exception()
    if error is None:
        logger.error("%s ended, which it never should; stopping", each.name)
        return TaskEndedError(f"{each.name} ended, which it never should")
    logger.error("%s failed; stopping", each.name, exc_info=error)
    if not isinstance(error, Exception):
        raise error  # SystemExit, KeyboardInterrupt: must not be converted
    return error


async def _end(each: SupervisedTask, task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for it during its grace period."""
    if task.done():
        return
    task.cancel()
    await asyncio.wait([task], timeout=each.grace)
    if not task.done():
        logger.error("%s did not end within %.0f s of being told to", each.name, each.grace)
    elif not task.cancelled() and (error := task.exception()) is not None:
        logger.error("%s failed while stopping", each.name, exc_info=error)


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


async def until_any(*ends: "asyncio.Event | asyncio.Future[Any]") -> None:
    """Wait until an event is set, or a task is done; the others go on."""
    events = [
        asyncio.ensure_future(each.wait()) for each in ends if isinstance(each, asyncio.Event)
    ]
    futures = [each for each in ends if not isinstance(each, asyncio.Event)]
    try:
        await asyncio.wait([*events, *futures], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for event in events:
            event.cancel()
