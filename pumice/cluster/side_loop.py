"""An event loop in a thread of its own, for what must not wait for the main loop.

A scheduling cycle or a long pass of the controller blocks the event loop that it runs in. The Lease is renewed and probes are
answered in loops of other threads, which get their turn every few milliseconds.

What is awaited in another loop (`call_in`) behaves as if it were awaited here: a cancellation is passed on, and its end is
awaited, so that a Lease is released after the work has ended and not before.

If such a loop fails, what was called in it never ends: the process would be ready and never lead again. So the process ends.
"""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")


@asynccontextmanager
async def side_loop(name: str) -> AsyncIterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread of this name for as long as the block lasts."""
    own = asyncio.get_running_loop()
    # With a factory, the runner leaves this thread's current loop alone.
    runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
    loop, stop, ended = runner.get_loop(), asyncio.Event(), asyncio.Event()

    def turn() -> None:
        try:
            with runner:
                runner.run(stop.wait())
        except BaseException:
            logger.critical("the event loop of thread %r failed; exiting", name, exc_info=True)
            os._exit(1)
        own.call_soon_threadsafe(ended.set)

    thread = threading.Thread(target=turn, name=name, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(stop.set)
        await ended.wait()
        thread.join()


async def call_in(loop: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[T]]) -> T:
    """Call a coroutine function in the event loop of another thread, and wait for its end.

    It sees the context variables of the caller. When the caller is cancelled, the call is cancelled, and the caller waits
    until it has ended. In the running loop this is a plain call.

    Raises:
        Exception: The exception of the work.
    """
    own = asyncio.get_running_loop()
    if loop is own:
        return await work()
    ended: asyncio.Future[T] = own.create_future()
    begun: list[asyncio.Task[T]] = []

    def begin() -> None:
        task = loop.create_task(_awaited(work))
        task.add_done_callback(lambda task: own.call_soon_threadsafe(_hand_over, task, ended))
        begun.append(task)

    loop.call_soon_threadsafe(begin)
    cancelled = False
    while not ended.done():
        try:
            await asyncio.wait([ended])
        except asyncio.CancelledError:
            cancelled = True
            loop.call_soon_threadsafe(lambda: begun[0].cancel())
    result = ended.result()
    if cancelled:  # at the moment at which the work had ended
        raise asyncio.CancelledError
    return result


def _hand_over(task: asyncio.Task[T], ended: asyncio.Future[T]) -> None:
    """Give the outcome of a task of another loop to the one that waits for it."""
    if task.cancelled():
        ended.cancel()
    elif (error := task.exception()) is not None:
        ended.set_exception(error)
    else:
        ended.set_result(task.result())


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()
