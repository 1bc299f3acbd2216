"""`/healthz`, `/readyz` and `/metrics` of a component without other HTTP endpoints."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry

from pumice.serving.http_server import HttpServer
from pumice.serving.limits import CONNECTIONS, HttpLimits, affordable
from pumice.serving.probes import Check, Probes

__all__ = ["HealthServer"]


class HealthServer:
    """A small HTTP server for the kubelet and for Prometheus.

    Use it as a context manager; it serves inside the block.

    Attributes:
        port: Where it listens, known inside the block.
    """

    def __init__(
        self,
        port: int,
        registry: CollectorRegistry,
        checks: Mapping[str, Check],
        notes: Mapping[str, Check] | None = None,
        *,
        host: str = "0.0.0.0",
        limits: HttpLimits | None = None,
    ) -> None:
        """Create the server.

        Args:
            port: Port of the API server; 0 takes a free port.
            registry: What `/metrics` shows.
            checks: What must hold for the component to be ready, by name.
            notes: Problems to report although the component is ready, by name.
            host: Address to listen on; all, because the kubelet and Prometheus come from outside the
                pod.
            limits: Limits for clients; the webhook's if None.
        """
        self.port = port
        self._host = host
        probes = Probes(registry, checks, notes)
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
