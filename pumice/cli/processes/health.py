"""`/healthz`, `/readyz` and `/metrics` of a component without other HTTP endpoints.

They are served in a thread of their own, so that a scheduling cycle or a long pass of the controller, which blocks the main event
loop, does not keep the kubelet waiting. `/healthz` and `/readyz` read single values. Metrics are collected in the main loop,
because some are computed from a state that a cycle changes; who asks in the middle of a cycle waits for its end.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack

from prometheus_client import CollectorRegistry

from pumice.cluster.side_loop import call_in, side_loop
from pumice.serving.http_server import HttpError, HttpServer
from pumice.serving.limits import CONNECTIONS, HttpLimits, affordable
from pumice.serving.probes import Check, Probes, collected

__all__ = ["HealthServer"]

_COLLECT_SECONDS = 9.0
"""How long `/metrics` waits for the main event loop; by default Prometheus waits for ten seconds."""


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
        alive: Check = lambda: None,
        host: str = "0.0.0.0",
        limits: HttpLimits | None = None,
    ) -> None:
        """Create the server.

        Args:
            port: Port of the API server; 0 takes a free port.
            registry: What `/metrics` shows.
            checks: What must hold for the component to be ready, by name.
            notes: Problems to report although the component is ready, by name.
            alive: Returns why the process must be restarted. This and the checks are called in another thread.
            host: Address to listen on; all, because the kubelet and Prometheus come from outside the
                pod.
            limits: Limits for clients; the webhook's if None.
        """
        self.port = port
        self._host = host
        probes = Probes(registry, checks, notes, alive=alive, collect=self._collect)
        limits = limits or HttpLimits(affordable(CONNECTIONS, 1))
        self._server = HttpServer(probes.answer, limits)
        self._registry = registry
        self._stack = AsyncExitStack()
        self._main: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> "HealthServer":
        """Start to listen; the running loop is the one that metrics are collected in.

        Raises:
            OSError: The port is taken.
        """
        self._main = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            side = await stack.enter_async_context(side_loop("health"))
            stack.push_async_callback(call_in, side, lambda: self._server.close(0.0))
            await call_in(side, lambda: self._server.open(self._host, self.port))
            self._stack = stack.pop_all()
        self.port = self._server.port
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening."""
        await self._stack.aclose()

    async def _collect(self) -> bytes:
        """The text of `/metrics`, made in the main loop.

        Raises:
            HttpError: The main loop stands still.
        """
        assert self._main is not None
        waiting = asyncio.run_coroutine_threadsafe(collected(self._registry), self._main)
        try:
            async with asyncio.timeout(_COLLECT_SECONDS):
                return await asyncio.wrap_future(waiting)
        except TimeoutError:
            problem = f"the event loop has not turned for {_COLLECT_SECONDS:g} s"
            raise HttpError(503, problem) from None
