"""Ports for the servers that tests start as processes: nobody else is given them."""

from __future__ import annotations

import atexit
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import islice

_FIRST, _END = 15_000, 32_000
"""Below the ports that systems hand out by themselves: 32768 and more on Linux, 49152 on others."""
_BLOCK = 100


def free_port() -> int:
    """A port for this process alone; it is not given again.

    Raises:
        RuntimeError: There are no more.
    """
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Some of them.

    Raises:
        RuntimeError: There are no more.
    """
    with _one_at_a_time:
        found = list(islice(_PORTS, count))
    if len(found) < count:
        raise RuntimeError(f"no free ports left from {_FIRST} to {_END}")
    return found


def _ports() -> Iterator[int]:
    """Ports of the blocks that are ours, because we listen on the first of each."""
    for first in range(_FIRST, _END, _BLOCK):
        guard = socket.socket()
        atexit.register(guard.close)
        try:
            guard.bind(("127.0.0.1", first))
            guard.listen()
        except OSError:
            continue
        yield from filter(_is_free, range(first + 1, first + _BLOCK))


def _is_free(port: int) -> bool:
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True


_PORTS = _ports()
_one_at_a_time = threading.Lock()
