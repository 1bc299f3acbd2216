"""Routes: reviews and probes on the main port, only probes on the metrics port.

The paths are known before the first request, so a dictionary is enough and costs less than a router with middlewares.
"""

from collections.abc import Awaitable, Callable, Sequence

import structlog
from aiohttp import web

from pumice.cluster.probes import Probes
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.server.replies import HttpError
from pumice.webhook.server.reviews import Reviews, endpoint_of

__all__ = ["Routes"]

log = structlog.stdlib.get_logger("pumice.webhook")

_READING = ("GET", "HEAD")


class Routes:
    """Calls the handler of a path, and answers errors with JSON."""

    def __init__(
        self,
        probes: Probes,
        metrics: ServerMetrics,
        reviews: Reviews | None = None,
        paths: Sequence[str] = (),
    ) -> None:
        """Answer `reviews` at `paths`, and the kubelet and Prometheus by `probes`."""
        self._metrics = metrics
        self._reviews = dict.fromkeys(paths, reviews.post) if reviews is not None else {}
        self._probes: dict[str, Callable[[web.BaseRequest], Awaitable[web.Response]]] = {
            "/healthz": probes.healthz,
            "/readyz": probes.readyz,
            "/metrics": probes.metrics,
        }
        self._known = ", ".join((*self._reviews, *self._probes))

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer a request; errors are counted and logged."""
        path = endpoint_of(request)
        try:
            return await self._handler(path, request.method)(request)
        except HttpError as error:
            known = path if path in self._reviews else "other"
            self._metrics.turned_away(known, error.code)
            log.info("turned away", path=known, status=error.code, message=error.message)
            response = error.response()
        except Exception:
            log.exception("a request could not be answered", path=path)
            response = HttpError(500, "internal error; see the log of the webhook").response()
        if not request.content.is_eof():
            response.force_close()  # the client need not send the rest of the body
        return response

    def _handler(
        self, path: str, method: str
    ) -> Callable[[web.BaseRequest], Awaitable[web.Response]]:
        if (post := self._reviews.get(path)) is not None:
            if method == "POST":
                return post
            raise HttpError(405, f"{path} takes reviews by POST, found {method}", {"Allow": "POST"})
        if (probe := self._probes.get(path)) is not None:
            if method in _READING:
                return probe
            allow = {"Allow": ", ".join(_READING)}
            raise HttpError(405, f"{path} is read by GET, found {method}", allow)
        raise HttpError(404, f"there is nothing at {path}, known are {self._known}")
