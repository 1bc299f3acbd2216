"""Connections to the API server that are used again: a TLS handshake takes both sides longer than most requests."""

from __future__ import annotations

import http.client
import ssl
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

REQUEST_SECONDS = 60
IDLE_SECONDS = 30.0
"""A connection that was idle for longer is not used again: kube-apiserver closes one after 90 seconds."""


class Connections:
    """Connections to one server, of which each carries one request at a time; any thread may ask.

    Args:
        url: `https://HOST:PORT`.
        ca: Path of the CA certificate that signed the server's.
    """

    def __init__(self, url: str, ca: Path) -> None:
        self._address = urlsplit(url).netloc
        self._context = ssl.create_default_context(cafile=str(ca))
        self._idle: deque[tuple[float, http.client.HTTPSConnection]] = deque()

    def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """Send a request.

        Returns:
            The status code and the body of the answer.

        Raises:
            OSError: The server could not be reached, or closed the connection.
        """
        connection = self._connection()
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            answer = response.status, response.read()
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append((time.monotonic(), connection))
        return answer

    def close(self) -> None:
        """Close the connections that are idle."""
        while self._idle:
            self._idle.pop()[1].close()

    def _connection(self) -> http.client.HTTPSConnection:
        try:
            since, connection = self._idle.pop()
        except IndexError:
            pass
        else:
            if time.monotonic() - since < IDLE_SECONDS:
                return connection
            connection.close()
            self.close()  # the others were idle for longer
        return http.client.HTTPSConnection(
            self._address, timeout=REQUEST_SECONDS, context=self._context
        )
