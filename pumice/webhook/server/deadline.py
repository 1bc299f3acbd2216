"""How long the API server waits, and what it is told when that is not enough.

Whoever answers late is not heard: the API server has given up, and its user reads of a webhook that
failed. So an answer that cannot be found in time is a refusal that says so, a moment before.
"""

from dataclasses import replace

from aiohttp import web

from pumice.api import reviews
from pumice.api.durations import parse_nanoseconds
from pumice.webhook.answers import Answer

__all__ = ["allowed_seconds", "late"]

_MARGIN_SECONDS = 0.5
"""Kept back for the way home, at most."""

_MARGIN_SHARE = 0.25
"""Of a short time; the shortest that a webhook can be given is one second."""


def allowed_seconds(request: web.BaseRequest) -> float:
    """Seconds in which to answer by `?timeout=`; without end where that says nothing of use."""
    nanoseconds = parse_nanoseconds(request.query.get("timeout", ""))
    if nanoseconds is None or nanoseconds <= 0:
        return float("inf")
    seconds = nanoseconds / 1e9
    return seconds - min(_MARGIN_SECONDS, seconds * _MARGIN_SHARE)


def late(answer: Answer, names: tuple[str, ...]) -> Answer:
    """Instead of an answer that would refuse for want of queues: nobody knows, so try again.

    Args:
        answer: What would have been said.
        names: Queues of which it is not known whether they exist.
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
