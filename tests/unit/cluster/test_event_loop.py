"""A connection that breaks at once closes its own descriptor and no other one, in the event loop of the components."""

import asyncio
import gc
import os
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import uvloop

from pumice.cluster.event_loop import EventLoop

RESET = struct.pack("ii", 1, 0)
"""Value of SO_LINGER with which closing resets the connection."""


def broken() -> socket.socket:
    """A connection that the server has reset."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        made = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        accepted.close()
    return made


class Aborting(asyncio.Protocol):
    """It gives its connection up as soon as it has it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "abort")
        transport.abort()


async def connect_plain(sock: socket.socket) -> None:
    await asyncio.get_running_loop().create_connection(Aborting, sock=sock)


async def connect_tls(sock: socket.socket) -> None:
    context = ssl.create_default_context()
    await asyncio.get_running_loop().create_connection(
        asyncio.Protocol, sock=sock, ssl=context, server_hostname="a"
    )


async def numbers_after(connect: Callable[[socket.socket], Awaitable[None]]) -> bool:
    """Whether descriptors that are opened after a connection broke stay open when its socket object is closed."""
    sock = broken()
    number = sock.fileno()
    with suppress(OSError):
        await connect(sock)
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(5)]
    assert number in opened, "the connection is still open"
    sock.close()
    del sock
    gc.collect()
    try:
        for each in opened:
            os.fstat(each)
    except OSError:
        return False
    finally:
        for each in opened:
            with suppress(OSError):
                os.close(each)
    return True


@pytest.mark.parametrize("connect", [connect_plain, connect_tls], ids=["plain", "tls"])
def test_a_number_is_closed_once(connect: Callable[[socket.socket], Awaitable[None]]) -> None:
    assert uvloop.run(numbers_after(connect), loop_factory=EventLoop)
