"""`/healthz`, `/readyz` and `/metrics` of a component that serves nothing else."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from pumice.serving.http_server import HttpServer
from pumice.serving.limits import CONNECTIONS, HttpLimits, affordable
from pumice.serving.probes import Probes

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
        limits: HttpLimits | None = None,
    ) -> None:
        """Describe the server.

        Args:
            port: Where to listen; 0 takes a free port.
            registry: What `/metrics` shows.
            ready: Whether the component can do its work.
            host: Address to listen on; all, because the kubelet and Prometheus come from outside the
                pod.
            limits: What clients may take; the webhook's limits when None.
        """
        self.port = port
        self._host = host
        probes = Probes(registry, {"caches": lambda: None if ready() else "not synced yet"})
        limits = limits or HttpLimits(affordable(CONNECTIONS, 1))
        self._server = HttpServer(probes.answer, limits)

    async def __aenter__(self) -> "HealthServer":
        """Start to listen.

        Raises:
            OSError: The port is taken.
        """
        await self._server.open(self._host, self.port)
        self.port = self._server.port
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening."""
        await self._server.close(0.0)
