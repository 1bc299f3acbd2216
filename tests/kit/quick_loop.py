"""An event loop for tests on the embedded API server: time in which nothing happens passes quickly.

Server, client and component share one process and one loop. While all of them wait for a timer, nothing can
happen, so the loop waits for a small part of that time and moves its clock by all of it. While something runs,
in the loop, in a thread or in a process of the loop, time passes as usual: a busy machine ends no wait too early.

A folder of tests uses it by importing `pytest_asyncio_loop_factories` and `quick_clock` into its `conftest.py`.
"""

import asyncio
import select
import selectors
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pumice.cluster import elected
from pumice.cluster.clock import SystemClock

SPEED = 20
"""How much faster than a wall clock idle time passes. What was sent over loopback arrives within a part of it."""


class QuickLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock is ahead of the machine's.

    Attributes:
        skipped: Seconds that it is ahead.
    """

    def __init__(self) -> None:
        self.skipped = 0.0
        self._threads = 0
        self._children: list[asyncio.SubprocessTransport] = []
        super().__init__(_Selector(self))

    def time(self) -> float:
        """Seconds since some fixed point, with those that were skipped."""
        return super().time() + self.skipped

    @property
    def idle(self) -> bool:
        """Whether neither a thread nor a process that was started here runs."""
        return not self._threads and all(
            each.get_returncode() is not None for each in self._children
        )

    def run_in_executor(  # type: ignore[override]  # variadic in the superclass
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Call a function in a thread."""
        future = super().run_in_executor(executor, func, *args)
        self._threads += 1
        future.add_done_callback(self._note_end)
        return future

    def _note_end(self, _: asyncio.Future[Any]) -> None:
        self._threads -= 1

    async def subprocess_exec(self, *args: Any, **named: Any) -> Any:
        """Start a process."""
        transport, protocol = await super().subprocess_exec(*args, **named)
        self._children.append(transport)
        return transport, protocol


class _Selector(selectors.DefaultSelector):
    """Waits for less than it is asked to."""

    def __init__(self, loop: QuickLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0 or not self._loop.idle:
            return super().select(timeout)
        began = time.monotonic()
        # epoll itself waits for whole milliseconds.
        ready, _, _ = select.select([self.fileno()], [], [], timeout / SPEED)
        if not ready:
            self._loop.skipped += max(0.0, timeout - (time.monotonic() - began))
        return super().select(0)


def wall() -> float:
    """The moment in UNIX seconds, with the seconds that the running loop skipped."""
    return time.time() + _skipped()


def monotonic() -> float:
    """Seconds since some fixed point, with those that the running loop skipped."""
    return time.monotonic() + _skipped()


def _skipped() -> float:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # of a fixture without a loop, or a thread
        return 0.0
    return loop.skipped if isinstance(loop, QuickLoop) else 0.0


@pytest.hookimpl
def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop of each test of a folder; for a real API server time passes as usual."""
    if "controlplane" in getattr(item, "fixturenames", ()):
        return {"usual": asyncio.new_event_loop}
    return {"quick": QuickLoop}


@asynccontextmanager
async def _running_loop(_: str) -> AsyncIterator[asyncio.AbstractEventLoop]:
    yield asyncio.get_running_loop()


def in_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the election run in the loop of the test, whose time another thread would not share."""
    monkeypatch.setattr(elected, "side_loop", _running_loop)


@pytest.fixture(autouse=True)
def quick_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock of components be the one of the loop, and all of them run in it."""
    in_one_loop(monkeypatch)
    monkeypatch.setattr(SystemClock, "wall", lambda _: wall())
    monkeypatch.setattr(SystemClock, "monotonic", lambda _: monotonic())
