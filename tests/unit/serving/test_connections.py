"""Connections that a client opens or resets at the moment at which the server closes."""

import asyncio
import socket
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import cast

import pytest
from aiohttp import web

from pumice.embedded import EmbeddedCluster
from pumice.serving.connections import Connections, HttpConnection, HttpLimits
from pumice.serving.http_server import HttpServer

_RESET = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which `close` resets a connection."""


class _ClosesAfterReset(asyncio.Protocol):
    """Closes the connection as soon as bytes arrive; the client has reset it by then."""

    def __init__(self, client: socket.socket) -> None:
        self.error: OSError | None = None
        self.closed = asyncio.Event()
        self._client = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, _: bytes) -> None:
        self._client.close()
        try:
            self._transport.close()
        except OSError as error:
            self.error = error

    def connection_lost(self, _: Exception | None) -> None:
        self.closed.set()


async def _reset_while_closing() -> OSError | None:
    """On asyncio's own event loop; uvloop shuts a socket down later."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    accepted.setblocking(False)
    http = _ClosesAfterReset(client)
    connections = Connections(HttpLimits(), lambda _: None)
    loop = asyncio.get_running_loop()
    await loop.connect_accepted_socket(lambda: HttpConnection(connections, http), accepted)
    client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(10):
        await http.closed.wait()
    assert not connections.open
    return http.error


def test_a_client_that_resets_the_connection_causes_no_error() -> None:
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        assert runner.run(_reset_while_closing()) is None


TURNS = range(4)
"""Of the event loop between the connection of a client and the end of the server."""


async def _answer(_: web.BaseRequest) -> web.StreamResponse:
    return web.Response()


async def _server_closes(turns: int) -> None:
    server = HttpServer(_answer, HttpLimits())
    await server.open("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        for _ in range(turns):
            await asyncio.sleep(0)
        await server.close(0)
        _assert_closed(client)


async def _cluster_ends(turns: int) -> None:
    async with EmbeddedCluster([]) as cluster:
        port = int(cluster.url.rpartition(":")[2])
        client = socket.create_connection(("127.0.0.1", port), timeout=10)
        for _ in range(turns):
            await asyncio.sleep(0)
    with client:
        _assert_closed(client)


def _assert_closed(client: socket.socket) -> None:
    with suppress(ConnectionResetError):  # it was not accepted
        assert client.recv(1) == b""


@pytest.mark.parametrize("end", [_server_closes, _cluster_ends])
def test_no_connection_is_left_open_that_is_accepted_while_the_server_closes(
    end: Callable[[int], Coroutine[None, None, None]],
) -> None:
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        for turns in TURNS:
            runner.run(end(turns))
