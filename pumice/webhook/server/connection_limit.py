"""The limit of open connections, and a log line when it is reached."""

import logging
import resource
import time
from collections.abc import Callable

__all__ = ["ConnectionLimit", "affordable"]

logger = logging.getLogger(__name__)

_SPARE_DESCRIPTORS = 64
"""File descriptors for logs, files and connections to the API server."""

_LOG_SECONDS = 60.0
"""The log says at most this often that connections were closed."""


class ConnectionLimit:
    """Decides whether a new connection is accepted.

    Attributes:
        limit: Number of connections that may be open.
    """

    def __init__(
        self,
        limit: int,
        dropped: Callable[[str], None],
        *,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """A limit; `dropped` counts the connections that are closed, by reason."""
        self.limit = limit
        self._dropped = dropped
        self._seconds = seconds
        self._logged = float("-inf")
        self._unlogged = 0

    def accepts(self, connections: int) -> bool:
        """Whether one more connection is accepted beside those that are open; counts and logs if not."""
        if connections < self.limit:
            return True
        self._dropped("crowded")
        self._unlogged += 1
        now = self._seconds()
        if now - self._logged >= _LOG_SECONDS:
            text = "the limit of %d connections is reached; %d new connections were closed since this was last logged"
            logger.warning(text, self.limit, self._unlogged)
            self._logged, self._unlogged = now, 0
        return False


def affordable(limit: int, listeners: int) -> int:
    """The limit of connections for each of some listeners, as far as file descriptors allow it.

    Without a free descriptor the kernel refuses clients, and neither metrics nor logs show it.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return limit
    return max(1, min(limit, (soft - _SPARE_DESCRIPTORS) // listeners))
