"""The aiohttp applications: reviews and probes on the main port, probes alone on the other."""

from aiohttp import web

from pumice.cluster.probes import Probes
from pumice.webhook.server.replies import status
from pumice.webhook.server.reviews import Reviews

__all__ = ["PROBES", "REVIEWS", "application", "probe_application"]

REVIEWS = web.AppKey("reviews", Reviews)
PROBES = web.AppKey("probes", Probes)


def application(reviews: Reviews, probes: Probes, paths: tuple[str, ...]) -> web.Application:
    """The application of the main port.

    Args:
        reviews: Answers reviews.
        probes: Answers the kubelet and Prometheus.
        paths: Where reviews are answered, whatever follows in the path: the API server shows the
            whole of it to whom it could not get an answer for, so it can hold a word of advice.
    """
    app = web.Application()
    app[REVIEWS] = reviews
    for path in paths:
        for pattern in (path, path + "/{advice:.+}"):
            resource = app.router.add_resource(pattern)
            resource.add_route("POST", reviews.post)
            resource.add_route("*", _post_only)
    _add_probes(app, probes, paths)
    return app


def probe_application(probes: Probes) -> web.Application:
    """The application of the metrics port."""
    app = web.Application()
    _add_probes(app, probes, ())
    return app


def _add_probes(app: web.Application, probes: Probes, paths: tuple[str, ...]) -> None:
    app[PROBES] = probes
    answers = {"/healthz": probes.healthz, "/readyz": probes.readyz, "/metrics": probes.metrics}
    for path, answer in answers.items():
        resource = app.router.add_resource(path)
        resource.add_route("GET", answer)
        resource.add_route("HEAD", answer)
        resource.add_route("*", _get_only)
    known = ", ".join((*paths, *answers))

    async def nowhere(request: web.Request) -> web.Response:
        return status(404, f"there is nothing at {request.path}, known are {known}")

    app.router.add_route("*", "/{path:.*}", nowhere)


async def _post_only(request: web.Request) -> web.Response:
    message = f"{request.path} takes reviews by POST, found {request.method}"
    return status(405, message, {"Allow": "POST"})


async def _get_only(request: web.Request) -> web.Response:
    message = f"{request.path} is read by GET, found {request.method}"
    return status(405, message, {"Allow": "GET, HEAD"})
