"""A client that breaks off leaves nothing behind, and does not go unseen.

The collector looks for circles seldom, so what such a client has sent must go without it.
"""

import asyncio
import gc
import ssl
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest
from aiohttp import StreamReader, web

from pumice.webhook.server import FileCertificates, ServerSettings, WebhookWorker
from tests.integration.webhook.raw_http import post, talk
from tests.integration.webhook.serving import Pair, offline, running
from tests.kit.builders import job
from tests.kit.waiting import until
from tests.unit.webhook.reviewing import request, review

PATH = "/jobs/validate"
BROKEN_OFF = post(PATH, b" " * 1_000_000, length=2_000_000)
CHUNKS = BROKEN_OFF.partition(b"Content-Length")[0] + b"Transfer-Encoding: chunked\r\n\r\n"
WAYS = {
    "in a body": [BROKEN_OFF],
    "in a chunk": [CHUNKS + b"%x\r\n" % 2_000_000 + b" " * 1_000_000],
    "in what is not wanted": [BROKEN_OFF.replace(b"application/json", b"text/plain")],
    "in a head": [BROKEN_OFF[:40]],
    "after a review": [post(PATH, review(request(PATH, job())))],
}
TIMES = 10

Place = tuple[WebhookWorker, str, ssl.SSLContext | None]


@pytest.fixture(params=["plain", "tls"])
async def place(request: pytest.FixtureRequest, pair: Pair) -> AsyncIterator[Place]:
    """A worker, where it answers, and what to trust it with."""
    settings = ServerSettings(drain_seconds=0, shutdown_seconds=2, read_seconds=0.1)
    tls = request.param == "tls"
    files = FileCertificates(pair.certificate, pair.key) if tls else None
    worker = offline(settings=settings, certificates=files)
    async with running(worker) as address:
        yield worker, address, pair.trusting() if tls else None


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Nobody looks for circles."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


def left() -> Counter[str]:
    """What there is of connections and their requests."""
    kinds = (web.RequestHandler, web.BaseRequest, StreamReader)
    found = (each for each in gc.get_objects() if isinstance(each, kinds))
    return Counter(type(each).__name__ for each in found)


async def break_off(place: Place, parts: list[bytes], replies: int = 0) -> None:
    """Send something and go, as a process does that is killed."""
    worker, address, tls = place
    await talk(address, parts, tls=tls, replies=replies)
    await until(lambda: not worker.listener.connections)
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize("parts", WAYS.values(), ids=WAYS)
@pytest.mark.usefixtures("uncollected")
async def test_nothing_is_left_of_a_client_that_breaks_off(
    place: Place, parts: list[bytes]
) -> None:
    await break_off(place, parts)
    before, bytes_before = left(), tracemalloc.get_traced_memory()[0]
    for _ in range(TIMES):
        await break_off(place, parts)
    # aiohttp reads on for up to two seconds after an answer to a body that did not arrive.
    await until(lambda: left() - before == Counter())
    assert tracemalloc.get_traced_memory()[0] - bytes_before < 500_000


@pytest.mark.usefixtures("uncollected")
async def test_nothing_is_left_of_a_body_that_did_not_arrive(place: Place) -> None:
    parts = [BROKEN_OFF]
    await break_off(place, parts, replies=1)
    before, bytes_before = left(), tracemalloc.get_traced_memory()[0]
    for _ in range(TIMES):
        await break_off(place, parts, replies=1)
    # aiohttp reads on for up to two seconds after an answer to a body that did not arrive.
    await until(lambda: left() - before == Counter())
    assert tracemalloc.get_traced_memory()[0] - bytes_before < 500_000
