r"""Regular expressions of Go: RE2, which has no lookaround and no backreferences, and matches in linear time.

Matching is fast. Compiling takes time in proportion to the size of the compiled program, and `\pL{400}` compiles to half a
million instructions. Callers that compile many patterns must limit their size.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from pumice.api.remembering import remembered

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


def searcher(pattern: str) -> Callable[[str], bool]:
    """A function that finds a valid pattern anywhere in a name.

    A search takes about two microseconds, so names without the literal text with which the pattern begins are told apart first.
    """
    import re2

    literal, is_anchored, is_all = _literal_start(pattern)

    def begins(name: str) -> bool:
        return name.startswith(literal) if is_anchored else literal in name

    if is_all:
        return begins
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    search = re2.compile(pattern, options=options).search
    return lambda name: begins(name) and search(name.encode()) is not None


_START = re.compile(r"(\^?)((?:[A-Za-z0-9_-]|\\[.-])*)")
_CHANGES_MEANING = ("|", "(?", r"\Q", r"\E")
"""What a pattern may contain so that the text at its beginning is not needed, or is not what it looks like."""


def _literal_start(pattern: str) -> tuple[str, bool, bool]:
    """Text with which each match begins, whether names begin with it, too, and whether nothing else is asked for."""
    if any(each in pattern for each in _CHANGES_MEANING):
        return "", False, False
    found = _START.match(pattern)
    assert found is not None
    rest = pattern[found.end() :]
    literal = found[2].replace("\\", "")
    if rest[:1] in ("?", "*", "{"):
        literal = literal[:-1]
    return literal, bool(found[1]), not rest


def _none(pattern: str, reason: str) -> str:
    return f'must be a regular expression of RE2, found "{pattern}": {reason}'
