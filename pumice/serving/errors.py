"""HTTP errors as Kubernetes words them: a `metav1.Status` as JSON."""

from collections.abc import Mapping

import msgspec
from aiohttp import web

from pumice.api.fields import plain

__all__ = ["JSON", "HttpError"]

JSON = {"Content-Type": "application/json"}

_REASONS = {
    400: "BadRequest",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "Timeout",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    500: "InternalError",
    503: "ServiceUnavailable",
}

_MAX_MESSAGE = 512
"""Characters of a message; it may quote the request."""


class HttpError(Exception):
    """A request that is answered with an HTTP error instead of a review.

    Attributes:
        code: HTTP status.
        message: What is wrong and what was expected, in one line.
        headers: Headers beside the content type.
    """

    def __init__(self, code: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        """Describe the error."""
        # The request may hold line breaks and lone surrogates.
        self.message = plain(" ".join(message.split()))[:_MAX_MESSAGE]
        super().__init__(self.message)
        self.code = code
        self.headers = headers or {}

    def response(self) -> web.Response:
        """The error as a response."""
        status = {
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": _REASONS.get(self.code, "Unknown"),
            "code": self.code,
        }
        body = msgspec.json.encode(status)
        return web.Response(status=self.code, body=body, headers={**JSON, **self.headers})
