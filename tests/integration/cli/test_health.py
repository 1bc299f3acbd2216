"""The health and metrics ports of controller and scheduler have the limits of the webhook's."""

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from pumice.cli.processes.components import serving_health
from pumice.serving.connections import HttpLimits
from tests.integration.webhook.raw_http import connected, talk

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


@asynccontextmanager
async def health(limits: HttpLimits | None = None) -> AsyncIterator[str]:
    """A health server, and where it answers."""
    checks = {"caches": lambda: "pods: not synced yet"}
    served = serving_health(0, CollectorRegistry(), checks, host="127.0.0.1", limits=limits)
    async with served as port:
        yield f"127.0.0.1:{port}"


async def test_probes_are_answered_and_other_requests_get_json_errors() -> None:
    async with health() as address, aiohttp.ClientSession(f"http://{address}") as client:
        expected = {
            ("GET", "/healthz"): 200,
            ("HEAD", "/healthz"): 200,
            ("GET", "/readyz"): 503,
            ("GET", "/metrics"): 200,
            ("POST", "/metrics"): 405,
            ("GET", "/jobs/validate"): 404,
        }
        for (method, path), status in expected.items():
            async with client.request(method, path) as answer:
                assert answer.status == status, path
                assert answer.headers["Server"] == "pumice"
                if status in (404, 405):
                    assert (await answer.json())["code"] == status


async def test_a_probe_comes_through_however_many_connections_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit is 1,000, and fewer where the process may not have as many descriptors."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64 + 5, 64 + 5))
    async with health() as address, AsyncExitStack() as stack:
        held = []
        for _ in range(5):
            reader = await stack.enter_async_context(connected(address, HEALTH))
            assert (await asyncio.wait_for(reader.readline(), 20)).startswith(b"HTTP/1.1 200 ")
            held.append(reader)
        (reply,) = await talk(address, [HEALTH], replies=1)
        assert reply.status == 200
        with suppress(ConnectionError):
            await asyncio.wait_for(held[0].read(), 20)
        assert held[0].at_eof() or held[0].exception() is not None
        assert not held[1].at_eof()


@pytest.mark.parametrize("sent", [b"", HEALTH[:10]], ids=["nothing", "half a head"])
async def test_clients_that_do_not_send_their_request_are_disconnected(sent: bytes) -> None:
    async with health(HttpLimits(first_byte_seconds=0.1, head_seconds=0.1)) as address:
        assert await talk(address, [sent], seconds=20) == []
