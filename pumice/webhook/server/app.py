"""Which path answers what: reviews and probes on the main port, probes alone on the other.

Three kinds of paths, known before the first request, need no router and no middleware.
"""

from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from pumice.cluster.probes import Probes
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.server.refusing import turned_away
from pumice.webhook.server.replies import status
from pumice.webhook.server.reviews import Reviews, endpoint_of

__all__ = ["Paths"]

_READING = ("GET", "HEAD")


class Paths:
    """Answers requests by their path."""

    def __init__(
        self,
        probes: Probes,
        metrics: ServerMetrics,
        reviews: Reviews | None = None,
        paths: Sequence[str] = (),
    ) -> None:
        """Describe what is where.

        Args:
            probes: Answers the kubelet and Prometheus.
            metrics: Counts what is answered here.
            reviews: Answers reviews; only probes are served when None.
            paths: Where reviews are answered.
        """
        self._metrics = metrics
        self._reviewed = dict.fromkeys(paths, reviews.post) if reviews is not None else {}
        self._probes: dict[str, Callable[[web.BaseRequest], Awaitable[web.Response]]] = {
            "/healthz": probes.healthz,
            "/readyz": probes.readyz,
            "/metrics": probes.metrics,
        }
        self._known = ", ".join((*self._reviewed, *self._probes))

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer a request. Every one gets an answer."""
        path, method = endpoint_of(request), request.method
        post = self._reviewed.get(path)
        if post is not None and method == "POST":
            return await post(request)
        probe = self._probes.get(path)
        if probe is not None and method in _READING:
            return await probe(request)
        known = path if path in self._reviewed else "other"
        return turned_away(self._metrics, known, self._elsewhere(path, method))

    def _elsewhere(self, path: str, method: str) -> web.Response:
        if path in self._reviewed:
            message = f"{path} takes reviews by POST, found {method}"
            return status(405, message, {"Allow": "POST"})
        if path in self._probes:
            message = f"{path} is read by GET, found {method}"
            return status(405, message, {"Allow": ", ".join(_READING)})
        return status(404, f"there is nothing at {path}, known are {self._known}")
