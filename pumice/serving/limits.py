"""Limits of connections: how many may be open, and how long each may wait."""

import logging
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["CONNECTIONS", "KEEPALIVE_SECONDS", "CrowdLog", "HttpLimits", "affordable"]

logger = logging.getLogger(__name__)

_SPARE_DESCRIPTORS = 64
"""File descriptors for logs, files and connections to the API server."""

CONNECTIONS = 1000
"""How many connections may be open on a port."""

KEEPALIVE_SECONDS = 120.0
"""How long an idle connection is kept. kube-apiserver closes idle connections after 90 s; if the webhook closed them first,
a review could be on its way."""

_LOG_SECONDS = 60.0
"""The log says at most this often that connections were closed."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits of a server.

    Attributes:
        connections: How many connections may be open, TLS handshakes included; for a further one, the one that has
            waited longest is closed.
        first_byte_seconds: How long a TLS handshake and the first byte on a connection may take.
        head_seconds: How long the head of a request may take from its first byte.
        idle_seconds: How long no request must arrive before a closing server closes its connections.
    """

    connections: int = CONNECTIONS
    first_byte_seconds: float = 5.0
    head_seconds: float = 30.0
    idle_seconds: float = 0.25


class CrowdLog:
    """Counts connections that are closed because there are too many, and logs them once a minute."""

    def __init__(
        self,
        limit: int,
        dropped: Callable[[str], None],
        *,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """A log for a limit; `dropped` counts the connections that are closed, by reason."""
        self._limit = limit
        self._dropped = dropped
        self._seconds = seconds
        self._logged = float("-inf")
        self._unlogged = 0

    def note(self) -> None:
        """Note that a connection is closed."""
        self._dropped("crowded")
        self._unlogged += 1
        now = self._seconds()
        if now - self._logged >= _LOG_SECONDS:
            text = "the limit of %d connections is reached; %d connections were closed since this was last logged"
            logger.warning(text, self._limit, self._unlogged)
            self._logged, self._unlogged = now, 0


def affordable(limit: int, listeners: int) -> int:
    """The connection limit of each of some listeners, given the limit of file descriptors.

    Without a free descriptor the kernel refuses clients, and neither metrics nor logs show it.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return limit
    return max(1, min(limit, (soft - _SPARE_DESCRIPTORS) // listeners))
