"""A log that is followed while its files are rotated."""

import asyncio
import os
from pathlib import Path

import pytest

from pumice.embedded.node import logs
from pumice.embedded.pod_streams import ContainerLogRequest
from tests.kit.waiting import until


async def test_whoever_follows_gets_each_line_or_is_told_that_some_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_MOST_BYTES", 1000)
    log = logs.ContainerLog(tmp_path / "log", lambda _: None)
    reading, writing = os.pipe()
    log.follow(reading)
    shown: list[str] = []

    async def follow() -> None:
        async for part in log.read(ContainerLogRequest("", "", "", follow=True)):
            shown.append(part.decode().rstrip("\n"))  # noqa: PERF401 others look at it

    async def written(first: int, count: int) -> list[str]:
        lines = [f"{number:0100}" for number in range(first, first + count)]
        os.write(writing, "".join(f"{line}\n" for line in lines).encode())
        await until(lambda: bool(shown) and shown[-1] == lines[-1], around=lambda: shown)
        return lines

    following = asyncio.create_task(follow())
    expected = [line for first in (0, 5, 10, 15) for line in await written(first, 5)]
    assert shown == expected
    several = await written(20, 40)
    told, *last = shown[len(expected) :]
    assert told.startswith("(lines are missing here")
    assert 7 <= len(last) < 40
    assert last == several[-len(last) :]
    os.close(writing)
    await following
