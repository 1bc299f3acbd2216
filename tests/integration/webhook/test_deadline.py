"""The API server's `?timeout=`: an answer comes before it, also where the cluster does not answer."""

import asyncio
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from pumice.api.kinds import QUEUE
from pumice.cluster.client import Client
from pumice.plugins import builtin
from pumice.plugins.other_owners import OwnerKey
from pumice.webhook.server import StateSource, WebhookWorker
from pumice.webhook.server.lookup import LiveLookup
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.settings import AdmissionSettings
from tests.integration.webhook.raw_http import post, talk
from tests.integration.webhook.serving import QUICK, Raw, offline, running
from tests.kit.builders import job, queue
from tests.unit.webhook.reviewing import UID, request, review

JSON = {"Content-Type": "application/json"}
PATH = "/jobs/validate"


@asynccontextmanager
async def mute() -> AsyncIterator[str]:
    """An API server that takes connections and never says anything but that there is no queue `gone`; its URL."""
    ends = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            if b"/queues/gone " in await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        await ends.wait()
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
        ends.set()


@asynccontextmanager
async def blind(*assignments: str, lookup_seconds: float = 60.0) -> AsyncIterator[str]:
    """A webhook whose caches have seen nothing, and whose API server does not answer."""
    settings = replace(QUICK, lookup_seconds=lookup_seconds)
    async with mute() as url, Client.connect(server=url) as api:
        levels = AdmissionSettings.from_assignments(assignments)
        worker = WebhookWorker(StateSource.of_cluster(api), builtin(), levels, settings)
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


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each look may take, in seconds: a busy machine adds nothing to that."""
    found: list[float] = []
    find = LiveLookup.find

    async def noted(
        self: LiveLookup, keys: Collection[OwnerKey], seconds: float, *, tree: bool = False
    ) -> dict[OwnerKey, Any]:
        found.append(seconds)
        return await find(self, keys, seconds, tree=tree)

    monkeypatch.setattr(LiveLookup, "find", noted)
    return found


async def test_what_cannot_be_told_in_time_is_refused_in_time(
    client: aiohttp.ClientSession, looks: list[float]
) -> None:
    async with blind() as address:
        for query in ("?timeout=1s", "?timeout=0m1000ms&dryRun=true"):
            response, seconds = await ask(client, address, job(queue="new"), query)
            look = looks.pop()
            assert 0.25 < look <= 0.75
            assert seconds >= look
            assert (response["uid"], response["allowed"]) == (UID, False)
            assert response["status"] == {
                "code": 504,
                "status": "Failure",
                "reason": "Timeout",
                "message": 'the API server did not say in time whether queue "new" exists, so this '
                "cannot be decided; try again",
            }
        below = queue("below", parent="new")
        response, _ = await ask(client, address, below, "?timeout=1s", "/queues/validate")
        assert response["status"]["code"] == 504
        assert looks.pop() <= 0.75


@pytest.mark.parametrize(
    "query", ["", "?timeout=", "?timeout=soon", "?timeout=-1s", "?timeout=0", "?timeout=10", "?timeout=%ff",
              "?timeout=99999999999999h", "?timeout=30s", "?timeout=1h2h&timeout=x"],
)  # fmt: skip
async def test_a_timeout_that_says_nothing_of_use_leaves_the_bound_of_our_own(
    client: aiohttp.ClientSession, query: str, looks: list[float]
) -> None:
    async with blind(lookup_seconds=0.1) as address:
        response, seconds = await ask(client, address, job(), query)
        assert response["status"]["code"] == 504
        assert looks == [0.1]
        assert seconds >= 0.1


async def test_only_what_was_not_answered_counts_as_late(caplog: pytest.LogCaptureFixture) -> None:
    metrics = ServerMetrics()
    keys = [(QUEUE, "", name) for name in ("gone", "slow")]
    async with mute() as url, Client.connect(server=url) as api:
        with pytest.raises(TimeoutError):
            await LiveLookup(api, metrics).find(keys, 0.5)
    name = "pumice_admission_queue_lookups_total"
    for result in ("missing", "failed"):
        assert metrics.registry.get_sample_value(name, {"result": result}) == 1
    assert caplog.messages == ["looking for Queue slow took more than 0.5 s"]


async def test_what_would_only_warn_is_admitted_at_once(
    client: aiohttp.ClientSession, looks: list[float]
) -> None:
    async with blind("rule.JOB-QUEUE-MISSING=warn") as address:
        response, _ = await ask(client, address, job(), "?timeout=10s")
        assert response["allowed"]
        assert "[JOB-QUEUE-MISSING]" in response["warnings"][0]
        assert looks == []


async def test_what_needs_no_look_is_not_held_up(client: aiohttp.ClientSession) -> None:
    async with blind() as address:
        response, _ = await ask(client, address, job(queue="new"), "?timeout=1s", "/jobs/mutate")
        assert response["allowed"]
        response, _ = await ask(client, address, queue("top"), "?timeout=1s", "/queues/validate")
        assert response["allowed"]


async def test_the_time_in_which_a_review_arrives_counts(looks: list[float]) -> None:
    """A review that arrives slowly has the less time left for a look."""
    body = review(request(PATH, job(queue="new")))
    async with blind() as address:
        host, port = address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        whole = post(f"{PATH}?timeout=2s", body, b"Expect: 100-continue")
        writer.write(whole[: -len(body)])
        await reader.readuntil(b"100 Continue\r\n\r\n")  # it has begun to wait for the body
        await asyncio.sleep(0.5)
        writer.write(body)
        answer = await asyncio.wait_for(reader.readuntil(b"try again"), 60)
        assert answer.startswith(b"HTTP/1.1 200 ")
        (look,) = looks
        assert look < 1.5 - 0.49
        writer.close()
        await writer.wait_closed()


async def test_a_review_that_does_not_arrive_in_time_is_not_waited_for() -> None:
    async with running(offline()) as address:
        sent = post(f"{PATH}?timeout=1s", b"{", length=1000)
        (reply,) = await talk(address, [sent], replies=1)
        assert reply.status == 408
        assert reply.json["message"] == "the review had not arrived whole after 0.75 s"
