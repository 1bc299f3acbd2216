r"""Regular expressions of Go: RE2, which has no lookaround and no backreferences, and matches in linear time.

Matching is fast. Compiling takes time in proportion to the size of the compiled program, and `\pL{400}` compiles to half a
million instructions. Callers that compile many patterns must limit their size.
"""

import re
from dataclasses import dataclass

from pumice.api.remembering import remembered

__all__ = ["Regex", "judge_regex", "regex_problem"]

_TOKEN = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|.", re.DOTALL)
_LONGEST = 16_384
"""Characters of a pattern. RE2 gives up on one that takes too much memory, and says so on standard error
thousands of times."""

_ONE_BYTE = r"\C"
"""A pattern with group names beyond ASCII: the one syntax that RE2 accepts and Go does not."""

_TOO_LARGE = "pattern too large"
_MOST = 100_000
"""Instructions whose compilation takes as long as finding out that a pattern needs too many."""


@dataclass(frozen=True, slots=True)
class Regex:
    """The result of checking a pattern.

    Attributes:
        problem: Why it is not a valid regular expression; None if it is.
        large: Whether it is too large for Pumice and valid for Go, which allows larger programs.
        instructions: Cost of the check in instructions; 0 if the pattern was not compiled.
    """

    problem: str | None
    large: bool = False
    instructions: int = 0


def regex_problem(pattern: str) -> str | None:
    """Explain why a string is not a valid regular expression; None if it is."""
    return judge_regex(pattern).problem


@remembered(1024)
def judge_regex(pattern: str) -> Regex:
    """Check whether a text is a regular expression, and how large its program is."""
    if len(pattern) > _LONGEST:
        problem = f"must have at most {_LONGEST} characters, found {len(pattern)}"
        return Regex(problem, large=True)
    import re2  # type: ignore[import-untyped]  # late: few processes ever need it

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options=options)
    except re2.error as error:
        told = error.args[0]
        reason = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
        large = reason.startswith(_TOO_LARGE)
        return Regex(_none(pattern, reason), large, _MOST if large else 0)
    size = compiled.programsize
    if _ONE_BYTE in pattern and _ONE_BYTE in _TOKEN.findall(pattern):
        return Regex(_none(pattern, f"no {_ONE_BYTE} in Go"), instructions=size)
    for name in compiled.groupindex:
        if not name.isascii():
            reason = f'the group "{name}" must be named with ASCII letters, digits and _'
            return Regex(_none(pattern, reason), instructions=size)
    return Regex(None, instructions=size)


def _none(pattern: str, reason: str) -> str:
    return f'must be a regular expression of RE2, found "{pattern}": {reason}'
