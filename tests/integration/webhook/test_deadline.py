"""The API server's `?timeout=`: an answer comes before it, also where the cluster does not answer."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from pumice.cluster.client import Client
from pumice.plugins import builtin
from pumice.webhook.server import ServerSettings, WebhookWorker
from pumice.webhook.settings import AdmissionSettings
from tests.builders import job, queue
from tests.integration.webhook.raw_http import post, talk
from tests.integration.webhook.serving import Raw, offline, running
from tests.unit.webhook.reviewing import UID, request, review

JSON = {"Content-Type": "application/json"}
PATH = "/jobs/validate"


@asynccontextmanager
async def mute() -> AsyncIterator[str]:
    """An API server that takes connections and never says anything; its URL."""
    ends = asyncio.Event()

    async def listen(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ends.wait()
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
        ends.set()


@asynccontextmanager
async def blind(*assignments: str, lookup_seconds: float = 60.0) -> AsyncIterator[str]:
    """A webhook whose caches have seen nothing, and whose API server does not answer."""
    settings = ServerSettings(drain_seconds=0, shutdown_seconds=2, lookup_seconds=lookup_seconds)
    async with mute() as url, Client.connect(server=url) as api:
        levels = AdmissionSettings.from_assignments(assignments)
        worker = WebhookWorker(api, builtin(), levels, settings)
        async with running(worker, only_ports=True) as address:
            yield address


async def ask(
    client: aiohttp.ClientSession, address: str, obj: Raw, query: str, path: str = PATH
) -> tuple[Raw, float]:
    """The response to a new object, and after how many seconds it came."""
    started = time.monotonic()
    url = f"http://{address}{path}{query}"
    async with client.post(url, data=review(request(path, obj)), headers=JSON) as answer:
        assert answer.status == 200
        response: Raw = (await answer.json())["response"]
        return response, time.monotonic() - started


async def test_what_cannot_be_told_in_time_is_refused_in_time(
    client: aiohttp.ClientSession,
) -> None:
    async with blind() as address:
        for query in ("?timeout=1s", "?timeout=0m1000ms&dryRun=true"):
            response, seconds = await ask(client, address, job(queue="new"), query)
            assert 0.5 < seconds < 1.0
            assert (response["uid"], response["allowed"]) == (UID, False)
            assert response["status"] == {
                "code": 504,
                "status": "Failure",
                "reason": "Timeout",
                "message": 'the API server did not say in time whether queue "new" exists, so this '
                "cannot be decided; try again",
            }
        below = queue("below", parent="new")
        response, seconds = await ask(client, address, below, "?timeout=1s", "/queues/validate")
        assert response["status"]["code"] == 504
        assert seconds < 1.0


@pytest.mark.parametrize(
    "query", ["", "?timeout=", "?timeout=soon", "?timeout=-1s", "?timeout=0", "?timeout=10", "?timeout=%ff",
              "?timeout=99999999999999h", "?timeout=30s", "?timeout=1h2h&timeout=x"],
)  # fmt: skip
async def test_a_timeout_that_says_nothing_of_use_leaves_the_bound_of_our_own(
    client: aiohttp.ClientSession, query: str
) -> None:
    async with blind(lookup_seconds=0.1) as address:
        response, seconds = await ask(client, address, job(), query)
        assert response["status"]["code"] == 504
        assert 0.1 <= seconds < 5.0


async def test_what_would_only_warn_is_admitted_at_once(client: aiohttp.ClientSession) -> None:
    async with blind("rule.JOB-QUEUE-MISSING=warn") as address:
        response, seconds = await ask(client, address, job(), "?timeout=10s")
        assert response["allowed"]
        assert "[JOB-QUEUE-MISSING]" in response["warnings"][0]
        assert seconds < 5.0


async def test_what_needs_no_look_is_not_held_up(client: aiohttp.ClientSession) -> None:
    async with blind() as address:
        response, _ = await ask(client, address, job(queue="new"), "?timeout=1s", "/jobs/mutate")
        assert response["allowed"]
        response, _ = await ask(client, address, queue("top"), "?timeout=1s", "/queues/validate")
        assert response["allowed"]


async def test_the_time_in_which_a_review_arrives_counts(client: aiohttp.ClientSession) -> None:
    """A review that arrives slowly has the less time left for a look."""
    body = review(request(PATH, job(queue="new")))
    async with blind() as address:
        started = time.monotonic()
        host, port = address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        whole = post(f"{PATH}?timeout=2s", body)
        writer.write(whole[:-10])
        await asyncio.sleep(0.8)
        writer.write(whole[-10:])
        answer = await asyncio.wait_for(reader.readuntil(b"try again"), 20)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert time.monotonic() - started < 2.0
        writer.close()
        await writer.wait_closed()


async def test_a_review_that_does_not_arrive_in_time_is_not_waited_for() -> None:
    async with running(offline()) as address:
        started = time.monotonic()
        sent = post(f"{PATH}?timeout=1s", b"{", length=1000)
        (reply,) = await talk(address, [sent], replies=1)
        assert reply.status == 408
        assert reply.json["message"] == "the review had not arrived whole after 0.75 s"
        assert time.monotonic() - started < 1.0
