"""An HTTP server with limits, for any handler of requests.

aiohttp reads requests and writes responses; `connections` adds limits. Requests that are not HTTP get aiohttp's own answer, status 400 with a text. A connection that does not send its request
in time is closed without an answer.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import msgspec
from aiohttp import hdrs, web
from aiohttp.http import HttpProcessingError

from pumice.api.fields import plain
from pumice.serving.connections import (
    KEEPALIVE_SECONDS,
    LINGER_SECONDS,
    Connections,
    HttpConnection,
    HttpLimits,
    Phase,
)

JSON = {"Content-Type": "application/json"}

SERVER = "pumice"
"""The header Server; aiohttp's default names versions."""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "Timeout",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    500: "InternalError",
    503: "ServiceUnavailable",
}

_MAX_MESSAGE = 512
"""Characters of a message; it may quote the request."""


class HttpError(Exception):
    """A request that is answered with an HTTP error instead of a review.

    Attributes:
        code: HTTP status.
        message: What is wrong and what was expected, in one line.
        headers: Headers beside the content type.
    """

    def __init__(self, code: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        """Describe the error."""
        # The request may hold line breaks and lone surrogates.
        self.message = plain(" ".join(message.split()))[:_MAX_MESSAGE]
        super().__init__(self.message)
        self.code = code
        self.headers = headers or {}

    def response(self) -> web.Response:
        """The error as a response."""
        status = {
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": _REASONS.get(self.code, "Unknown"),
            "code": self.code,
        }
        body = msgspec.json.encode(status)
        return web.Response(status=self.code, body=body, headers={**JSON, **self.headers})


Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
"""Answers a request; an answer that is sent in parts has ended."""

logger = logging.getLogger(__name__)

_BACKLOG = 512
"""Connections that the kernel may queue while reviews are judged."""

_BUFFER = 1 << 16
"""Bytes that are read ahead of a handler; most reviews fit, and a thousand connections need 64 MiB at most."""

_POLL_SECONDS = 0.02
"""How often draining looks for open requests."""

_CLOSE_SECONDS = 0.2
"""How long a client has to close its side of a TLS connection before the connection is aborted."""


class HttpServer:
    """Serves a handler on a port.

    Attributes:
        port: The port, once it is open.
    """

    def __init__(
        self,
        handler: Handler,
        limits: HttpLimits,
        dropped: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Describe a server.

        An `HttpError` that the handler raises is the answer; other errors become a status 500 without details.
        `dropped` counts connections that are closed without an answer, by reason: `crowded` (to stay within the limit), `quiet`
        (no byte arrived), `slow` (the head of a request did not arrive).
        """
        self.port = 0
        self._limits = limits
        self._handler = handler
        self._connections = Connections(limits, dropped)
        self._draining = False
        self._http: web.Server | None = None
        self._listening: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._connections.open)

    async def open(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Listen on an address and a port, 0 for a free one; by plain HTTP without `tls`.

        Raises:
            OSError: The port is taken.
        """
        self._http = http = web.Server(
            self._answer,
            keepalive_timeout=KEEPALIVE_SECONDS,
            lingering_time=LINGER_SECONDS,
            read_bufsize=_BUFFER,
            auto_decompress=False,
            access_log=None,
            logger=_aiohttp_logger(),
        )
        self._listening = await asyncio.get_running_loop().create_server(
            lambda: HttpConnection(self._connections, http(), tls), host, port, backlog=_BACKLOG
        )
        self.port = self._listening.sockets[0].getsockname()[1]

    def start_draining(self) -> None:
        """From now on close each connection after its next response; new connections are accepted."""
        self._draining = True

    async def close(self, seconds: float) -> None:
        """Accept no connections, wait until all requests are answered, and close all connections.

        Clients may choose an idle connection until they learn that it is closed, and aiohttp ignores new requests once
        it shuts down. So this waits until no request has come for a moment, but not longer than the given number of
        seconds.
        """
        if self._http is None or self._listening is None:
            return
        self._draining = True
        try:
            await stop_listening(self._listening)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._idle(self._http)
        finally:
            self._http.pre_shutdown()  # closes idle connections, which `shutdown` would wait for
            await self._http.shutdown(1.0)
            await self._close_connections()

    async def _close_connections(self) -> None:
        """Close all connections. Those whose client does not close its side are aborted, so that none outlives the event loop."""
        self._connections.accepts = False
        for close in (HttpConnection.close, HttpConnection.abort):
            for connection in tuple(self._connections.open):
                close(connection)
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    while self._connections.open:  # noqa: ASYNC110 - once in the life of a server
                        await asyncio.sleep(_POLL_SECONDS)

    async def _idle(self, http: web.Server) -> None:
        now = asyncio.get_running_loop().time
        since, count = now(), http.requests_count
        while now() - since < self._limits.idle_seconds:
            await asyncio.sleep(_POLL_SECONDS)
            if http.requests_count != count or any(each.busy for each in self._connections.open):
                since, count = now(), http.requests_count

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        protocol = request.transport.get_protocol() if request.transport is not None else None
        connection = protocol if isinstance(protocol, HttpConnection) else None
        if connection is not None:
            connection.request = request
            connection.enter(Phase.HANDLING)
        response: web.StreamResponse
        try:
            response = await self._handler(request)
        except HttpError as error:
            response = error.response()
        except Exception:
            logger.exception("a request to %r could not be answered", request.path)
            response = HttpError(500, "internal error; see the log of the server").response()
        finally:
            if connection is not None:
                connection.request = None
        if not response.prepared:
            response.headers[hdrs.SERVER] = SERVER
        if self._draining or not request.content.is_eof():
            response.force_close()  # the client need not send the rest of the body
        if connection is not None and request.keep_alive and response.keep_alive is not False:
            connection.enter(Phase.IDLE)
        return response


async def stop_listening(server: asyncio.Server) -> None:
    """Accept no further connections.

    In asyncio's own event loop a connection that was accepted and has no transport yet when its server is closed is never closed,
    and its client waits (gh-109564 of CPython). So each gets its transport first.
    """
    loop = asyncio.get_running_loop()
    if isinstance(loop, asyncio.SelectorEventLoop):
        for each in server.sockets:
            loop.remove_reader(each)
        try:
            await asyncio.sleep(0)
        finally:
            server.close()
    else:
        server.close()


def other_host(headers: Mapping[str, str]) -> str:
    """What is wrong with the header Host of a request to a server on loopback; empty if it names this machine.

    A page of a browser may give its own host name this machine's address (DNS rebinding), and then ask as if it came from here.
    """
    named = headers.get("Host", "")
    bare = named[1:].partition("]")[0] if named.startswith("[") else named.partition(":")[0]
    if bare.lower() in _LOOPBACK:
        return ""
    return f"the header Host names {named[:100]!r}, expected one of {', '.join(_LOOPBACK)}"


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
