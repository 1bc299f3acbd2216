"""uvloop's event loop, in which a file descriptor has one owner.

A connection that is created from a socket object has two owners in uvloop 0.21 to 0.23: libuv closes the descriptor when the
connection breaks, and the socket object closes the same number again, later. If the connection breaks just after it was created, as
all do while an API server is killed, uvloop tells the socket object nothing about it. The second close then hits whatever got the
number meanwhile, in any thread. If that is another connection of the loop, libuv cannot register its descriptor and calls
`abort()`: the process ends with SIGABRT and logs nothing. aiohttp creates all its connections from socket objects.

See https://github.com/MagicStack/uvloop/issues/645 and https://github.com/MagicStack/uvloop/issues/738: what was done about them covers
connections that break before `connection_made`.
"""

import asyncio
import os
import socket
from typing import Any, cast

import uvloop


class EventLoop(uvloop.Loop):
    """The event loop of the components."""

    async def create_connection(
        self, *given: Any, sock: socket.socket | None = None, **options: Any
    ) -> Any:
        """Connect to a server; a socket object is closed when its connection is.

        Raises:
            OSError: The connection failed.
        """
        if sock is None:
            return await super().create_connection(*given, **options)
        connected = cast("socket.socket", _ConnectedSocket(sock))
        try:
            made = await super().create_connection(*given, sock=connected, **options)
        except BaseException:
            sock.close()
            raise
        transport = cast("asyncio.BaseTransport", made[0])
        if transport.is_closing():
            sock.close()
        return made


class _ConnectedSocket:
    """What uvloop asks a socket object for. libuv gets a descriptor of its own, which it alone closes."""

    def __init__(self, sock: socket.socket) -> None:
        self.family = sock.family
        self.type = sock.type
        self._sock = sock

    def setblocking(self, flag: bool) -> None:
        self._sock.setblocking(flag)

    def fileno(self) -> int:
        """The descriptor for libuv; called once."""
        return os.dup(self._sock.fileno())

    def detach(self) -> None:
        """Called when libuv has closed its descriptor before the connection was made."""
        self._sock.close()

    def close(self) -> None:
        """Called when libuv has closed its descriptor."""
        self._sock.close()
