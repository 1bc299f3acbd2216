"""Moments on the command line."""

from pumice.api.meta import parse_time
from pumice.cli.exits import UserError

__all__ = ["read_moment"]


def read_moment(text: str) -> float:
    """Read a moment: RFC 3339, or UNIX seconds.

    Raises:
        UserError: It is neither.
    """
    moment = parse_time(text)
    if moment is not None:
        return moment
    try:
        return float(text)
    except ValueError:
        raise UserError(
            f"--at {text!r}: expected a time such as 2026-01-31T12:00:00Z, or UNIX seconds"
        ) from None
