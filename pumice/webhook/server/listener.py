"""The ports of the webhook: routing, and closing without losing a review.

Reviews and probes are on the main port, only probes on the metrics port. The paths are known before the first request, so
a dictionary is enough and costs less than a router with middlewares.

An API server may use an address for a short time after its removal from the endpoints, and it keeps connections open.
So closing has three steps. First the webhook is not ready but still answers, and each answer closes its connection.
Then new connections are refused while running reviews finish. Then all connections are closed.
"""

import asyncio
import logging
import ssl
from collections.abc import Mapping
from contextlib import AsyncExitStack

import structlog
from aiohttp import web

from pumice.cluster.clock import Clock, SystemClock
from pumice.serving.connections import HttpLimits, affordable
from pumice.serving.http_server import Handler, HttpError, HttpServer
from pumice.serving.probes import Probes
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.server.reviews import Reviews, endpoint_of
from pumice.webhook.server.settings import ServerSettings

logger = logging.getLogger(__name__)
log = structlog.stdlib.get_logger("pumice.webhook")


def _routed(metrics: ServerMetrics, reviews: Mapping[str, Handler], probes: Probes) -> Handler:
    """Answer requests by their paths; refusals are counted and logged."""
    known = ", ".join((*reviews, *probes.paths))

    def handler(path: str, method: str) -> Handler:
        if (post := reviews.get(path)) is None:
            if path in probes.paths:
                return probes.answer
            raise HttpError(404, f"there is nothing at {path}, known are {known}")
        if method != "POST":
            raise HttpError(405, f"{path} takes reviews by POST, found {method}", {"Allow": "POST"})
        return post

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        path = endpoint_of(request)
        try:
            return await handler(path, request.method)(request)
        except HttpError as error:
            counted = path if path in reviews else "other"
            metrics.turned_away(counted, error.code)
            log.info("turned away", path=counted, status=error.code, message=error.message)
            raise

    return answer


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
        """Create a listener of `paths`, with plain HTTP on loopback without `tls`; it listens in `run`.

        Raises:
            InsecureAddressError: Plain HTTP was configured on an address that is not loopback.
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

        posts = dict.fromkeys(paths, reviews.post)
        self._main = HttpServer(_routed(metrics, posts, probes), limits, dropped)
        self._side = HttpServer(_routed(metrics, {}, probes), limits, dropped)
        metrics.connections.set_function(lambda: self.connections)
        self._probes = probes
        self._settings = settings
        self._tls = tls
        self._clock = clock or SystemClock()

    @property
    def grace(self) -> float:
        """Maximum duration of closing, in seconds."""
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
        """Start draining: report not ready, and close each connection after its response."""
        self._probes.draining = True
        self._main.start_draining()
        if self._settings.drain_seconds > 0:
            logger.info("answering for %.0f s more", self._settings.drain_seconds)
            await self._clock.sleep(self._settings.drain_seconds)
