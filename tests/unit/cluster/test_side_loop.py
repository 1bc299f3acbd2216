"""What is awaited in the event loop of another thread behaves as if it were awaited here."""

import asyncio
import subprocess
import sys
import threading
from contextvars import ContextVar

import pytest

from pumice.cluster.side_loop import call_in, side_loop
from tests.kit.waiting import until

word: ContextVar[str] = ContextVar("word", default="none")


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "beside"]


async def test_it_runs_in_a_thread_that_ends_with_the_block() -> None:
    async def where() -> tuple[str, str]:
        return threading.current_thread().name, word.get()

    word.set("spoken")
    async with side_loop("beside") as side:
        assert await call_in(side, where) == ("beside", "spoken")
        assert await call_in(asyncio.get_running_loop(), where) == ("MainThread", "spoken")
        assert threads() == ["beside"]
    assert threads() == []


async def test_an_exception_is_raised_here() -> None:
    async def fail() -> None:
        raise RuntimeError("broken there")

    async with side_loop("beside") as side:
        with pytest.raises(RuntimeError, match="broken there"):
            await call_in(side, fail)


@pytest.mark.parametrize("times", [1, 2])
async def test_a_cancelled_caller_waits_for_the_end_of_the_call(times: int) -> None:
    log: list[str] = []
    may_end = threading.Event()

    async def work() -> None:
        log.append("begun")
        while not may_end.is_set():
            try:
                await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                log.append("cancelled")
        log.append("ended")
        raise asyncio.CancelledError

    async with side_loop("beside") as side:
        calling = asyncio.create_task(call_in(side, work))
        await until(lambda: log)
        for number in range(times):
            calling.cancel()
            await until(lambda number=number: len(log) == 2 + number)  # type: ignore[misc]
        await asyncio.sleep(0.01)
        assert not calling.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await calling
    assert log == ["begun", *["cancelled"] * times, "ended"]


async def test_a_call_that_is_cancelled_before_it_begins_does_nothing() -> None:
    log: list[str] = []

    async def work() -> None:
        log.append("begun")

    async with side_loop("beside") as side:
        blocked = threading.Event()
        side.call_soon_threadsafe(blocked.wait)
        calling = asyncio.create_task(call_in(side, work))
        await asyncio.sleep(0)
        calling.cancel()
        await asyncio.sleep(0)
        blocked.set()
        with pytest.raises(asyncio.CancelledError):
            await calling
    assert log == []


async def test_a_cancellation_is_not_lost_when_the_call_has_just_ended() -> None:
    """A process that is told to stop at that moment must not lead again."""
    ended = threading.Event()

    async def work() -> str:
        ended.set()
        return "done"

    async with side_loop("beside") as side:
        calling = asyncio.create_task(call_in(side, work))
        await asyncio.sleep(0)
        ended.wait(10)  # this loop does not turn meanwhile
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling


async def test_what_still_runs_at_the_end_of_the_block_is_cancelled() -> None:
    log: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            log.append("cancelled")
            raise

    async with side_loop("beside") as side:
        calling = asyncio.create_task(call_in(side, work))
        await asyncio.sleep(0.01)
    assert log == ["cancelled"]
    with pytest.raises(asyncio.CancelledError):
        await calling


FAILING = """
import asyncio
from pumice.cluster.side_loop import call_in, side_loop

async def fail():
    raise SystemExit(3)

async def main():
    async with side_loop("beside") as side:
        await call_in(side, fail)

asyncio.run(main())
"""


def test_a_loop_that_fails_ends_the_process_with_a_line_in_its_log() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FAILING], capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.returncode == 1
    assert "the event loop of thread 'beside' failed; exiting" in ended.stderr
    assert "SystemExit: 3" in ended.stderr
