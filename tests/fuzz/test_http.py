"""Every connection is answered, unless the head of its request does not arrive: no hang and no 5xx."""

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest
import uvloop
from hypothesis import settings

from pumice.webhook.server import FileCertificates, ServerSettings
from tests.fuzz.corpus import corpus
from tests.fuzz.mutations import mangled
from tests.integration.webhook.raw_http import post, talk
from tests.integration.webhook.serving import Pair, offline, running
from tests.kit.waiting import until

CONNECTIONS = 6 * min(100, settings().max_examples)
AT_ONCE = 50
IMPATIENT = ServerSettings(
    drain_seconds=0, shutdown_seconds=2, read_seconds=1.0, quiet_seconds=100.0
)
DEADLINE_SECONDS = 60.0
"""Long enough for a busy machine, as `read_seconds` is; a server that waited for more than that would take longer."""

CLOSED = 0
"""Stands for the status where the head of a request did not arrive whole."""

TUNNEL = -1
"""Stands for the status where a CONNECT, which asks for a tunnel, was closed while its body was still being sent."""

Run = Callable[[Coroutine[Any, Any, Counter[int]]], Counter[int]]

METHODS = (
    b"GET",
    b"PUT",
    b"OPTIONS",
    b"CONNECT",
    b"TRACE",
    b"post",
    b"P\xd6ST",
    b"",
    b"PRI",
    b"G" * 9000,
)
TARGETS = (
    b"/", b"*", b"", b"/jobs", b"/jobs/mutate/", b"//jobs/mutate", b"/../etc/passwd", b"/%00", b"/%ff", b"/%", b"/\xff", b"/?timeout=%",
    b"/jobs/validate?timeout=1s", b"/jobs/validate?timeout=-1s", b"/jobs/validate?timeout=1&timeout=x", b"/jobs/validate?timeout=1ns",
    b"/pods/mutate?timeout=99999999999999999999h", b"/pods/mutate?%=&&=", b"http://a/pods/mutate", b"http://[::1/", b"a:1", b"/metrics",
    b"/readyz?verbose", b"/" + b"a" * 9000, b"/jobs%2Fvalidate", b"/jobs/validate#f", b"/ /",
)  # fmt: skip
VERSIONS = (
    b"HTTP/1.0",
    b"HTTP/0.9",
    b"HTTP/2.0",
    b"HTTP/1.2",
    b"http/1.1",
    b"HTTP/1",
    b"",
    b"HTTP/1.1 ",
    b"ICY/1.1",
)
HEADERS = (
    b"Content-Length: 0", b"Content-Length: 5", b"Content-Length: +5", b"Content-Length: 5, 5", b"Content-Length: \xb2", b"content-length:",
    b"Content-Length: 99999999999999999999", b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: x",
    b"Content-Encoding: gzip", b"Content-Encoding: deflate", b"Content-Encoding: br", b"Content-Encoding: zstd", b"Content-Encoding: x",
    b"Content-Type: text/plain", b"Content-Type: \xff", b"Content-Type: application/json; charset=utf-16", b"Content-Type:",
    b"Connection: close", b"Connection: keep-alive", b"Connection: upgrade", b"Connection: \x01", b"Upgrade: websocket", b"Upgrade: h2c",
    b"Expect: 100-continue", b"Expect: the unexpected", b"Host: a", b"Host:", b"Host: \xff", b"X", b": a", b" folded", b"\tfolded", b"X : a",
    b"X: \x00", b"X: " + b"a" * 9000, b"Cookie: =;=;=", b"Sec-WebSocket-Key1: a", b"Range: bytes=0-", b"If-None-Match: *", b"Date: never",
    b"\r", b"X: a\nY: b", b"X: a\rY: b",
)  # fmt: skip


def request_of(random: Random) -> list[bytes]:
    """A request, in a few pieces, with something wrong with it."""

    def likely(share: float) -> bool:
        return random.random() < share

    real = random.choice(corpus())
    body = real.body if likely(0.8) else mangled(random, real.body, [real.body])
    extra = random.sample(HEADERS, random.choice((0, 0, 0, 1, 1, 2, 3)))
    lengths = 0, 1, len(body) - 1, len(body) + 1, 10**9, 10**9
    length = random.choice(lengths) if likely(0.2) else None
    sent = post(real.path, body, *extra, length=length)
    if likely(0.2):
        sent = sent.replace(b"POST", random.choice(METHODS), 1)
    if likely(0.2):
        sent = sent.replace(real.path.encode(), random.choice(TARGETS), 1)
    if likely(0.1):
        sent = sent.replace(b"HTTP/1.1", random.choice(VERSIONS), 1)
    if likely(0.1):
        sent = chunked(random, real.path, body)
    if likely(0.25):
        sent = mangled(random, sent, [real.body])
    if likely(0.05):
        sent = sent[: random.randrange(len(sent) + 1)]
    if likely(0.05):
        sent *= 2
    cuts = sorted(random.randrange(len(sent) + 1) for _ in range(random.choice((0, 0, 0, 1, 2))))
    return [
        part
        for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)
        if (part := sent[start:end])
    ]


def chunked(random: Random, path: str, body: bytes) -> bytes:
    """The request in chunks, most of which are right."""
    head = post(path, b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    size = random.choice((1, 7, 500, 10**6))
    parts = [body[start : start + size] for start in range(0, min(len(body), 50 * size), size)]
    told = [len(each) if random.random() < 0.99 else len(each) + 1 for each in parts]
    return (
        head
        + b"".join(b"%x\r\n%b\r\n" % pair for pair in zip(told, parts, strict=True))
        + b"0\r\n\r\n"
    )


async def answered(seed: str, pair: Pair | None) -> Counter[int]:
    """Send requests on as many connections, and count the statuses of the first answers.

    Args:
        seed: The same seed makes the same requests.
        pair: For TLS; plain HTTP when None.
    """
    random, statuses = Random(seed), Counter[int]()
    files = FileCertificates(pair.certificate, pair.key) if pair is not None else None
    trusting = pair.trusting() if pair is not None else None
    places = asyncio.Semaphore(AT_ONCE)

    async def one(address: str, number: int, parts: list[bytes]) -> None:
        async with places:
            try:
                replies = await talk(
                    address, parts, replies=1, tls=trusting, seconds=DEADLINE_SECONDS
                )
                assert all(each.status < 500 for each in replies), replies
            except Exception as error:
                error.add_note(f"seed {seed}, connection {number}, {parts!r:.3000}")
                raise
            closed = TUNNEL if parts[0].startswith(b"CONNECT ") else CLOSED
            statuses[replies[0].status if replies else closed] += 1

    worker = offline(settings=IMPATIENT, certificates=files)
    async with running(worker) as address:
        async with asyncio.TaskGroup() as group:
            for number in range(CONNECTIONS):
                parts = request_of(random)
                if parts:
                    group.create_task(one(address, number, parts))
        last = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
        (reply,) = await talk(address, [last], replies=1, tls=trusting)
        assert reply.status == 200
        await until(lambda: not worker.listener.connections)
    name, reason = "pumice_admission_connections_dropped_total", {"reason": "slow"}
    slow = worker.metrics.registry.get_sample_value(name, reason)
    assert statuses[CLOSED] <= (slow or 0)
    assert statuses[TUNNEL] < 0.01 * CONNECTIONS
    return statuses


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_every_connection_with_a_whole_head_is_answered(
    run: Run, tls: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    statuses = run(answered(f"{run.__module__}, {tls}", Pair(tmp_path) if tls else None))
    assert set(statuses) >= {200, 400, 404, 405, 408, 413, 415}
    assert statuses.total() > 0.95 * CONNECTIONS
    assert statuses[CLOSED] < 0.02 * CONNECTIONS
    assert statuses[200] > 0.1 * CONNECTIONS
    assert not [each for each in caplog.records if each.exc_info], caplog.text
    gc.collect()  # what has not been closed complains of it now
