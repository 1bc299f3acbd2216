"""Ports: listening, and ending without losing a review.

An API server that has been told that an address is gone may still use it for a moment, and it keeps
connections open. So ending takes three steps: not ready, but answering as before, with each answer
asking for its connection to be closed; then no new connections, while running reviews finish; then
the end.
"""

import asyncio
import logging
import ssl
from contextlib import AsyncExitStack, suppress

from aiohttp import web

from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.probes import Probes
from pumice.webhook.server.app import application, probe_application
from pumice.webhook.server.reviews import Reviews
from pumice.webhook.server.settings import KEEPALIVE_SECONDS, ServerSettings

__all__ = ["Listener"]

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.02
"""How often it is looked whether the last review is answered."""

_BUFFER = 1 << 18
"""Bytes read ahead of a connection; most reviews arrive in one piece then."""


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
            tls: What is presented; plain HTTP on loopback when None.
            clock: Waits while draining.

        Raises:
            InsecureAddressError: Plain HTTP was asked for on an address that others can reach.
        """
        if tls is None:
            settings.require_loopback()
        self.started = asyncio.Event()
        self._reviews = reviews
        self._probes = probes
        self._settings = settings
        self._tls = tls
        self._clock = clock or SystemClock()
        self._main = web.AppRunner(
            application(reviews, probes, paths),
            access_log=None,
            handle_signals=False,
            keepalive_timeout=KEEPALIVE_SECONDS,
            shutdown_timeout=1.0,  # by then `_drain` has waited for what runs
            read_bufsize=_BUFFER,
        )
        self._side = web.AppRunner(
            probe_application(probes), access_log=None, handle_signals=False, shutdown_timeout=1.0
        )

    @property
    def grace(self) -> float:
        """Seconds that ending may take."""
        return self._settings.drain_seconds + self._settings.shutdown_seconds + 5.0

    @property
    def port(self) -> int:
        """Where it listens, once it does."""
        port: int = self._main.addresses[0][1]
        return port

    @property
    def metrics_port(self) -> int:
        """Where probes and metrics are served over plain HTTP, once they are."""
        port: int = self._side.addresses[0][1]
        return port

    async def run(self) -> None:
        """Listen until cancelled, then drain.

        Raises:
            OSError: A port is taken.
        """
        async with AsyncExitStack() as stack:
            await self._listen(stack)
            self.started.set()
            scheme = "http" if self._tls is None else "https"
            logger.info("answering reviews on %s://%s:%d", scheme, self._settings.host, self.port)
            try:
                await asyncio.Event().wait()
            finally:
                await self._drain()

    async def _listen(self, stack: AsyncExitStack) -> None:
        settings = self._settings
        for runner, port, tls in (
            (self._side, settings.metrics_port, None),
            (self._main, settings.port, self._tls),
        ):
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            if port is not None:
                await web.TCPSite(runner, settings.host, port, ssl_context=tls).start()

    async def _drain(self) -> None:
        self._probes.draining = self._reviews.closing = True
        if self._settings.drain_seconds > 0:
            logger.info("answering for %.0f s more", self._settings.drain_seconds)
            await self._clock.sleep(self._settings.drain_seconds)
        for site in tuple(self._main.sites):
            await site.stop()
        # aiohttp would drop what still arrives of a review once it is told to end.
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.shutdown_seconds):
                while self._reviews.running:  # noqa: ASYNC110 - rare, and an event would cost each review
                    await asyncio.sleep(_LOOK_SECONDS)
