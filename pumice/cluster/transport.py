"""HTTP with one API server: a session with persistent connections, credentials, timeouts and retries.

Reads are repeated if the connection breaks or the server is overloaded (429, 500 to 504). Writes are not: only the
caller knows whether repeating them is safe. Every failure is an `ApiError`, chained to its cause.

For writes that only a leader may send, `may_write` is called just before sending. A request may wait for a connection,
and the process may be stopped (SIGSTOP) for longer than its lease meanwhile, so an earlier check would not be enough.

A watch may be silent for minutes in normal operation. If the machine of the API server fails, or a firewall drops the
connection, no packet arrives either; keep-alive probes of the kernel detect that within about a minute. A response that is
not read to its end (each watch) closes its connection, and a TLS connection closes after an answer of the peer. aiohttp does
not wait for that, so a session keeps a list of its sockets and closes them itself.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode
from weakref import WeakSet

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

import pumice
from pumice.cluster.clock import Backoff, Clock, SystemClock, identity
from pumice.cluster.connection import Connection
from pumice.cluster.errors import (
    LONGEST_RETRY_AFTER,
    ApiError,
    TooLarge,
    TooManyRequests,
    Unavailable,
    error_of,
)
from pumice.cluster.failures import failure

PROBE_IDLE_SECONDS = 30
PROBE_INTERVAL_SECONDS = 10
PROBES = 3

CLOSE_SECONDS = 1.0
"""How long to wait for the event loop to close sockets that were shut down; it takes a few iterations."""

_OPTIONS = (
    ("TCP_KEEPIDLE", PROBE_IDLE_SECONDS),
    ("TCP_KEEPINTVL", PROBE_INTERVAL_SECONDS),
    ("TCP_KEEPCNT", PROBES),
    # The same bound for data that was sent and never acknowledged, in milliseconds.
    ("TCP_USER_TIMEOUT", (PROBE_IDLE_SECONDS + PROBE_INTERVAL_SECONDS * PROBES) * 1000),
)


def probing_socket(address: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
    """Create a socket for one address of `getaddrinfo`, with keep-alive probes."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS:
        if hasattr(socket, name):  # not every system has every one
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


class Sockets:
    """The sockets of a session, each with keep-alive probes."""

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def make(self, address: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
        """Create a socket for one address of `getaddrinfo`."""
        made = probing_socket(address)
        self._made.add(made)
        return made

    async def close(self) -> None:
        """Shut down the open sockets, and wait until their transports have closed them."""
        for each in self._open():
            with suppress(OSError):  # it was never connected, or is closed
                each.shutdown(socket.SHUT_RDWR)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._open():  # noqa: ASYNC110 - sockets tell nothing
                    await asyncio.sleep(0)

    def _open(self) -> list[socket.socket]:
        return [each for each in self._made if each.fileno() >= 0]


CONNECT_SECONDS = 10.0
REQUEST_SECONDS = 65.0
"""Maximum duration of a request; kube-apiserver itself gives up after 60 s and reports it."""

CONNECTIONS = 128
"""Maximum number of open connections; each watch uses one."""

IDLE_SECONDS = 60.0
"""How long an unused connection is kept; less than the 90 s of kube-apiserver and the 75 s of many
others, because a write on a connection that the server is closing cannot be repeated safely."""

READ_ATTEMPTS = 5
"""Attempts to read before the error is raised."""

_UNREACHED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""Errors of a request for which there was no connection; a connection that breaks is something else."""
LARGE_BODY = 64 * 1024
"""Bytes of a request body from which on few are sent at the same time."""

LARGE_BODIES = 8
"""Maximum number of large request bodies in memory: a Job may have pods of a megabyte each."""

Body = Mapping[str, Any] | list[Any] | msgspec.Struct | bytes | None
"""Request bodies: values that msgspec encodes, or bytes."""


may_write: ContextVar[Callable[[], bool]] = ContextVar("may_write", default=lambda: True)
"""Whether a task and its child tasks may write now; called when the request has a connection."""


class _Request(aiohttp.ClientRequest):
    """A request that is not sent if its task may not write any more."""

    async def send(self, conn: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        """Send the request over a connection that is open."""
        if self.method != "GET" and not may_write.get()():
            context = f"{self.method} {self.url.path}"
            raise Unavailable(0, "NotLeading", "the lease has run out", context=context)
        return await super().send(conn)


class _RequestHead(NamedTuple):
    """A request without its body."""

    method: str
    path: str
    query: Mapping[str, str] | None = None
    headers: Mapping[str, str] | None = None


class Transport:
    """A session. Create it inside a running event loop, and `close` it.

    Attributes:
        outages: Requests so far that reached no API server.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock | None = None,
        fail_fast: bool = False,
    ) -> None:
        self.connection = connection
        self.outages = 0
        self._fail_fast = fail_fast
        """Whether a server that has never answered is reported after one attempt."""
        self._clock = clock or SystemClock()
        self._sockets = Sockets()
        self._large = asyncio.Semaphore(LARGE_BODIES)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=CONNECTIONS,
                ssl=_tls(connection),
                keepalive_timeout=IDLE_SECONDS,
                socket_factory=self._sockets.make,
            ),
            timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS, sock_connect=CONNECT_SECONDS),
            headers={
                "Accept": "application/json",
                # Compressing a list takes the server longer than the network would save.
                "Accept-Encoding": "identity",
                "User-Agent": f"pumice/{pumice.__version__}",
            },
            request_class=_Request,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=1 << 18,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()
        await self._sockets.close()

    async def request(
        self,
        method: str,
        path: str,
        body: Body = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        most: int | None = None,
    ) -> bytes:
        """Send a request and read the whole response; a failed GET is repeated.

        Args:
            method: HTTP method.
            path: Path below the server's URL.
            body: The body.
            query: Parameters.
            headers: Further headers.
            most: Maximum number of bytes of the response; any number if None.

        Raises:
            TooLarge: The response has more bytes.
            ApiError: When there is no response, or an error response; the subclass depends on the status.
        """
        attempt = 0
        while True:
            try:
                return await self._once(_RequestHead(method, path, query, headers), body, most)
            except (TooManyRequests, Unavailable) as error:
                attempt += 1
                if method != "GET" or attempt >= READ_ATTEMPTS:
                    raise
                if self._fail_fast and error.status == 0:
                    raise
                backoff = Backoff(cap=LONGEST_RETRY_AFTER, seed=f"{identity()}/{path}")
                delay = backoff.delay(attempt - 1, error.retry_after)
            await self._clock.sleep(delay)

    async def _once(self, head: _RequestHead, body: Body, most: int | None) -> bytes:
        data = None if body is None else body if isinstance(body, bytes) else _encode(body)
        if data is None or len(data) < LARGE_BODY:
            return await self._exchange(head, data, most)
        del data  # while others are sent
        async with self._large:
            data = body if isinstance(body, bytes) else _encode(body)
            return await self._exchange(head, data, most)

    async def _exchange(self, head: _RequestHead, data: bytes | None, most: int | None) -> bytes:
        context = f"{head.method} {head.path}"
        with self._failing(context):
            response = await self._send(head, data)
            async with response:
                answer = await (response.read() if most is None else _limited(response, most))
        self._fail_fast = False
        if response.status >= 300:
            raise self._refused(_refusal(response, answer, context))
        if most is not None and len(answer) > most:
            message = f"the response has more than {most} bytes"
            raise TooLarge(response.status, "TooLarge", message, context=context)
        return answer

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], silence: float
    ) -> AsyncGenerator[AsyncGenerator[bytes, None], None]:
        """Open a long-running response as chunks.

        Args:
            path: Path of the GET request.
            query: Its parameters.
            silence: Seconds without a byte after which the connection counts as broken.

        Raises:
            ApiError: When the server refuses, or the connection breaks while reading.
        """
        patience = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=silence
        )
        context = f"WATCH {path}"
        with self._failing(context):
            response = await self._send(_RequestHead("GET", path, query), None, patience)
            async with response:
                if response.status != 200:
                    raise self._refused(_refusal(response, await response.read(), context))
                yield _chunks(response, self.connection.server, context)

    @contextmanager
    def _failing(self, context: str) -> Iterator[None]:
        """Raise what goes wrong with a connection as an `ApiError`."""
        try:
            yield
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self.outages += isinstance(error, _UNREACHED)
            raise failure(error, self.connection.server, context) from error

    def _refused(self, error: ApiError) -> ApiError:
        """Note an answer of a proxy that has no API server."""
        self.outages += error.status in (502, 503) and error.reason == "Unknown"
        return error

    async def _send(
        self, head: _RequestHead, data: bytes | None, patience: aiohttp.ClientTimeout | None = None
    ) -> aiohttp.ClientResponse:
        """Send a request with credentials, and once more with fresh ones after a 401."""
        connection = self.connection
        path = quote(head.path, safe="/:", errors=_ANY_BYTES)
        query = f"?{urlencode(head.query, errors=_ANY_BYTES)}" if head.query else ""
        try:
            url = URL(f"{connection.server}{path}{query}", encoded=True)
            url.port  # noqa: B018 - which says whether it is one
        except ValueError as error:
            raise aiohttp.InvalidURL(connection.server) from error
        options: dict[str, Any] = {} if patience is None else {"timeout": patience}
        for last in (False, True):
            signed: CIMultiDict[str] = CIMultiDict(head.headers or {})
            if data is not None:
                signed.setdefault("Content-Type", "application/json")
            signed.extend(await connection.credentials.headers())
            if (tls := connection.credentials.tls) is not None:
                options["ssl"] = tls
            response = await self._session.request(
                head.method,
                url,
                data=data,
                headers=signed,
                server_hostname=connection.server_name,
                proxy=connection.proxy,
                allow_redirects=False,
                **options,
            )
            if last or response.status != 401 or not await connection.credentials.refused():
                break
            response.release()
        return response


_encode = msgspec.json.encode
_ANY_BYTES = "surrogateescape"
"""Names that users type may be no UTF-8: the API server has to see them, and to find nothing."""


def _tls(connection: Connection) -> ssl.SSLContext | bool:
    """The TLS context of a connection; for a plain HTTP server only a proxy may need one.

    aiohttp's default context is not used, because servers do not load its authorities (`pumice.cli.lean`).
    """
    if connection.tls is None and (connection.proxy or "").startswith("https:"):
        return ssl.create_default_context()
    return True if connection.tls is None else connection.tls


async def _limited(response: aiohttp.ClientResponse, most: int) -> bytes:
    """A response body; of one with more bytes than `most` the rest is not read, and its connection is closed."""
    parts, size = [], 0
    async for chunk in response.content.iter_any():
        parts.append(chunk)
        size += len(chunk)
        if size > most:
            response.close()
            break
    return b"".join(parts)


async def _chunks(
    response: aiohttp.ClientResponse, server: str, context: str
) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise failure(error, server, context) from error


def _refusal(response: aiohttp.ClientResponse, body: bytes, context: str) -> ApiError:
    try:
        retry_after = float(response.headers.get("Retry-After", ""))
    except ValueError:
        retry_after = None  # absent, or the date form, which Kubernetes does not use
    return error_of(response.status, body, context, retry_after)
