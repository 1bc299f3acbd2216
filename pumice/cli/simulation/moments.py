"""Moments on the command line."""

import math

from pumice.api.meta import parse_time
from pumice.cli.exits import UserError

__all__ = ["read_moment"]

_YEAR_9999 = 253_370_764_800.0
"""The last that RFC 3339 has words for begins here, which leaves room for the cycles after it."""


def read_moment(text: str) -> float:
    """Read a moment: RFC 3339, or UNIX seconds.

    Raises:
        UserError: It is neither, or lies before 1970 or after 9998.
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
