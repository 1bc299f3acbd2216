"""Limits of connections, of bytes in large bodies, and of waiting."""

import asyncio
import resource
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from pumice.serving.connections import CONNECTIONS
from pumice.webhook.server import FileCertificates, WebhookWorker
from pumice.webhook.server.reviews import Reviews
from tests.integration.webhook.raw_http import Reply, connected, post, talk
from tests.integration.webhook.serving import QUICK, Pair, offline, running
from tests.kit.builders import job
from tests.kit.waiting import until
from tests.unit.webhook.reviewing import request, review

PATH = "/jobs/validate"
SHORT = post(PATH, review(request(PATH, job())))
LONG_REVIEW = review(request(PATH, job(annotations={"note": "x" * 200_000})))
LONG = post(PATH, LONG_REVIEW)
LONG_HALF = post(PATH, LONG_REVIEW[:1000], length=len(LONG_REVIEW))


@asynccontextmanager
async def serving(**limits: Any) -> AsyncIterator[tuple[WebhookWorker, str]]:
    """A worker with some limits, and where it answers."""
    worker = offline(settings=replace(QUICK, **limits))
    async with running(worker) as address:
        yield worker, address


def sample(worker: WebhookWorker, name: str, **labels: str) -> float | None:
    return worker.metrics.registry.get_sample_value(f"pumice_admission_{name}", labels)


async def becomes(worker: WebhookWorker, name: str, value: float) -> None:
    """Wait until a metric has a value."""
    await until(lambda: sample(worker, name) == value)


async def test_a_long_review_waits_until_there_is_room_for_it() -> None:
    async with serving(body_budget=300_000) as (worker, address):
        async with connected(address, LONG_HALF):
            await becomes(worker, "body_bytes", len(LONG_REVIEW))
            (short,) = await talk(address, [SHORT], replies=1)
            assert short.status == 200
            waiting = asyncio.create_task(talk(address, [LONG[:-1], LONG[-1:]], replies=1))
            await becomes(worker, "bodies_waiting", 1)
        (reply,) = await waiting
        assert reply.status == 200
        await becomes(worker, "body_bytes", 0)


async def test_a_client_that_gets_no_room_is_asked_to_retry() -> None:
    """kube-apiserver does so, as long as its own deadline allows."""
    long = LONG.replace(PATH.encode(), PATH.encode() + b"?timeout=1s", 1)
    async with serving(body_budget=300_000) as (worker, address), connected(address, LONG_HALF):
        await becomes(worker, "body_bytes", len(LONG_REVIEW))
        (reply,) = await talk(address, [long[:-1], long[-1:]], replies=1)
        assert is_unavailable(reply)
        labels = {"path": PATH, "operation": "other", "outcome": "errored", "code": "503"}
        assert sample(worker, "reviews_total", **labels) == 1


def is_unavailable(reply: Reply) -> bool:
    """Whether a reply asks to come again."""
    assert (reply.status, reply.json["reason"]) == (503, "ServiceUnavailable")
    assert "there was no room for this one" in reply.json["message"]
    return reply.closes and b"\r\nretry-after: 1\r\n" in reply.head.lower()


async def test_a_body_of_which_nothing_more_comes_is_not_waited_for() -> None:
    async with serving(quiet_seconds=0.2) as (worker, address):
        (reply,) = await talk(address, [LONG_HALF], replies=1)
        assert reply.status == 408
        assert reply.json["message"] == "nothing more of the review arrived for 0.2 s"
        await becomes(worker, "body_bytes", 0)


async def test_a_slow_body_is_waited_for_while_some_of_it_comes() -> None:
    async with serving(quiet_seconds=2.0) as (_, address):
        host, port = address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        for start in range(0, len(LONG), len(LONG) // 8):
            writer.write(LONG[start : start + len(LONG) // 8])
            await asyncio.sleep(0.3)
        assert (await asyncio.wait_for(reader.readline(), 20)).startswith(b"HTTP/1.1 200 ")
        writer.close()
        await writer.wait_closed()


async def test_a_connection_on_which_nothing_is_asked_ends() -> None:
    async with (
        serving(quiet_seconds=0.2) as (worker, address),
        connected(address) as unused,
        connected(address, SHORT) as used,
    ):
        assert await asyncio.wait_for(unused.read(), 20) == b""
        assert (await used.readline()).startswith(b"HTTP/1.1 200 ")
        await asyncio.sleep(0.4)
        assert worker.listener.connections == 1
        assert sample(worker, "connections_dropped_total", reason="quiet") == 1


async def test_a_handshake_that_does_not_begin_is_not_waited_for(pair: Pair) -> None:
    settings = replace(QUICK, quiet_seconds=0.2)
    files = FileCertificates(pair.certificate, pair.key)
    async with (
        running(offline(settings=settings, certificates=files)) as address,
        connected(address) as silent,
    ):
        assert await asyncio.wait_for(silent.read(), 20) == b""


async def test_a_head_that_does_not_arrive_is_not_waited_for() -> None:
    async with serving(read_seconds=0.2) as (worker, address):
        for sent in ([b"POST /jobs"], [b"\r\n"], [SHORT[:20], SHORT[20:40]]):
            assert await talk(address, sent) == []
        assert [reply.status for reply in await talk(address, [SHORT, SHORT[:20]])] == [200]
        assert sample(worker, "connections_dropped_total", reason="slow") == 4


WAITING = {
    "silent": b"",
    "half a head": SHORT[:20],
    "half a body": LONG_HALF,
    "idle": SHORT,
    "not reading": SHORT * 3,
}


@pytest.mark.parametrize("sent", WAITING.values(), ids=WAITING)
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
async def test_the_connection_that_has_waited_longest_is_closed_for_a_new_one(
    sent: bytes, pair: Pair, *, encrypted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    files = FileCertificates(pair.certificate, pair.key) if encrypted else None
    tls = pair.trusting() if encrypted else None
    settings = replace(QUICK, connection_limit=5)
    worker = offline(settings=settings, certificates=files)
    async with running(worker) as address:
        async with AsyncExitStack() as stack:
            held = []
            for number in range(5):
                held.append(await stack.enter_async_context(connected(address, sent, tls)))
                await becomes(worker, "connections", number + 1)
                await asyncio.sleep(0.01)
            for number in range(2):
                (reply,) = await talk(address, [SHORT], replies=1, tls=tls)
                assert reply.status == 200
                await read_to_the_end(held[number])
                assert not any(each.at_eof() for each in held[number + 1 :])
                await becomes(worker, "connections", 4)
                held.append(await stack.enter_async_context(connected(address, sent, tls)))
                await becomes(worker, "connections", 5)
                await asyncio.sleep(0.01)
            assert sample(worker, "connections_dropped_total", reason="crowded") == 2
        await becomes(worker, "connections", 0)
    said = [record.getMessage() for record in caplog.records if "the limit" in record.getMessage()]
    assert said == [
        "the limit of 5 connections is reached; 1 connections were closed since this was last logged"
    ]


async def test_handshakes_in_progress_count_and_make_room(pair: Pair) -> None:
    files = FileCertificates(pair.certificate, pair.key)
    settings = replace(QUICK, connection_limit=5, quiet_seconds=60.0)
    worker = offline(settings=settings, certificates=files)
    async with running(worker) as address, AsyncExitStack() as stack:
        held = []
        for number in range(5):
            hello = b"\x16\x03\x01\x02\x00" if number % 2 else b""
            held.append(await stack.enter_async_context(connected(address, hello)))
            await becomes(worker, "connections", number + 1)
        (reply,) = await talk(address, [SHORT], replies=1, tls=pair.trusting())
        assert reply.status == 200
        assert await read_to_the_end(held[0]) == b""
        assert not any(each.at_eof() for each in held[1:])


async def test_a_thousand_idle_connections_keep_no_review_out(pair: Pair) -> None:
    """With the limits that the server has."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 1 << 16), hard))
    files, tls = FileCertificates(pair.certificate, pair.key), pair.trusting()
    settings = replace(QUICK, quiet_seconds=3600.0, read_seconds=3600.0)  # however long it takes
    worker = offline(settings=settings, certificates=files)
    async with running(worker) as address, AsyncExitStack() as stack:
        for number in range(CONNECTIONS):
            sent = (SHORT, b"", SHORT[:20], LONG_HALF)[number % 4]
            await stack.enter_async_context(connected(address, sent, tls))
        await becomes(worker, "connections", CONNECTIONS)
        for _ in range(3):
            (reply,) = await talk(address, [SHORT], replies=1, tls=tls)
            assert reply.status == 200
        assert sample(worker, "connections_dropped_total", reason="crowded") in (1, 2, 3)


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
async def test_a_connection_whose_review_is_answered_is_not_closed(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, *, encrypted: bool
) -> None:
    """Where all have one, a new connection is refused."""
    files = FileCertificates(pair.certificate, pair.key) if encrypted else None
    tls = pair.trusting() if encrypted else None
    answered = asyncio.Event()
    judge = Reviews._judge

    async def slowly(self: Reviews, *arguments: Any) -> Any:
        await answered.wait()
        return await judge(self, *arguments)

    monkeypatch.setattr(Reviews, "_judge", slowly)
    worker = offline(settings=replace(QUICK, connection_limit=2), certificates=files)
    async with running(worker) as address:
        asking = [asyncio.create_task(talk(address, [SHORT], replies=1, tls=tls)) for _ in range(2)]
        await until(
            lambda: [each.waits for each in worker.listener._main._connections.open] == [False] * 2
        )
        async with connected_if_possible(address, tls) as refused:
            assert await read_to_the_end(refused) == b""
        assert worker.listener.connections == 2
        assert sample(worker, "connections_dropped_total", reason="crowded") == 1
        answered.set()
        assert [(await each)[0].status for each in asking] == [200, 200]


@asynccontextmanager
async def connected_if_possible(
    address: str, tls: ssl.SSLContext | None
) -> AsyncIterator[asyncio.StreamReader]:
    """A client that sends a review; the end of a stream if its connection is refused."""
    try:
        async with connected(address, SHORT, tls) as reader:
            yield reader
    except ConnectionError:
        reader = asyncio.StreamReader()
        reader.feed_eof()
        yield reader


async def read_to_the_end(reader: asyncio.StreamReader) -> bytes:
    """What came before the connection ended, however it did."""
    received = b""
    try:
        async with asyncio.timeout(20):
            while part := await reader.read(1 << 16):
                received += part
    except ConnectionError:
        pass
    return received
