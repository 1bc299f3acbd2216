"""Idle time passes quickly on the loop of tests; time in which something runs does not."""

import asyncio
import socket
import time
from collections.abc import Coroutine
from typing import Any

from tests.kit.quick_loop import SPEED, QuickLoop, monotonic, wall


def _run(story: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=QuickLoop) as runner:
        runner.run(story)


def _loop() -> QuickLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, QuickLoop)
    return loop


def test_idle_time_is_skipped_on_all_clocks() -> None:
    async def story() -> None:
        began = _loop().time(), monotonic() - time.monotonic(), wall() - time.time()
        await asyncio.sleep(2)
        assert _loop().time() - began[0] >= 2
        skipped = _loop().skipped
        assert 0 < skipped <= 2 * (1 - 1 / SPEED) + 0.001
        assert abs(monotonic() - time.monotonic() - began[1] - skipped) < 0.5
        assert abs(wall() - time.time() - began[2] - skipped) < 0.5

    _run(story())


def test_timers_fire_in_their_order() -> None:
    async def story() -> None:
        order: list[float] = []

        async def note(seconds: float) -> None:
            await asyncio.sleep(seconds)
            order.append(seconds)

        await asyncio.gather(*map(note, (0.5, 0.1, 0.3)))
        assert order == [0.1, 0.3, 0.5]

    _run(story())


def test_nothing_is_skipped_while_something_runs() -> None:
    async def story() -> None:
        waiting = asyncio.create_task(asyncio.sleep(0.01))
        _loop().call_soon(time.sleep, 0.02)  # as long as a timer is due
        await waiting
        assert _loop().skipped < 0.01
        before = _loop().skipped
        waiting = asyncio.create_task(asyncio.sleep(0.01))
        await asyncio.to_thread(time.sleep, 0.05)
        await waiting
        assert _loop().skipped == before
        waiting = asyncio.create_task(asyncio.sleep(0.01))
        process = await asyncio.create_subprocess_exec("sleep", "0.05")
        before = _loop().skipped
        await process.wait()
        await waiting
        assert _loop().skipped == before
        await asyncio.sleep(0.1)
        assert _loop().skipped > 0

    _run(story())


def test_what_arrives_ends_the_wait() -> None:
    async def story() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with ours, theirs:
            theirs.send(b"x")
            async with asyncio.timeout(0.5):
                assert await _loop().sock_recv(ours, 1) == b"x"
        assert _loop().skipped == 0

    _run(story())


def test_elsewhere_the_clocks_are_those_of_the_machine() -> None:
    assert abs(monotonic() - time.monotonic()) < 0.5
    assert abs(wall() - time.time()) < 0.5
