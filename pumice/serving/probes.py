"""Health, readiness and metrics of a component, for all components alike."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from pumice.serving.http_server import HttpError

Check = Callable[[], str | None]
"""Returns why the component cannot work, or None if it can."""


_READING = ("GET", "HEAD")


class Probes:
    """`/healthz`, `/readyz` and `/metrics`.

    Attributes:
        draining: Whether the component is shutting down, and so not ready.
        paths: The handler of each path.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        checks: Mapping[str, Check],
        notes: Mapping[str, Check] | None = None,
        *,
        alive: Check = lambda: None,
        collect: Callable[[], Awaitable[bytes]] | None = None,
    ) -> None:
        """Create probes from checks.

        Args:
            registry: What `/metrics` shows.
            checks: What must hold for the component to be ready, by name.
            notes: What an operator should look at although the component is ready, by name.
            alive: Returns why the process must be restarted.
            collect: Makes the text of `/metrics`; by default from the registry, here and now.
        """
        self.draining = False
        self.paths: dict[str, Callable[[web.BaseRequest], Awaitable[web.Response]]] = {
            "/healthz": self.healthz,
            "/readyz": self.readyz,
            "/metrics": self.metrics,
        }
        self._alive = alive
        self._collect = collect or partial(collected, registry)
        self._checks = {"draining": self._is_draining, **checks}
        self._notes = dict(notes or {})

    @property
    def problems(self) -> dict[str, str]:
        """Checks that fail, with why; empty when the server is ready."""
        found = {name: check() for name, check in self._checks.items()}
        return {name: problem for name, problem in found.items() if problem is not None}

    def _is_draining(self) -> str | None:
        return "the process is ending" if self.draining else None

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer a request.

        Raises:
            HttpError: The path is none of these, or is not read.
        """
        path, method = request.path, request.method
        if (probe := self.paths.get(path)) is None:
            known = ", ".join(self.paths)
            raise HttpError(404, f"there is nothing at {path}, known are {known}")
        if method not in _READING:
            allow = {"Allow": ", ".join(_READING)}
            raise HttpError(405, f"{path} is read by GET, found {method}", allow)
        return await probe(request)

    async def healthz(self, request: web.BaseRequest) -> web.Response:
        """Liveness: the process runs, and does not hang."""
        del request
        problem = self._alive()
        return web.Response(status=500 if problem else 200, text=f"{problem or 'ok'}\n")

    async def readyz(self, request: web.BaseRequest) -> web.Response:
        """Readiness: the component can work; `?verbose` lists every check and every note."""
        problems = self.problems
        if "verbose" in request.query or problems:
            lines = [
                f"[-]{name}: {problems[name]}" if name in problems else f"[+]{name}: ok"
                for name in self._checks
            ]
            lines += [
                f"[+]{name}: ok" if (note := look()) is None else f"[!]{name}: {note}"
                for name, look in self._notes.items()
            ]
        else:
            lines = ["ok"]
        return web.Response(status=503 if problems else 200, text="\n".join([*lines, ""]))

    async def metrics(self, request: web.BaseRequest) -> web.Response:
        """All counters, in Prometheus' text format."""
        del request
        headers = {"Content-Type": CONTENT_TYPE_LATEST}
        return web.Response(body=await self._collect(), headers=headers)


async def collected(registry: CollectorRegistry) -> bytes:
    """All metrics of a registry, in Prometheus' text format."""
    return generate_latest(registry)
