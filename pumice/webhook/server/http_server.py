"""An HTTP server with limits, for any handler of requests.

aiohttp reads requests and writes responses. Its server does not limit connections, and it waits for the first byte and
for the rest of a request head as long as for the next request of an idle connection. An asyncio protocol in front of
aiohttp's own adds these limits: it sees when bytes arrive, and the server tells it when aiohttp calls the handler.

Requests that are not HTTP get aiohttp's own answer, status 400 with a text. A connection that does not send its request
in time is closed without an answer.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

from aiohttp import hdrs, web
from aiohttp.http import HttpProcessingError

from pumice.webhook.server.connection_limit import ConnectionLimit

__all__ = ["Handler", "HttpLimits", "HttpServer"]

Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]

logger = logging.getLogger(__name__)

_BACKLOG = 512
"""Connections that the kernel may queue while reviews are judged."""

_BUFFER = 1 << 16
"""Bytes that are read ahead of a handler; most reviews fit, and a thousand connections need 64 MiB at most."""

_LINGER_SECONDS = 2.0
"""How long bytes are read and ignored after the last answer of a connection. Closing a connection with unread bytes
resets it, and the client may lose the answer."""

_LINGER_QUIET_SECONDS = 0.5
"""How long that lasts if no more bytes arrive."""

_LINGER_BYTES = 16 * 1024 * 1024
"""How many bytes are read and ignored at most."""

_POLL_SECONDS = 0.02
"""How often draining looks for open requests."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits of a server.

    Attributes:
        connections: How many connections may be open; further ones are closed.
        first_byte_seconds: How long a TLS handshake and the first byte on a connection may take.
        head_seconds: How long the head of a request may take from its first byte.
        keepalive_seconds: How long an idle connection is kept.
        idle_seconds: Closing the server ends when no request came for so long.
    """

    connections: int
    first_byte_seconds: float
    head_seconds: float
    keepalive_seconds: float
    idle_seconds: float


class HttpServer:
    """Serves a handler on a port.

    Attributes:
        port: The port, once it is open.
    """

    def __init__(
        self, handler: Handler, limits: HttpLimits, dropped: Callable[[str], None]
    ) -> None:
        """Describe a server. The handler must not raise.

        `dropped` counts connections that are closed without an answer, by reason: `crowded` (above the limit), `quiet`
        (no byte arrived), `slow` (the head of a request did not arrive).
        """
        self.port = 0
        self.limits = limits
        self.dropped = dropped
        self._limit = ConnectionLimit(limits.connections, dropped)
        self._handler = handler
        self._connections: set[_Connection] = set()
        self._draining = False
        self._http: web.Server | None = None
        self._listening: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._connections)

    async def open(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Listen on an address and a port, 0 for a free one; by plain HTTP without `tls`.

        Raises:
            OSError: The port is taken.
        """
        self._http = http = web.Server(
            self._answer,
            keepalive_timeout=self.limits.keepalive_seconds,
            lingering_time=_LINGER_SECONDS,
            read_bufsize=_BUFFER,
            auto_decompress=False,
            access_log=None,
            logger=_aiohttp_logger(),
        )
        seconds = self.limits.first_byte_seconds if tls is not None else None
        self._listening = await asyncio.get_running_loop().create_server(
            lambda: _Connection(self, http()),
            host,
            port,
            ssl=tls,
            ssl_handshake_timeout=seconds,
            ssl_shutdown_timeout=seconds,
            backlog=_BACKLOG,
        )
        self.port = self._listening.sockets[0].getsockname()[1]

    def start_draining(self) -> None:
        """From now on close each connection after its next response; new connections are accepted."""
        self._draining = True

    async def close(self, seconds: float) -> None:
        """Accept no connections, wait until all requests are answered, and close all connections.

        Clients may choose an idle connection until they learn that it is closed, and aiohttp ignores new requests once
        it shuts down. So this waits until no request has come for a moment, but not longer than so many seconds.
        """
        if self._http is None or self._listening is None:
            return
        self._draining = True
        self._listening.close()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._idle(self._http)
        finally:
            await self._http.shutdown(1.0)
            for connection in tuple(self._connections):
                connection.close()

    async def _idle(self, http: web.Server) -> None:
        now = asyncio.get_running_loop().time
        since, count = now(), http.requests_count
        while now() - since < self.limits.idle_seconds:
            await asyncio.sleep(_POLL_SECONDS)
            if http.requests_count != count or any(each.busy for each in self._connections):
                since, count = now(), http.requests_count

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        protocol = request.transport.get_protocol() if request.transport is not None else None
        connection = protocol if isinstance(protocol, _Connection) else None
        if connection is not None:
            connection.phase = _Phase.HANDLING
        response = await self._handler(request)
        response.headers[hdrs.SERVER] = "pumice"  # aiohttp's default names versions
        if self._draining:
            response.force_close()
        if connection is not None and request.keep_alive and response.keep_alive is not False:
            connection.phase = _Phase.IDLE
        return response

    def opened(self, connection: "_Connection") -> bool:
        """Whether a new connection is accepted."""
        if not self._limit.accepts(len(self._connections)):
            return False
        self._connections.add(connection)
        return True

    def closed(self, connection: "_Connection") -> None:
        """A connection is closed."""
        self._connections.discard(connection)


class _Phase(Enum):
    """What a connection is doing."""

    UNUSED = "no byte has arrived"
    HEAD = "the head of a request arrives"
    HANDLING = "a request is answered"
    IDLE = "the last response kept the connection open"
    LINGERING = "aiohttp has closed the connection"


_DROPPED = {_Phase.UNUSED: "quiet", _Phase.HEAD: "slow"}
"""Phases that may end a connection without an answer, and the reason that is counted."""


class _Connection(asyncio.Protocol):
    """One connection: gives everything to aiohttp's protocol, and closes the connection if it waits for too long.

    When aiohttp closes the connection after an answer, what the client still sends is read and ignored for a moment.

    Attributes:
        phase: What the connection is doing.
    """

    def __init__(self, server: HttpServer, http: asyncio.Protocol) -> None:
        self.phase = _Phase.UNUSED
        self._server = server
        self._http: asyncio.Protocol | None = http
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = (
            None  # may end before the deadline, and is then set again
        )
        self._ignored = 0
        self._lingers_until = 0.0

    @property
    def busy(self) -> bool:
        """Whether a request arrives or is answered."""
        return self.phase in (_Phase.HEAD, _Phase.HANDLING)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of no class of asyncio.
        self._transport = transport = cast("asyncio.Transport", transport)
        if self._http is None or not self._server.opened(self):
            self._http = None
            transport.abort()
            return
        self._http.connection_made(cast("asyncio.Transport", _Lingering(transport, self._linger)))
        self._enter(_Phase.UNUSED, self._server.limits.first_byte_seconds)

    def data_received(self, data: bytes) -> None:
        if self._http is None:
            return
        if self.phase is _Phase.LINGERING:
            self._ignored += len(data)
            if self._ignored > _LINGER_BYTES:
                self.close()
            self._deadline = min(self._lingers_until, self._loop.time() + _LINGER_QUIET_SECONDS)
            return
        if self.phase is _Phase.UNUSED or self.phase is _Phase.IDLE:
            self._enter(_Phase.HEAD, self._server.limits.head_seconds)
        self._http.data_received(data)

    def eof_received(self) -> bool | None:
        return self._http.eof_received() if self._http is not None else None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._server.closed(self)
        if self._http is not None:
            self._http.connection_lost(exc)
        self._http = self._transport = None

    def pause_writing(self) -> None:
        if self._http is not None:
            self._http.pause_writing()

    def resume_writing(self) -> None:
        if self._http is not None:
            self._http.resume_writing()

    def close(self) -> None:
        """Close the connection now."""
        if self._transport is not None:
            self._transport.close()

    def _linger(self) -> None:
        """Close the connection when the client has closed it or has had the time to read the answer."""
        transport = self._transport
        if transport is None or transport.is_closing() or self.phase is _Phase.LINGERING:
            return
        if not self.busy:
            transport.close()
            return
        self._lingers_until = self._loop.time() + _LINGER_SECONDS
        self._enter(_Phase.LINGERING, _LINGER_QUIET_SECONDS)
        transport.resume_reading()
        if transport.can_write_eof():  # not with TLS
            transport.write_eof()

    def _enter(self, phase: _Phase, seconds: float) -> None:
        """Begin a phase that may take so many seconds."""
        self.phase = phase
        self._deadline = self._loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._check_time)

    def _check_time(self) -> None:
        self._timer = None
        if self.phase is not _Phase.LINGERING and self.phase not in _DROPPED:
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._check_time)
            return
        if (reason := _DROPPED.get(self.phase)) is not None:
            self._server.dropped(reason)
        self.close()


class _Lingering:
    """A transport that calls another function to close it."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport = transport
        self.close = close

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._transport, name)
        setattr(self, name, found)  # so that this is called once per method and connection
        return found


def _aiohttp_logger() -> logging.Logger:
    """Where aiohttp logs; mistakes of clients become one line without a traceback."""
    found = logging.getLogger(f"{__name__}.aiohttp")
    found.addFilter(_shortened)
    return found


def _shortened(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, HttpProcessingError | web.RequestPayloadError | ConnectionError):
        return True
    # aiohttp keeps the error with the connection, and the traceback would keep both until the next garbage collection.
    error.with_traceback(None)
    logger.info("a request cannot be read: %s", " ".join(str(error).split()))
    return False
