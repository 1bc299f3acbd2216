"""The API server's timeout, and the answer when it is too short.

After its timeout the API server ignores the answer, and its user reads that the webhook failed. So a review that
cannot be decided in time is refused with that reason, shortly before the timeout.
"""

from dataclasses import replace

from aiohttp import web

from pumice.api import reviews
from pumice.api.durations import parse_nanoseconds
from pumice.webhook.answers import Answer

__all__ = ["allowed_seconds", "late"]

_MARGIN_SECONDS = 0.5
"""Reserved for sending the answer, at most."""

_MARGIN_SHARE = 0.25
"""Reserved of a short timeout; the shortest that a webhook can have is one second."""


def allowed_seconds(request: web.BaseRequest) -> float:
    """Seconds in which to answer by `?timeout=`; infinity if there is none or it is invalid."""
    nanoseconds = parse_nanoseconds(request.query.get("timeout", ""))
    if nanoseconds is None or nanoseconds <= 0:
        return float("inf")
    seconds = nanoseconds / 1e9
    return seconds - min(_MARGIN_SECONDS, seconds * _MARGIN_SHARE)


def late(answer: Answer, names: tuple[str, ...]) -> Answer:
    """The refusal of a review for which it is unknown whether its queues exist.

    Args:
        answer: The answer without these queues.
        names: The queues.
    """
    queues = ", ".join(f'"{name}"' for name in names)
    message = (
        f"the API server did not say in time whether queue {queues} exists, so this cannot be "
        "decided; try again"
    )
    return replace(
        answer,
        body=reviews.encode(answer.uid, reviews.errored(504, message, reason="Timeout")),
        outcome="errored",
        codes=(),
        warned=(),
        tolerated=(),
        status=504,
        problem=message,
    )
