"""Answers that are no reviews: HTTP errors, worded as Kubernetes words them."""

from collections.abc import Mapping

import msgspec
from aiohttp import web

__all__ = ["JSON", "status"]

JSON = {"Content-Type": "application/json"}

_REASONS = {
    400: "BadRequest",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "Timeout",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    500: "InternalError",
}


def status(code: int, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """A `metav1.Status` as a response.

    Args:
        code: HTTP status.
        message: What is wrong and what would be right.
        headers: Beside the content type.
    """
    body = {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS.get(code, "Unknown"),
        "code": code,
    }
    return web.Response(
        status=code, body=msgspec.json.encode(body), headers={**JSON, **(headers or {})}
    )
