"""The connections of an HTTP server: how many there are, how long they may wait, and how they close without losing an answer.

A connection counts from its acceptance. So TLS begins here (`start_tls`): a server that was given a TLS context would show a
connection after its handshake, and a client could hold any number of handshakes. When there are too many connections, the one that
has waited longest for its client makes room, in whatever way it does so: in the handshake, without a byte, idle after an answer, or
with a part of a request. What a client sends before a request is whole does not make it younger. Only a connection whose
request is being answered is never closed for another one.

aiohttp does not limit the number of connections, and it waits for the first byte and for the rest of a request head as
long as for the next request of an idle connection. And it closes a connection right after an answer: when the client
was still sending, unread bytes reset the connection, and the client may not see the answer. `HttpConnection` is a protocol
in front of aiohttp's own that adds the limits and reads on for a moment.
"""

import asyncio
import logging
import resource
import ssl
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar, cast

from aiohttp import web

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


T = TypeVar("T")

LINGER_SECONDS = 2.0
"""How long bytes are read and ignored after the last answer of a connection, at most."""

_LINGER_QUIET_SECONDS = 0.5
"""How long that lasts if no more bytes arrive."""

_LINGER_BYTES = 16 * 1024 * 1024
"""How many bytes are read and ignored at most."""


class Connections:
    """The open connections of a server.

    Attributes:
        open: The connections.
        accepts: Whether more may open. A TLS handshake may end after its server was closed.
        limits: What each may take.
        dropped: Counts connections that are closed without an answer, by reason.
    """

    def __init__(self, limits: HttpLimits, dropped: Callable[[str], None]) -> None:
        """No connection is open."""
        self.open: set[HttpConnection] = set()
        self.accepts = True
        self.limits = limits
        self.dropped = dropped
        self._crowd = CrowdLog(limits.connections, dropped)

    def add(self, connection: "HttpConnection") -> bool:
        """Add a connection, for which another one may be closed; False if the server is closed, or if all others are busy."""
        if not self.accepts:
            return False
        if len(self.open) >= self.limits.connections:
            self._crowd.note()
            waiting = [each for each in self.open if each.waits]
            if not waiting:
                return False
            longest = min(waiting, key=lambda each: each.since)
            self.open.discard(longest)  # `abort` ends in a later turn of the loop
            longest.abort()
        self.open.add(connection)
        return True


class Phase(Enum):
    """What a connection is doing."""

    HANDSHAKE = "TLS begins"
    UNUSED = "no byte has arrived"
    HEAD = "the head of a request arrives"
    HANDLING = "a request is answered"
    IDLE = "the last response kept the connection open"
    LINGERING = "aiohttp has closed the connection"


_DROPPED = {Phase.UNUSED: "quiet", Phase.HEAD: "slow"}
"""Phases that may end a connection without an answer, and the reason that is counted."""


class HttpConnection(asyncio.Protocol):
    """One connection: gives everything to aiohttp's protocol, and closes the connection if it waits for too long.

    When aiohttp closes the connection after an answer, what the client still sends is read and ignored for a moment.

    Attributes:
        phase: What the connection is doing.
        since: Since when, by the loop's clock.
        request: The request that is answered.
    """

    def __init__(
        self,
        connections: Connections,
        http: asyncio.Protocol,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """A connection that is about to open, one of the connections of a server; without TLS if None."""
        self.phase = Phase.UNUSED
        self.since = 0.0
        self.request: web.BaseRequest | None = None
        self._tls = tls
        self._handshake: asyncio.Task[None] | None = None
        self._early: list[bytes] = []
        self._connections = connections
        self._http: asyncio.Protocol | None = http
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._deadline = 0.0
        # The timer may end before the deadline and is then set again: most requests arrive long before.
        self._timer: asyncio.TimerHandle | None = None
        self._ignored = 0
        self._lingers_until = 0.0

    @property
    def busy(self) -> bool:
        """Whether a request arrives or is answered."""
        return self.phase in (Phase.HEAD, Phase.HANDLING)

    @property
    def waits(self) -> bool:
        """Whether the client is waited for; not while a whole request is answered."""
        return self.request is None or not self.request.content.is_eof()

    def enter(self, phase: Phase) -> None:
        """Begin a phase."""
        self.phase = phase
        self.since = self._loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin TLS, or let aiohttp serve the connection; close it if it may not open."""
        # uvloop's transports are of no class of asyncio.
        self._transport = raw = cast("asyncio.Transport", transport)
        self.since = self._loop.time()
        if not self._connections.add(self):
            self._http = None
            raw.abort()
        elif self._tls is None:
            self._serve(raw)
        else:
            self.phase = Phase.HANDSHAKE
            seconds = self._connections.limits.first_byte_seconds
            handshake = self._loop.start_tls(
                raw,
                self,
                self._tls,
                server_side=True,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=seconds,
            )
            # uvloop reads as soon as this method returns, and what it reads is for TLS.
            self._handshake = self._loop.create_task(self._secure(raw, _Begun(handshake)))

    async def _secure(
        self, raw: asyncio.Transport, handshake: "_Begun[asyncio.Transport | None]"
    ) -> None:
        """Let aiohttp serve the connection after the handshake."""
        transport: asyncio.Transport | None = None
        with suppress(OSError):  # of TLS, of time, or of the connection
            transport = await handshake
        if transport is None or self._transport is None or not self._connections.accepts:
            self._http = None
            raw.abort()
            self.connection_lost(None)
            return
        self._transport = transport
        self._serve(transport)
        for data in self._early:
            self.data_received(data)
        self._early.clear()

    def _serve(self, transport: asyncio.Transport) -> None:
        """Let aiohttp serve the connection."""
        assert self._http is not None
        self._http.connection_made(
            cast("asyncio.Transport", _ClosingTransport(transport, self._linger))
        )
        self._enter_for(Phase.UNUSED, self._connections.limits.first_byte_seconds)

    def data_received(self, data: bytes) -> None:
        """Give bytes to aiohttp, or ignore them after the last answer."""
        if self._http is None:
            return
        if self.phase is Phase.HANDSHAKE:  # they came with the end of the handshake
            self._early.append(data)
            return
        if self.phase is Phase.LINGERING:
            self._ignored += len(data)
            if self._ignored > _LINGER_BYTES:
                self.close()
            self._deadline = min(self._lingers_until, self._loop.time() + _LINGER_QUIET_SECONDS)
            return
        if self.phase is Phase.UNUSED or self.phase is Phase.IDLE:
            self._enter_for(Phase.HEAD, self._connections.limits.head_seconds)
        self._http.data_received(data)

    def eof_received(self) -> bool | None:
        """The client has closed its side of the connection."""
        return self._http.eof_received() if self._http is not None else None

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._connections.open.discard(self)
        if self._http is not None:
            self._http.connection_lost(exc)
        self._http = self._transport = None

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        if self._http is not None:
            self._http.pause_writing()

    def resume_writing(self) -> None:
        """The client has read what was written."""
        if self._http is not None:
            self._http.resume_writing()

    def close(self) -> None:
        """Close the connection now."""
        # A second `close` would make asyncio's TLS transports forget what `abort` needs.
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()

    def abort(self) -> None:
        """Close the connection now, also if the client does not close its side."""
        if self._transport is not None:
            self._transport.abort()

    def _linger(self) -> None:
        """Close the connection when the client has closed it or has had the time to read the answer."""
        transport = self._transport
        if transport is None or transport.is_closing() or self.phase is Phase.LINGERING:
            return
        if not self.busy:
            transport.close()
            return
        self._lingers_until = self._loop.time() + LINGER_SECONDS
        self._enter_for(Phase.LINGERING, _LINGER_QUIET_SECONDS)
        transport.resume_reading()
        if transport.can_write_eof():  # not with TLS
            with suppress(OSError):  # the client has reset the connection a moment ago
                transport.write_eof()

    def _enter_for(self, phase: Phase, seconds: float) -> None:
        """Begin a phase, with the seconds that it may take."""
        self.enter(phase)
        self._deadline = self._loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._check_time)

    def _check_time(self) -> None:
        self._timer = None
        if self.phase is not Phase.LINGERING and self.phase not in _DROPPED:
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._check_time)
            return
        if (reason := _DROPPED.get(self.phase)) is not None:
            self._connections.dropped(reason)
        self.close()


class _Begun(Generic[T]):
    """A coroutine whose first step is made at once; the rest is awaited."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._waits_for = coroutine.send(None)

    def __await__(self) -> Generator[Any, Any, T]:
        try:
            while True:
                try:
                    value = yield self._waits_for
                except BaseException as error:
                    self._waits_for = self._coroutine.throw(error)
                else:
                    self._waits_for = self._coroutine.send(value)
        except StopIteration as end:
            result: T = end.value
            return result


class _ClosingTransport:
    """A transport that calls another function to close it."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport = transport
        self.close = close

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._transport, name)
        setattr(self, name, found)  # so that this is called once per method and connection
        return found
