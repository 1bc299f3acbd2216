"""When a process of background tasks ends, and how."""

import asyncio
import os
import signal

import pytest

from pumice.cluster.lifecycle import SupervisedTask, TaskEndedError, run_until_stopped


class Part:
    """A background task that notes its end."""

    def __init__(self, name: str, log: list[str], *, drain: float = 0.0) -> None:
        self.name = name
        self.log = log
        self.drain = drain

    async def run(self) -> None:
        self.log.append(f"{self.name} runs")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(self.drain)
            self.log.append(f"{self.name} ended")


async def test_parts_stop_in_the_reverse_order() -> None:
    log: list[str] = []
    stop = asyncio.Event()
    parts = [Part("cache", log), Part("server", log, drain=0.02)]
    asyncio.get_running_loop().call_later(0.02, stop.set)
    await run_until_stopped([SupervisedTask(part.name, part.run) for part in parts], stop=stop)
    assert log == ["cache runs", "server runs", "server ended", "cache ended"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signals_stop(number: signal.Signals) -> None:
    log: list[str] = []
    asyncio.get_running_loop().call_later(0.02, os.kill, os.getpid(), number)
    async with asyncio.timeout(60):
        await run_until_stopped([SupervisedTask("part", Part("part", log).run)])
    assert log == ["part runs", "part ended"]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


async def test_a_part_that_ends_is_a_fault(caplog: pytest.LogCaptureFixture) -> None:
    log: list[str] = []

    async def short() -> None:
        await asyncio.sleep(0.01)

    with pytest.raises(TaskEndedError, match="watcher ended, which it never should"):
        await run_until_stopped(
            [SupervisedTask("other", Part("other", log).run), SupervisedTask("watcher", short)]
        )
    assert log[-1] == "other ended"
    assert "watcher ended" in caplog.text


async def test_a_part_that_fails_takes_the_process_along(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log: list[str] = []

    async def broken() -> None:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        await run_until_stopped(
            [SupervisedTask("other", Part("other", log).run), SupervisedTask("broken", broken)]
        )
    assert log[-1] == "other ended"
    assert "broken failed; stopping" in caplog.text


async def test_a_part_that_does_not_end_is_left_after_its_grace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stop = asyncio.Event()
    held = asyncio.Event()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await held.wait()

    asyncio.get_running_loop().call_later(0.01, stop.set)
    async with asyncio.timeout(60):
        await run_until_stopped([SupervisedTask("stubborn", stubborn, grace=0.05)], stop=stop)
    assert "stubborn did not end within 0 s" in caplog.text
    held.set()
    await asyncio.sleep(0.01)


async def test_a_part_that_fails_while_stopping_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stop = asyncio.Event()

    async def clumsy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("cannot close")

    asyncio.get_running_loop().call_later(0.01, stop.set)
    await run_until_stopped([SupervisedTask("clumsy", clumsy)], stop=stop)
    assert "clumsy failed while stopping" in caplog.text
