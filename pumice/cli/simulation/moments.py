"""Parsing of times on the command line."""

import math

from pumice.api.meta import parse_time
from pumice.cli.exits import UserError

__all__ = ["read_moment"]

_YEAR_9999 = 253_370_764_800.0
"""Start of the last year that RFC 3339 can write; cycles after the last accepted time need room."""


def read_moment(text: str) -> float:
    """Read a time: RFC 3339, or UNIX seconds.

    Raises:
        UserError: The text is neither, or the time is before 1970 or after 9998.
    """
    moment = parse_time(text)
    if moment is None:
        try:
            moment = float(text)
        except ValueError:
            moment = math.nan
    if not 0 <= moment < _YEAR_9999:
        raise UserError(
            f"--at {text!r}: expected a time such as 2026-01-31T12:00:00Z, or UNIX seconds"
        )
    return moment
