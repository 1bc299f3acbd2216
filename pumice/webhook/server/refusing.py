"""Requests that are not even read as reviews: answered, counted and logged in one place."""

import structlog
from aiohttp import web

from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.server.replies import message_of

__all__ = ["turned_away"]

log = structlog.stdlib.get_logger("pumice.webhook")


def turned_away(metrics: ServerMetrics, path: str, response: web.Response) -> web.Response:
    """Count and log an answer of `replies.status`, and give it back.

    Args:
        metrics: Counts.
        path: One of those that are known, or `other`.
        response: The answer.
    """
    metrics.turned_away(path, response.status)
    log.info("turned away", path=path, status=response.status, message=message_of(response))
    return response
