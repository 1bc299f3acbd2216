"""Sockets that detect a lost peer, and that a session can close immediately.

A watch may be silent for minutes in normal operation. If the machine of the API server fails, or a firewall drops the
connection, no packet arrives either; keep-alive probes of the kernel detect that within about a minute.

A response that is not read to its end (each watch) closes its connection, and a TLS connection closes after an answer
of the peer. aiohttp does not wait for that, so a session keeps a list of its sockets.
"""

import asyncio
import socket
from contextlib import suppress
from typing import Any
from weakref import WeakSet

__all__ = ["Sockets", "probing_socket"]

IDLE_SECONDS = 30
INTERVAL_SECONDS = 10
PROBES = 3

CLOSE_SECONDS = 1.0
"""How long to wait for the event loop to close sockets that were shut down; it takes a few iterations."""

_OPTIONS = (
    ("TCP_KEEPIDLE", IDLE_SECONDS),
    ("TCP_KEEPINTVL", INTERVAL_SECONDS),
    ("TCP_KEEPCNT", PROBES),
    # The same bound for data that was sent and never acknowledged, in milliseconds.
    ("TCP_USER_TIMEOUT", (IDLE_SECONDS + INTERVAL_SECONDS * PROBES) * 1000),
)


def probing_socket(address: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
    """Create a socket for one address of `getaddrinfo`, with keep-alive probes."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS:
        if hasattr(socket, name):  # not every system has every one
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


class Sockets:
    """The sockets of a session, each with keep-alive probes."""

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def make(self, address: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
        """Create a socket for one address of `getaddrinfo`."""
        made = probing_socket(address)
        self._made.add(made)
        return made

    async def close(self) -> None:
        """Shut down the open sockets, and wait until their transports have closed them."""
        for each in self._open():
            with suppress(OSError):  # it was never connected, or is closed
                each.shutdown(socket.SHUT_RDWR)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._open():  # noqa: ASYNC110 - sockets tell nothing
                    await asyncio.sleep(0)

    def _open(self) -> list[socket.socket]:
        return [each for each in self._made if each.fileno() >= 0]
