"""Routes: reviews and probes on the main port, only probes on the metrics port.

The paths are known before the first request, so a dictionary is enough and costs less than a router with middlewares.
"""

from collections.abc import Sequence

import structlog
from aiohttp import web

from pumice.serving.errors import HttpError
from pumice.serving.http_server import Handler
from pumice.serving.probes import Probes
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.server.reviews import Reviews, endpoint_of

__all__ = ["Routes"]

log = structlog.stdlib.get_logger("pumice.webhook")


class Routes:
    """Calls the handler of a path."""

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
        self._probes = probes
        self._known = ", ".join((*self._reviews, *probes.paths))

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer a request.

        Raises:
            HttpError: The answer is this error, which is counted and logged.
        """
        path = endpoint_of(request)
        try:
            return await self._handler(path, request.method)(request)
        except HttpError as error:
            known = path if path in self._reviews else "other"
            self._metrics.turned_away(known, error.code)
            log.info("turned away", path=known, status=error.code, message=error.message)
            raise

    def _handler(self, path: str, method: str) -> Handler:
        if (post := self._reviews.get(path)) is None:
            if path in self._probes.paths:
                return self._probes.answer
            raise HttpError(404, f"there is nothing at {path}, known are {self._known}")
        if method != "POST":
            raise HttpError(405, f"{path} takes reviews by POST, found {method}", {"Allow": "POST"})
        return post
