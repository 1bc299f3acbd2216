"""What is said of an API server that does not answer: the address, the cause, and no names of libraries."""

import re
import socket

import pytest
from aiohttp import web

from pumice.cluster.client import Client
from pumice.cluster.errors import Unavailable
from pumice.cluster.failures import CONNECTION_FAILED
from pumice.cluster.transport import Sockets
from tests.kit.http import serving

LIBRARIES = re.compile(r"aiohttp|httpx|Client\w+|Connector|asyncio|Errno|_ssl|ssl:|Connect call|\n")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def said(url: str) -> Unavailable:
    async with Client.connect(server=url, fail_fast=True) as client:
        with pytest.raises(Unavailable) as caught:
            await client.version()
    assert not LIBRARIES.search(str(caught.value))
    assert caught.value.message.startswith(f"cannot reach {url}: ")
    return caught.value


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_port_on_which_nothing_listens(host: str) -> None:
    error = await said(f"https://{host}:{free_port()}")
    assert error.reason == CONNECTION_FAILED
    assert error.message.endswith(": connection refused")


@pytest.mark.parametrize("address", ["foo:1", "ftp://x", "http://[x", "https://x:99999"])
async def test_what_is_no_address(address: str) -> None:
    assert "invalid address, expected http://HOST[:PORT]" in (await said(address)).message


async def test_a_server_that_speaks_another_protocol() -> None:
    async def closes(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async with serving(closes) as port:
        closed = await said(f"http://127.0.0.1:{port}")
        assert closed.message.endswith(": the server closed the connection")
        tls = await said(f"https://127.0.0.1:{port}")
        assert ": TLS: " in tls.message
        assert tls.reason == CONNECTION_FAILED


async def test_another_error_of_the_program_is_no_failed_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(self: Sockets, address: object) -> socket.socket:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(Sockets, "make", wrong)
    async with Client.connect(server=f"https://127.0.0.1:{free_port()}") as client:
        with pytest.raises(RuntimeError, match="a mistake"):
            await client.version()
