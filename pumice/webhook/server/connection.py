"""Connections: whatever arrives on one is answered, also where it is no HTTP.

aiohttp reads requests and writes responses. Five things are done otherwise here. What cannot be read
as HTTP is answered with JSON and a line in the log instead of plain text and a traceback. A client that
stops sending, because it has said all it wants to or because it broke off, is answered before its
connection ends. A head that does not arrive whole is not waited for longer than a body. A body that
goes wrong in the middle is answered at once. And a connection on which nothing is asked ends soon.

Under TLS a client that ends its sending ends the connection, before anything can be judged: it is told
that, whatever it has sent. One that breaks off without TLS's own goodbye gets nothing, as TLS demands.
What is no TLS at all, HTTP without it included, ends before there is a connection in this sense.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from aiohttp import StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD

from pumice.webhook.server.crowd import Crowd, State
from pumice.webhook.server.replies import last_words, status
from pumice.webhook.server.settings import KEEPALIVE_SECONDS, ServerSettings

__all__ = ["Connection", "Handler", "Server"]

Handler = Callable[[web.BaseRequest], Coroutine[Any, Any, web.Response]]

logger = logging.getLogger(__name__)

_BUFFER = 1 << 16
"""Bytes read ahead of a connection; most reviews arrive in one piece then, and a thousand connections
that wait for the rest of one are still no burden."""

_LINGER_SECONDS = 2.0
"""How long a client may go on sending after it has been told that this is no use, at most."""

_QUIET_SECONDS = 0.1
"""When nothing has arrived for so long, it sends no more."""


class Connection(web.RequestHandler):
    """One connection of a client."""

    __slots__ = (
        "_answered",
        "_content",
        "_deaf",
        "_first",
        "_heard",
        "_late",
        "_leaving",
        "_sealed",
        "_server",
        "since",
    )

    def __init__(self, server: "Server", *, loop: asyncio.AbstractEventLoop) -> None:
        """Be a connection of a server."""
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=KEEPALIVE_SECONDS,
            access_log=None,  # type: ignore[arg-type] # as aiohttp's own runner has it
            read_bufsize=_BUFFER,
            auto_decompress=False,
        )
        self._server = server
        self._content = EMPTY_PAYLOAD
        self._answered = True
        self._late: asyncio.TimerHandle | None = None
        self._first: asyncio.TimerHandle | None = None
        self._leaving: asyncio.Task[None] | None = None
        self.since = 0.0
        self._sealed = False
        self._deaf = False
        self._heard = False

    @property
    def busy(self) -> bool:
        """Whether a request is arriving or being answered."""
        return not self._answered or self._late is not None or bool(self._messages)

    @property
    def state(self) -> State:
        """What it is about; `since` is since when, in seconds of the event loop."""
        if self._first is not None:
            return State.UNUSED
        if self._late is not None or not self._content.is_eof():
            return State.ARRIVING
        return State.IDLE if self._answered and not self._messages else State.JUDGED

    def drop(self) -> None:
        """End at once, without a word."""
        if self.transport is not None:
            self.transport.abort()
        self.force_close()

    # What arrives

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a first byte, but not for long."""
        self.since = self._loop.time()
        super().connection_made(transport)
        if self.transport is not None:
            seconds = self._server.settings.quiet_seconds
            self._first = self._loop.call_later(seconds, self._unused)

    def _unused(self) -> None:
        self._first = None
        self._server.dropped("quiet")
        self.force_close()

    def data_received(self, data: bytes) -> None:
        """Take in what has arrived."""
        if self._first is not None:
            self._first.cancel()
            self._first = None
        if self._deaf:
            self._heard = True
            return
        super().data_received(data)
        if self._messages or not self._answered:
            if self._late is not None:
                self._late.cancel()
                self._late = None
            if self._messages and not self._content.is_eof():
                self._spoil(self._content)
        elif self._late is None and data and self.transport is not None and self._content.is_eof():
            self.since = self._loop.time()
            self._late = self._loop.call_later(self._server.settings.read_seconds, self._too_late)

    def eof_received(self) -> bool | None:  # type: ignore[override] # asyncio's own type
        """Answer what has arrived: the client sends no more, but may still read."""
        self._sealed = True
        if not self._content.is_eof():
            self._spoil(self._content)
        if self._answered and not self._messages:
            if self._late is not None:
                self._say(400, "the connection ended within the head of a request")
                self.force_close()
            return None
        if self.ssl_context is None:
            return True
        if self.transport is not None:
            message = "the client ended the connection before it could be answered"
            self.transport.write(last_words(400, message))
        return None

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the client."""
        super().connection_lost(exc)
        if self._answered:
            if not self._content.is_eof():
                self._spoil(self._content)
            self._content = (
                EMPTY_PAYLOAD  # it knows its connection, and circles are seldom looked for
            )
        if self._late is not None:
            self._server.unreadable(400)
            logger.info("a connection was lost within the head of a request")
        for timer in (self._late, self._first):
            if timer is not None:
                timer.cancel()
        self._late = self._first = None
        for message, _ in self._messages:  # they will not be answered
            if isinstance(error := getattr(message, "exc", None), BaseException):
                error.with_traceback(None)

    def receiving(self, content: StreamReader) -> None:
        """A request is about to be handled."""
        self._content = content
        self._answered = False
        self.since = self._loop.time()
        if not content.is_eof() and (self._sealed or self._messages):
            self._spoil(content)

    def _spoil(self, content: StreamReader) -> None:
        """Let whoever reads a body know that the rest of it will not come."""
        if self._messages:
            problem = getattr(self._messages[-1][0], "message", "it is broken")
        else:
            problem = f"the connection ended after {content.total_bytes} bytes of it"
        if self._answered:
            content.feed_eof()  # nobody reads it but aiohttp, to see the end of it
        else:
            content.set_exception(web.RequestPayloadError(problem))

    def _too_late(self) -> None:
        self._late = None
        seconds = self._server.settings.read_seconds
        self._say(408, f"the head of the request had not arrived whole after {seconds:g} s")
        self._leaving = self._loop.create_task(self._leave())

    # What is answered

    def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> Coroutine[Any, Any, tuple[web.StreamResponse, bool]]:
        """Send a response; the last one of a connection says that it is."""
        self._answered = True
        self.since = self._loop.time()
        resp.headers[hdrs.SERVER] = (
            "pumice"  # aiohttp would tell everybody which versions there are
        )
        if self._server.closing or (self._sealed and not self._messages):
            resp.force_close()
        sending = super().finish_response(request, resp, start_time)
        content = self._content
        if content.exception() is not None:
            content.feed_eof()  # or aiohttp would look for the end of it, and meet the exception
        if self.transport is None:
            self._content = EMPTY_PAYLOAD
        if resp.status == 400 and resp.keep_alive is False and content.is_eof():
            return self._linger(sending)
        return sending

    async def _linger(
        self, sending: Coroutine[Any, Any, tuple[web.StreamResponse, bool]]
    ) -> tuple[web.StreamResponse, bool]:
        """Send a last response, and let the client finish what it is sending."""
        self._deaf = True
        sent = await sending
        await self._hear_out()
        return sent

    async def _leave(self) -> None:
        """End the connection after last words, once the client has finished what it is sending."""
        self._deaf = True
        await self._hear_out()
        self.force_close()

    async def _hear_out(self) -> None:
        """Wait until the client sends no more.

        A connection that ends with something unread is reset, and the client may lose what it has not
        read by then.
        """
        if self.transport is not None:
            self.transport.resume_reading()  # aiohttp stops where it has too much to answer
            if self.transport.can_write_eof():
                with suppress(OSError):  # the client may be gone
                    self.transport.write_eof()
        end = self._loop.time() + _LINGER_SECONDS
        self._heard = True
        while self._heard and not self._sealed and self._loop.time() < end:
            self._heard = False
            await asyncio.sleep(_QUIET_SECONDS)

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

    def _say(self, code: int, message: str) -> None:
        """Answer in place of aiohttp, which knows of no request."""
        if self._late is not None:
            self._late.cancel()
            self._late = None
        self._server.unreadable(code)
        logger.info("%s", message)
        if self.transport is not None:
            self.transport.write(last_words(code, message))


class Server(web.Server):
    """Makes connections, and knows them.

    Attributes:
        settings: Limits.
        closing: Whether each response is the last of its connection.
    """

    def __init__(
        self,
        handler: Handler,
        settings: ServerSettings,
        unreadable: Callable[[int], None],
        dropped: Callable[[str], None],
    ) -> None:
        """Describe a server; call it in the event loop in which it will run.

        Args:
            handler: Answers requests.
            settings: Limits.
            unreadable: Told of each answer to what is no request, with its HTTP status.
            dropped: Told of each connection that ends without an answer, with why.
        """
        super().__init__(handler, request_factory=_request)
        self.settings = settings
        self.closing = False
        self.unreadable = unreadable
        self.dropped = dropped
        self._crowd = Crowd(settings.connection_limit, dropped)

    def __call__(self) -> Connection:
        """A new connection."""
        return Connection(self, loop=asyncio.get_running_loop())

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Know a connection, and see to it that there are not too many."""
        super().connection_made(handler, transport)
        others = self.connections
        if len(others) > self._crowd.limit and isinstance(handler, Connection):
            open_ones = (each for each in others if isinstance(each, Connection) and each.connected)
            self._crowd.let_in(handler, open_ones)

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
