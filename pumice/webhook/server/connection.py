"""Connections: whatever arrives on one is answered, also where it is no HTTP.

aiohttp reads requests and writes responses. Four things are done otherwise here. What cannot be read
as HTTP is answered with JSON and a line in the log instead of plain text and a traceback. A client that
stops sending, because it has said all it wants to or because it broke off, is answered before its
connection ends. A head that does not arrive whole is not waited for longer than a body. And a body that
goes wrong in the middle is answered at once.

Under TLS a client that ends its sending ends the connection, before anything can be judged: it is told
that, whatever it has sent. One that breaks off without TLS's own goodbye gets nothing, as TLS demands,
and what is no TLS at all gets TLS's alert.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage

from pumice.webhook.server.replies import last_words, status
from pumice.webhook.server.settings import KEEPALIVE_SECONDS, ServerSettings

__all__ = ["Connection", "Handler", "Server"]

Handler = Callable[[web.BaseRequest], Coroutine[Any, Any, web.Response]]

logger = logging.getLogger(__name__)

_BUFFER = 1 << 18
"""Bytes read ahead of a connection; most reviews arrive in one piece then."""


class Connection(web.RequestHandler):
    """One connection of a client."""

    __slots__ = ("_body", "_late", "_sealed", "_server")

    def __init__(self, server: "Server", *, loop: asyncio.AbstractEventLoop) -> None:
        """Be a connection of a server."""
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=KEEPALIVE_SECONDS,
            access_log=None,  # type: ignore[arg-type] # as aiohttp's own runner has it
            read_bufsize=_BUFFER,
        )
        self._server = server
        self._body: StreamReader | None = None
        self._late: asyncio.TimerHandle | None = None
        self._sealed = False

    @property
    def busy(self) -> bool:
        """Whether a request is arriving or being answered."""
        return self._body is not None or self._late is not None or bool(self._messages)

    def data_received(self, data: bytes) -> None:
        """Take in what has arrived."""
        super().data_received(data)
        if self._messages or self._body is not None:
            if self._late is not None:
                self._late.cancel()
                self._late = None
            if self._body is not None and self._messages and not self._body.is_eof():
                self._spoil(self._body)
        elif self._late is None and data and self.transport is not None:
            self._late = self._loop.call_later(self._server.settings.read_seconds, self._too_late)

    def eof_received(self) -> bool | None:  # type: ignore[override] # asyncio's own type
        """Answer what has arrived: the client sends no more, but may still read."""
        self._sealed = True
        body = self._body
        if body is None and not self._messages:
            if self._late is not None:
                self._say(400, "the connection ended within the head of a request")
            return None
        if body is not None and not body.is_eof():
            self._spoil(body)
        if self.ssl_context is None:
            return True
        if self.transport is not None:
            message = "the client ended the connection before it could be answered"
            self.transport.write(last_words(400, message))
        return None

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the client."""
        super().connection_lost(exc)
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def receiving(self, body: StreamReader) -> None:
        """A request is about to be handled."""
        self._body = body
        if not body.is_eof() and (self._sealed or self._messages):
            self._spoil(body)

    def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> Coroutine[Any, Any, tuple[web.StreamResponse, bool]]:
        """Send a response; the last one of a connection says that it is."""
        self._body = None
        if self._server.closing or (self._sealed and not self._messages):
            resp.force_close()
        return super().finish_response(request, resp, start_time)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what is no HTTP, or to what nobody has foreseen."""
        del request
        return self._error(status, exc, message or "")

    def _error(self, code: int, error: BaseException | None, message: str) -> web.StreamResponse:
        if isinstance(error, ConnectionError):  # the client is gone; nobody will read this
            message = "the connection was lost"
        elif code == 500:
            logger.error("a request could not be answered", exc_info=error)
            message = "this should not have happened; the log of the webhook says more"
        else:
            self._server.unreadable(code)
            message = f"this is no HTTP request that can be read: {' '.join(message.split())}"
            logger.info("%s", message)
        response = status(code, message)
        response.force_close()
        return response

    def _spoil(self, body: StreamReader) -> None:
        """Let whoever reads a body know that the rest of it will not come."""
        if self._messages:
            problem = getattr(self._messages[-1][0], "message", "it is broken")
        else:
            problem = _broken_off(body)
        body.set_exception(web.RequestPayloadError(problem))

    def _too_late(self) -> None:
        self._late = None
        seconds = self._server.settings.read_seconds
        self._say(408, f"the head of the request had not arrived whole after {seconds:g} s")

    def _say(self, code: int, message: str) -> None:
        """Answer in place of aiohttp, which knows of no request, and end the connection."""
        self._server.unreadable(code)
        if self.transport is not None:
            self.transport.write(last_words(code, message))
        self.force_close()


def _broken_off(body: StreamReader) -> str:
    return f"the connection ended after {body.total_bytes} bytes of it"


class Server(web.Server):
    """Makes connections, and knows them.

    Attributes:
        settings: Limits.
        closing: Whether each response is the last of its connection.
    """

    def __init__(
        self, handler: Handler, settings: ServerSettings, unreadable: Callable[[int], None]
    ) -> None:
        """Describe a server; call it in the event loop in which it will run.

        Args:
            handler: Answers requests.
            settings: Limits.
            unreadable: Told of each answer to what is no request, with its HTTP status.
        """
        super().__init__(handler, request_factory=_request)
        self.settings = settings
        self.closing = False
        self.unreadable = unreadable

    def __call__(self) -> Connection:
        """A new connection."""
        return Connection(self, loop=asyncio.get_running_loop())

    @property
    def busy(self) -> bool:
        """Whether a request is arriving or being answered on any connection."""
        return any(isinstance(each, Connection) and each.busy for each in self.connections)


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    if isinstance(protocol, Connection):
        protocol.receiving(payload)
    return web.BaseRequest(message, payload, protocol, writer, task, asyncio.get_running_loop())
