"""Malformed and slow requests: none leaves a traceback in the log or is waited for without limit."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from pumice.webhook.server import FileCertificates, ServerSettings
from tests.integration.webhook.raw_http import Reply, post, talk
from tests.integration.webhook.serving import QUICK, Pair, offline, running
from tests.kit.builders import job
from tests.unit.webhook.reviewing import UID, request, review

PATH = "/jobs/validate"
REVIEW = review(request(PATH, job()))
WHOLE = post(PATH, REVIEW)
HALF = post(PATH, REVIEW[:100], length=len(REVIEW))
CHUNKED = WHOLE.partition(b"Content-Length")[0] + b"Transfer-Encoding: chunked\r\n\r\n"
IMPATIENT = ServerSettings(drain_seconds=0, shutdown_seconds=2, read_seconds=0.2)

LIMITS = {
    "a header of 100 kB": post(PATH, REVIEW, b"X: " + b"a" * 100_000),
    "a thousand headers": post(PATH, REVIEW, *(b"X%d: a" % number for number in range(1000))),
    "a path of 100 kB": post("/" + "a" * 100_000, REVIEW),
}
UNREADABLE = LIMITS | {
    "bytes": b"\x00\x01\x02\xff\r\n\r\n",
    "a handshake of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 500,
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP of the future": b"GET / HTTP/9.9\r\n\r\n",
    "no host": WHOLE.replace(b"Host: webhook\r\n", b""),
    "no colon": post(PATH, REVIEW, b"no colon here"),
    "NUL in a header": post(PATH, REVIEW, b"X: a\x00b"),
    "an absurd length": post(PATH, REVIEW, length=10**30),
    "a negative length": post(PATH, REVIEW, length=-5),
    "two lengths": post(PATH, REVIEW, b"Content-Length: 3"),
    "a length and chunks": post(PATH, REVIEW, b"Transfer-Encoding: chunked"),
    "no chunk": CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n",
    "a path that is not UTF-8": b"GET /\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n",
    "a URL that is none": b"GET http://[::1/readyz HTTP/1.1\r\nHost: a\r\n\r\n",
    "a review, then bytes": WHOLE + b"\x00\x00",
}


@asynccontextmanager
async def serving(
    sort: str, pair: Pair, settings: ServerSettings = QUICK
) -> AsyncIterator[tuple[str, ssl.SSLContext | None]]:
    files = FileCertificates(pair.certificate, pair.key) if sort == "tls" else None
    async with running(offline(settings=settings, certificates=files)) as address:
        yield address, pair.trusting() if files is not None else None


@pytest.fixture(params=["plain", "tls"])
async def place(
    request: pytest.FixtureRequest, pair: Pair
) -> AsyncIterator[tuple[str, ssl.SSLContext | None]]:
    """A server, and what to trust it with."""
    async with serving(request.param, pair) as found:
        yield found


@pytest.fixture(params=["plain", "tls"])
async def impatient(
    request: pytest.FixtureRequest, pair: Pair
) -> AsyncIterator[tuple[str, ssl.SSLContext | None]]:
    """One that waits 0.2 s for what is missing."""
    async with serving(request.param, pair, IMPATIENT) as found:
        yield found


def is_refusal(reply: Reply, code: int, words: str) -> bool:
    """Whether a reply is a Status with a message, and the last of its connection."""
    status = reply.json
    assert (status["kind"], status["code"], reply.status) == ("Status", code, code)
    assert words in status["message"]
    assert "\n" not in status["message"]
    return reply.closes


def is_admitted(reply: Reply) -> bool:
    """Whether a reply is the answer to the review."""
    assert reply.status == 200
    return bool(reply.json["response"] == {"uid": UID, "allowed": True})


@pytest.mark.parametrize("sent", UNREADABLE.values(), ids=UNREADABLE)
async def test_malformed_requests_get_400_and_no_traceback_in_the_log(
    place: tuple[str, ssl.SSLContext | None], sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    address, tls = place
    caplog.set_level(logging.INFO)
    *_, reply = await talk(address, [sent], tls=tls)
    assert reply.status == 400
    assert reply.closes
    said = [each for each in caplog.records if each.name.startswith(("pumice", "aiohttp"))]
    assert {each.levelname for each in said} <= {"INFO"}
    assert not any(each.exc_info for each in said)


async def test_a_client_that_still_sends_gets_the_answer_to_a_malformed_request(
    place: tuple[str, ssl.SSLContext | None],
) -> None:
    address, tls = place
    parts = [UNREADABLE["NUL in a header"], *[b"a" * 10_000] * 20]
    (reply,) = await talk(address, parts, tls=tls)
    assert reply.status == 400


@pytest.mark.parametrize("sort", ["plain", "tls"])
async def test_a_client_that_does_not_stop_to_send_is_disconnected(sort: str, pair: Pair) -> None:
    files = FileCertificates(pair.certificate, pair.key) if sort == "tls" else None
    worker = offline(settings=QUICK, certificates=files)
    async with running(worker) as address:
        host, port = address.split(":")
        tls = pair.trusting() if files is not None else None
        _, writer = await asyncio.open_connection(host, int(port), ssl=tls)
        writer.write(UNREADABLE["NUL in a header"])
        with suppress(OSError):
            async with asyncio.timeout(20):
                while worker.listener.connections or not writer.is_closing():
                    writer.write(b"a")
                    await writer.drain()
                    await asyncio.sleep(0.05)
        assert worker.listener.connections == 0
        writer.transport.abort()


@pytest.mark.parametrize("parts", [[CHUNKED + b"3\r\n{  \r\n", b"zz\r\n"], [CHUNKED, b"zz\r\n"]])
async def test_a_body_that_goes_wrong_in_the_middle_is_not_waited_for_longer_than_a_slow_one(
    impatient: tuple[str, ssl.SSLContext | None],
    parts: list[bytes],
    caplog: pytest.LogCaptureFixture,
) -> None:
    address, tls = impatient
    (reply,) = await talk(address, parts, replies=1, tls=tls)
    assert is_refusal(reply, 408, "the review had not arrived whole after 0.2 s")
    assert not any(each.exc_info for each in caplog.records)


async def test_a_body_that_does_not_arrive_is_not_waited_for(
    impatient: tuple[str, ssl.SSLContext | None],
) -> None:
    address, tls = impatient
    (reply,) = await talk(address, [HALF], replies=1, tls=tls)
    assert is_refusal(reply, 408, "the review had not arrived whole after 0.2 s")


async def test_a_head_in_pieces_is_put_together(place: tuple[str, ssl.SSLContext | None]) -> None:
    address, tls = place
    pieces = [WHOLE[:5], WHOLE[5:50], WHOLE[50:300], WHOLE[300:]]
    first, second = await talk(address, [*pieces, *pieces], replies=2, tls=tls)
    assert is_admitted(first)
    assert is_admitted(second)


async def test_odd_requests_that_can_be_read_are_answered(
    place: tuple[str, ssl.SSLContext | None],
) -> None:
    address, tls = place
    odd = {
        post(PATH, REVIEW).replace(b"HTTP/1.1", b"HTTP/1.0"): 200,
        post(PATH, REVIEW, b"Connection: upgrade", b"Upgrade: websocket"): 200,
        post(f"http://elsewhere{PATH}", REVIEW): 200,
        post(PATH, REVIEW).replace(b"application/json", b"\xff\xfe"): 415,
        post(PATH, b"", length=10**12): 413,
        b"GET /\r\n\r\n": 404,
        b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n": 404,
        b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n": 404,
        b"GET //////%zz?%% HTTP/1.1\r\nHost: a\r\n\r\n": 404,
        b"PROPFIND /jobs/mutate HTTP/1.1\r\nHost: a\r\n\r\n": 405,
    }
    for sent, status in odd.items():
        (reply,) = await talk(address, [sent], replies=1, tls=tls)
        assert reply.status == status, sent
        assert reply.json


async def test_a_body_is_asked_for_where_it_waits_for_that(
    place: tuple[str, ssl.SSLContext | None],
) -> None:
    address, tls = place
    head, _, body = post(PATH, REVIEW, b"Expect: 100-continue").partition(b"\r\n\r\n")
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
    writer.write(head + b"\r\n\r\n")
    interim = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
    assert interim == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(body)
    assert (await asyncio.wait_for(reader.readline(), 20)).startswith(b"HTTP/1.1 200 ")
    writer.close()
    await writer.wait_closed()


async def test_what_is_no_review_is_counted() -> None:
    worker = offline(settings=IMPATIENT)
    async with running(worker) as address:
        await talk(address, [b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n"], replies=1)
        await talk(address, [b"GET /jobs/mutate HTTP/1.1\r\nHost: a\r\n\r\n"], replies=1)

    def counted(path: str, code: str) -> float | None:
        labels = {"path": path, "operation": "other", "outcome": "errored", "code": code}
        return worker.metrics.registry.get_sample_value("pumice_admission_reviews_total", labels)

    assert counted("other", "404") == 1
    assert counted("/jobs/mutate", "405") == 1
