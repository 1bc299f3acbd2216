"""A loop that stands still is noticed from another thread; the time is moved by hand."""

import asyncio
import logging

import pytest

from pumice.cluster.elected import Heartbeat
from tests.kit.clocks import ManualClock
from tests.kit.waiting import until


async def test_a_loop_that_turns_is_no_problem_and_one_that_stands_still_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    clock = ManualClock()
    heartbeat = Heartbeat(60.0, clock)
    assert heartbeat.problem() is None, "it does not run yet"
    beating = asyncio.create_task(heartbeat.run())
    await until(lambda: clock.sleeping)
    for _ in range(100):
        await clock.advance(1)
        assert heartbeat.problem() is None
    clock.now += 60
    assert heartbeat.problem() is None
    clock.now += 3
    assert heartbeat.problem() == "the event loop has stood still for 63 s"
    clock.now += 10
    assert heartbeat.problem() == "the event loop has stood still for 73 s"
    assert len(caplog.messages) == 1, "the log says once where it stands"
    assert "test_heartbeat.py" in caplog.text
    await clock.advance(0)
    assert heartbeat.problem() is None, "it turns again"
    clock.now += 100
    assert heartbeat.problem() is not None
    assert len(caplog.messages) == 2
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)
    assert heartbeat.problem() is None, "it has ended in an orderly way"


async def test_a_short_limit_is_noticed_in_time() -> None:
    clock = ManualClock()
    heartbeat = Heartbeat(0.4, clock)
    beating = asyncio.create_task(heartbeat.run())
    await until(lambda: clock.sleeping)
    for _ in range(20):
        await clock.advance(0.1)
        assert heartbeat.problem() is None
    beating.cancel()
