"""Errors of an API server.

There is one class for each reaction of callers: after `Conflict` they read again and repeat, after `AlreadyExists` they
adopt the object, after `Gone` they list again. Other errors are a plain `ApiError`. The text has the verb, the path and
the server's message, so that one log line is enough.
"""

# ruff: noqa: N818 - the classes bear the names that Kubernetes gives these answers

from typing import Any

import msgspec

from pumice.api.messages import shortened
from pumice.api.raw import list_in

LONGEST_RETRY_AFTER = 30.0
"""Longest wait that a server can ask for, in seconds; the spread of a `Backoff` comes on top."""

SHORTEST_RETRY_AFTER = 0.1


class ApiError(Exception):
    """A request that failed.

    Attributes:
        status: HTTP status; 0 without a response.
        reason: Kubernetes' machine-readable reason, for example `AlreadyExists`.
        message: The server's message.
        details: `Status.details`, with `causes` where the server gives them.
        context: Verb and path of the request.
        retry_after: Seconds after which the server asks to be tried again, if it said so.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        *,
        context: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.context = context
        self.retry_after = retry_after

    def __str__(self) -> str:
        """`GET /api/v1/…: 404 NotFound: pods "x" not found`; a long message is cut."""
        head = f"{self.context}: " if self.context else ""
        code = f"{self.status} " if self.status else ""
        return f"{head}{code}{self.reason}: {shortened(self.message)}"

    @property
    def causes(self) -> list[dict[str, Any]]:
        """`details.causes`: one entry a field error, with `field`, `message` and `reason`."""
        return list_in(self.details, "causes")


class NotFound(ApiError):
    """404: the object, or the kind, does not exist."""


class InvalidName(NotFound):
    """Nothing can have this name, so no request was sent."""


class Conflict(ApiError):
    """409: the object changed since it was read; read again and repeat."""


class AlreadyExists(ApiError):
    """409: an object of this name exists."""


class Gone(ApiError):
    """410: the resourceVersion or continue token is too old; list again."""


class Invalid(ApiError):
    """422: the object breaks the schema or a rule; `causes` name the fields."""


class Forbidden(ApiError):
    """403: not allowed, by RBAC or by an admission plugin."""


class TooManyRequests(ApiError):
    """429: the server is busy, or a disruption budget refuses an eviction for now."""

    @property
    def patience(self) -> float:
        """Seconds until the next attempt: what the server asked for, within limits, or one second."""
        asked = 1.0 if self.retry_after is None else self.retry_after
        return min(LONGEST_RETRY_AFTER, max(SHORTEST_RETRY_AFTER, asked))


class TooLarge(ApiError):
    """A response with more bytes than the caller takes; the rest was not read."""


class Unavailable(ApiError):
    """No response, or one that says that the server cannot answer now (500, 502, 503, 504)."""


_BY_STATUS: dict[int, type[ApiError]] = {
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
    500: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
_BY_REASON: dict[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Expired": Gone,
    "Gone": Gone,
}


class _Status(msgspec.Struct, rename="camel"):
    """The fields of `metav1.Status` that an error needs."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    details: dict[str, Any] | None = None
    code: int = 0


_decoder = msgspec.json.Decoder(_Status)


def error_of(
    status: int, body: bytes | msgspec.Raw, context: str, retry_after: float | None = None
) -> ApiError:
    """Create the error for a response.

    Args:
        status: HTTP status, or 0 to take the one in the body (a watch's ERROR event).
        body: A `metav1.Status`, or other content, for example of a proxy.
        context: Verb and path.
        retry_after: The Retry-After header, in seconds.
    """
    try:
        answer = _decoder.decode(body)
    except msgspec.MsgspecError:
        answer = _Status()
    if answer.kind == "Status":
        code = status or answer.code
        reason, message, details = answer.reason, answer.message, answer.details
    else:
        # Not Kubernetes' words: a proxy's page, or an old component's plain text.
        code, reason, details = status, "", None
        message = bytes(body)[:200].decode(errors="replace").strip()
    kind = _BY_REASON.get(reason) or _BY_STATUS.get(code, ApiError)
    if retry_after is None and details and isinstance(details.get("retryAfterSeconds"), int):
        retry_after = float(details["retryAfterSeconds"])
    return kind(
        code,
        reason or "Unknown",
        message or "the server gave no explanation",
        details,
        context=context,
        retry_after=retry_after,
    )
