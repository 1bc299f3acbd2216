"""Ports: listening, and ending without losing a review.

An API server that has been told that an address is gone may still use it for a moment, and it keeps
connections open. So ending takes three steps: not ready, but answering as before, with each answer
asking for its connection to be closed; then no new connections, while running reviews finish and what
was on its way arrives; then the end.
"""

import asyncio
import logging
import ssl
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace

from aiohttp import web

from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.probes import Probes
from pumice.webhook.server.app import Paths
from pumice.webhook.server.connection import Server
from pumice.webhook.server.crowd import affordable
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.server.reviews import Reviews
from pumice.webhook.server.settings import ServerSettings

__all__ = ["Listener"]

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.02
"""How often it is looked whether the last review is answered."""

_BACKLOG = 512
"""Connections that may wait to be let in while reviews are judged."""

_QUIET_SECONDS = 0.25
"""When no review has come for so long, no more are expected."""


@dataclass(frozen=True, slots=True)
class _Port:
    """An open port: who answers on it, what listens, and its number."""

    server: Server
    listening: asyncio.Server
    number: int


class Listener:
    """The server's ports.

    Attributes:
        started: Set when it listens.
    """

    def __init__(
        self,
        reviews: Reviews,
        probes: Probes,
        paths: tuple[str, ...],
        settings: ServerSettings,
        metrics: ServerMetrics,
        *,
        tls: ssl.SSLContext | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Describe a listener; it listens in `run`.

        Args:
            reviews: Answers reviews.
            probes: Answers the kubelet and Prometheus.
            paths: Where reviews are answered.
            settings: Where to listen and how to end.
            metrics: Counts.
            tls: What is presented; plain HTTP on loopback when None.
            clock: Waits while draining.

        Raises:
            InsecureAddressError: Plain HTTP was asked for on an address that others can reach.
        """
        if tls is None:
            settings.require_loopback()
        self.started = asyncio.Event()
        self._reviewing = Paths(probes, metrics, reviews, paths)
        self._probing = Paths(probes, metrics)
        self._metrics = metrics
        metrics.connections.set_function(lambda: self.connections)
        self._probes = probes
        ports = 1 if settings.metrics_port is None else 2
        limit = affordable(settings.connection_limit, ports)
        if limit < settings.connection_limit:
            logger.warning("at most %d connections a port, for want of file descriptors", limit)
        self._settings = replace(settings, connection_limit=limit)
        self._tls = tls
        self._clock = clock or SystemClock()
        self._main: _Port | None = None
        self._side: _Port | None = None

    @property
    def grace(self) -> float:
        """Seconds that ending may take."""
        return self._settings.drain_seconds + self._settings.shutdown_seconds + 5.0

    @property
    def port(self) -> int:
        """Where it listens, once it does."""
        return _number(self._main)

    @property
    def metrics_port(self) -> int:
        """Where probes and metrics are served over plain HTTP, once they are."""
        return _number(self._side)

    @property
    def connections(self) -> int:
        """How many connections are open on the main port."""
        return len(self._main.server.connections) if self._main is not None else 0

    async def run(self) -> None:
        """Listen until cancelled, then drain.

        Raises:
            OSError: A port is taken.
        """
        async with AsyncExitStack() as stack:
            if self._settings.metrics_port is not None:
                port = self._settings.metrics_port
                self._side = await self._open(stack, self._server(self._probing), port)
                logger.info("health and metrics on port %d", self.metrics_port)
            server = self._server(self._reviewing)
            self._main = await self._open(stack, server, self._settings.port, self._tls)
            self.started.set()
            scheme = "http" if self._tls is None else "https"
            logger.info("answering reviews on %s://%s:%d", scheme, self._settings.host, self.port)
            try:
                await asyncio.Event().wait()
            finally:
                await self._drain(self._main)

    def _server(self, paths: Paths) -> Server:
        def unreadable(code: int) -> None:
            self._metrics.turned_away("other", code)

        def dropped(reason: str) -> None:
            self._metrics.dropped.labels(reason).inc()

        return Server(paths.answer, self._settings, unreadable, dropped)

    async def _open(
        self, stack: AsyncExitStack, server: Server, port: int, tls: ssl.SSLContext | None = None
    ) -> "_Port":
        # By the time of its shutdown `_drain` has waited for what runs.
        runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        # aiohttp's own way to listen gives a client a minute to shake hands.
        listening = await asyncio.get_running_loop().create_server(
            server,
            self._settings.host,
            port,
            ssl=tls,
            ssl_handshake_timeout=self._settings.quiet_seconds if tls is not None else None,
            backlog=_BACKLOG,
        )
        stack.callback(listening.close)
        return _Port(server, listening, listening.sockets[0].getsockname()[1])

    async def _drain(self, port: "_Port") -> None:
        self._probes.draining = port.server.closing = True
        if self._settings.drain_seconds > 0:
            logger.info("answering for %.0f s more", self._settings.drain_seconds)
            await self._clock.sleep(self._settings.drain_seconds)
        port.listening.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.shutdown_seconds):
                await _quiet(port.server)


async def _quiet(server: Server) -> None:
    """Wait until nothing runs and nothing has come for a while.

    Whatever comes is answered as the last of its connection, so that connections become fewer. Some
    may be shaking hands, and a client may have chosen an idle one just now; aiohttp would drop what
    comes once it is told to end.
    """
    loop = asyncio.get_running_loop()
    begun, since = server.requests_count, loop.time()
    while loop.time() - since < _QUIET_SECONDS:
        await asyncio.sleep(_LOOK_SECONDS)
        if server.busy or server.requests_count != begun:
            begun, since = server.requests_count, loop.time()


def _number(port: "_Port | None") -> int:
    assert port is not None, "it does not listen"
    return port.number
