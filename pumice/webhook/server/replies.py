"""Answers that are no reviews: HTTP errors, worded as Kubernetes words them."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from aiohttp import web

from pumice.api.fields import plain

__all__ = ["JSON", "last_words", "message_of", "status"]

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


class _Said(msgspec.Struct, frozen=True):
    message: str


_LONGEST = 512
"""Characters of a message; it may quote what came in."""


def status(code: int, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """A `metav1.Status` as a response.

    Args:
        code: HTTP status.
        message: What is wrong and what would be right.
        headers: Beside the content type.
    """
    return web.Response(
        status=code, body=_encoded(code, message), headers={**JSON, **(headers or {})}
    )


def message_of(response: web.Response) -> str:
    """What such a response says."""
    assert isinstance(response.body, bytes)
    return msgspec.json.decode(response.body, type=_Said).message


def last_words(code: int, message: str) -> bytes:
    """The same as bytes, for a connection that ends before anybody could make a response for it."""
    body = _encoded(code, message)
    head = (
        f"HTTP/1.1 {code} {HTTPStatus(code).phrase}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def _encoded(code: int, message: str) -> bytes:
    # What is quoted may hold half characters and lines of its own.
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "message": plain(" ".join(message.split()))[:_LONGEST],
            "reason": _REASONS.get(code, "Unknown"),
            "code": code,
        }
    )
