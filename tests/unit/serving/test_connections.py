"""A connection that the client resets at the moment at which the server closes it."""

import asyncio
import socket
import struct
from typing import cast

from pumice.serving.connections import Connections, HttpConnection, HttpLimits

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
