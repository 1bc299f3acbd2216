"""`/healthz`, `/readyz` and `/metrics` of a component that serves nothing else."""

from collections.abc import Mapping

from aiohttp import web
from prometheus_client import CollectorRegistry

from pumice.cluster.probes import Check, Probes

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
        checks: Mapping[str, Check],
        *,
        host: str = "0.0.0.0",
    ) -> None:
        """Describe the server.

        Args:
            port: Where to listen; 0 takes a free port.
            registry: What `/metrics` shows.
            checks: What must hold for the component to be ready, by name.
            host: Address to listen on; all, because the kubelet and Prometheus come from outside the
                pod.
        """
        self.port = port
        self._host = host
        probes = Probes(registry, checks)
        application = web.Application()
        application.add_routes(
            [
                web.get("/healthz", probes.healthz),
                web.get("/readyz", probes.readyz),
                web.get("/metrics", probes.metrics),
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
