"""The ports of the webhook, and how they close without losing a review.

An API server may use an address for a moment after it has been told that the address is gone, and it keeps connections
open. So closing takes three steps. First the webhook is not ready but answers as before, and each answer closes its
connection. Then new connections are refused while running reviews finish. Then all connections are closed.
"""

import asyncio
import logging
import ssl
from contextlib import AsyncExitStack

from pumice.cluster.clock import Clock, SystemClock
from pumice.serving.http_server import HttpServer
from pumice.serving.limits import HttpLimits, affordable
from pumice.serving.probes import Probes
from pumice.webhook.server.app import Routes
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.server.reviews import Reviews
from pumice.webhook.server.settings import ServerSettings

__all__ = ["Listener"]

logger = logging.getLogger(__name__)


class Listener:
    """The ports of the webhook.

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
        """Describe a listener of `paths`, with plain HTTP on loopback without `tls`; it listens in `run`.

        Raises:
            InsecureAddressError: Plain HTTP was asked for on an address that others can reach.
        """
        if tls is None:
            settings.require_loopback()
        self.started = asyncio.Event()
        ports = 1 if settings.metrics_port is None else 2
        limit = affordable(settings.connection_limit, ports)
        if limit < settings.connection_limit:
            logger.warning("at most %d connections a port, for want of file descriptors", limit)
        limits = HttpLimits(
            limit,
            first_byte_seconds=settings.quiet_seconds,
            head_seconds=settings.read_seconds,
            idle_seconds=settings.idle_seconds,
        )

        def dropped(reason: str) -> None:
            metrics.dropped.labels(reason).inc()

        self._main = HttpServer(Routes(probes, metrics, reviews, paths).answer, limits, dropped)
        self._side = HttpServer(Routes(probes, metrics).answer, limits, dropped)
        metrics.connections.set_function(lambda: self.connections)
        self._probes = probes
        self._settings = settings
        self._tls = tls
        self._clock = clock or SystemClock()

    @property
    def grace(self) -> float:
        """Seconds that closing may take."""
        return self._settings.drain_seconds + self._settings.shutdown_seconds + 5.0

    @property
    def port(self) -> int:
        """The main port, once it is open."""
        return self._main.port

    @property
    def metrics_port(self) -> int:
        """The port of probes and metrics over plain HTTP, once it is open."""
        return self._side.port

    @property
    def connections(self) -> int:
        """Number of open connections on the main port."""
        return self._main.connections

    async def run(self) -> None:
        """Listen until cancelled, then drain.

        Raises:
            OSError: A port is taken.
        """
        settings = self._settings
        async with AsyncExitStack() as stack:
            if settings.metrics_port is not None:
                await self._side.open(settings.host, settings.metrics_port)
                stack.push_async_callback(self._side.close, 0.0)
                logger.info("health and metrics on port %d", self.metrics_port)
            await self._main.open(settings.host, settings.port, self._tls)
            stack.push_async_callback(self._main.close, settings.shutdown_seconds)
            self.started.set()
            scheme = "http" if self._tls is None else "https"
            logger.info("answering reviews on %s://%s:%d", scheme, settings.host, self.port)
            try:
                await asyncio.Event().wait()
            finally:
                await self._leave_service()

    async def _leave_service(self) -> None:
        """Let clients go elsewhere: not ready, and each answer closes its connection."""
        self._probes.draining = True
        self._main.start_draining()
        if self._settings.drain_seconds > 0:
            logger.info("answering for %.0f s more", self._settings.drain_seconds)
            await self._clock.sleep(self._settings.drain_seconds)
