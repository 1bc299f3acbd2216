"""`/healthz`, `/readyz` and `/metrics` of a component that serves nothing else."""

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

__all__ = ["HealthServer"]


class HealthServer:
    """A small HTTP server for the kubelet and for Prometheus.

    Use it as a context manager; it serves for as long as the block lasts.

    Attributes:
        port: Where it listens, known inside the block.
    """

    def __init__(
        self,
        port: int,
        registry: CollectorRegistry,
        ready: Callable[[], bool],
        *,
        host: str = "0.0.0.0",
    ) -> None:
        """Describe the server.

        Args:
            port: Where to listen; 0 takes a free port.
            registry: What `/metrics` shows.
            ready: Whether the component can do its work.
            host: Address to listen on; all, because the kubelet and Prometheus come from outside the
                pod.
        """
        self.port = port
        self._host = host
        self._registry = registry
        self._ready = ready
        application = web.Application()
        application.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._metrics),
            ]
        )
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False)

    async def __aenter__(self) -> "HealthServer":
        """Start to listen.

        Raises:
            OSError: The port is taken.
        """
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self.port)
        try:
            await site.start()
        except OSError:
            await self._runner.cleanup()
            raise
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _healthz(self, request: web.Request) -> web.Response:
        del request
        return web.Response(text="ok\n")

    async def _readyz(self, request: web.Request) -> web.Response:
        del request
        if self._ready():
            return web.Response(text="ok\n")
        return web.Response(status=503, text="caches are not synced yet\n")

    async def _metrics(self, request: web.Request) -> web.Response:
        del request
        return web.Response(
            body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )
