"""Sockets that notice when the other side has silently gone.

A watch may be silent for minutes while all is well, so silence says nothing. When the machine of the
API server dies, or a firewall forgets the connection, no packet tells either; kernel probes do, within
about a minute.
"""

import socket
from typing import Any

__all__ = ["probing_socket"]

IDLE_SECONDS = 30
INTERVAL_SECONDS = 10
PROBES = 3

_OPTIONS = (
    ("TCP_KEEPIDLE", IDLE_SECONDS),
    ("TCP_KEEPINTVL", INTERVAL_SECONDS),
    ("TCP_KEEPCNT", PROBES),
    # The same bound for data that was sent and never acknowledged, in milliseconds.
    ("TCP_USER_TIMEOUT", (IDLE_SECONDS + INTERVAL_SECONDS * PROBES) * 1000),
)


def probing_socket(address: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
    """Make a socket for one of `getaddrinfo`'s addresses, with keep-alive probes on."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS:
        if hasattr(socket, name):  # not every system has every one
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
