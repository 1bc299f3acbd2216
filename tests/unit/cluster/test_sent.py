"""Requests that were sent are waited for at the end, for a bounded time."""

import asyncio
import gc

import pytest

from pumice.cluster import lifecycle
from pumice.cluster.lifecycle import SentRequests


class Server:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.answered: list[str] = []

    async def request(self, name: str, error: Exception | None = None) -> str:
        await self.answers.wait()
        self.answered.append(name)
        if error is not None:
            raise error
        return name


async def test_who_asks_gets_the_answer() -> None:
    server, requests = Server(), SentRequests()
    server.answers.set()
    assert await requests.send(server.request("a")) == "a"
    with pytest.raises(ValueError, match="no"):
        await requests.send(server.request("b", ValueError("no")))
    await requests.answered()


async def test_what_was_sent_is_answered_although_the_caller_is_cancelled() -> None:
    server, requests = Server(), SentRequests()
    callers = [
        asyncio.create_task(requests.send(server.request("a"))),
        asyncio.create_task(requests.send(server.request("b", ValueError("refused")))),
    ]
    await asyncio.sleep(0)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    waiting = asyncio.create_task(requests.answered())
    await asyncio.sleep(0)
    assert not waiting.done()
    server.answers.set()
    await waiting
    assert server.answered == ["a", "b"]


async def test_an_answer_that_does_not_come_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lifecycle, "ANSWER_SECONDS", 0.01)
    server, requests = Server(), SentRequests()
    caller = asyncio.create_task(requests.send(server.request("a")))
    await asyncio.sleep(0)
    await requests.answered()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert server.answered == []


async def test_an_error_that_no_caller_waits_for_any_more_is_not_logged_as_lost() -> None:
    lost: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
    server, requests = Server(), SentRequests()
    caller = asyncio.create_task(requests.send(server.request("a", ValueError("refused"))))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    server.answers.set()
    for _ in range(5):
        await asyncio.sleep(0)
    await requests.answered()
    del caller  # its traceback refers to the request
    gc.collect()
    assert lost == []
