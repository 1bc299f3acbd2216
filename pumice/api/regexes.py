"""Regular expressions as Go has them: RE2, which neither looks around nor back, and never takes long.

Source: webhook specification, section 11.
"""

import re
from functools import lru_cache

__all__ = ["regex_problem"]

_TOKEN = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|.", re.DOTALL)
_LONGEST = 16_384
"""Characters of a pattern. RE2 gives up on one that takes too much memory, and says so on standard error
thousands of times."""

_ONE_BYTE = r"\C"
"""The one thing that RE2 knows and Go does not."""


@lru_cache(maxsize=1024)
def regex_problem(pattern: str) -> str | None:
    """Say why a text is no regular expression, or None when it is."""
    if len(pattern) > _LONGEST:
        return f"must have at most {_LONGEST} characters, found {len(pattern)}"
    import re2  # type: ignore[import-untyped]  # late: few processes ever need it

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options=options)
    except re2.error as error:
        told = error.args[0]
        reason = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
        return f'must be a regular expression of RE2, found "{pattern}": {reason}'
    if _ONE_BYTE in pattern and _ONE_BYTE in _TOKEN.findall(pattern):
        return f'must be a regular expression of RE2, found "{pattern}": no {_ONE_BYTE} in Go'
    return None
