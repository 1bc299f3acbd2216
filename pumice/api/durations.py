"""Durations in the form of Go, which Kubernetes uses: `1h30m`, `10s`, `1.5s`; and ages as kubectl shows them.

Exact, in whole nanoseconds, so that two spellings of one duration compare equal.
"""

import re
from fractions import Fraction

from pumice.api.json_words import quoted
from pumice.api.meta import parse_time
from pumice.api.remembering import remembered

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE = re.compile(rf"([+-]?)(0|(?:{_PART.pattern})+)", re.ASCII)
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)
_UNIT = re.compile(r"[^.0-9]+")
_SECOND = _NANOSECONDS["s"]
_LIMIT = 2**63
_LONGEST = 100
"""Maximum length of a duration, so that no manifest can cause a long calculation."""


@remembered(1024)
def parse_nanoseconds(text: str) -> int | None:
    """Read a duration as nanoseconds; None if the text is not a duration or does not fit into 64 bits."""
    match = _WHOLE.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        return None
    parts = _PART.findall(match[2])
    total = sum(int(Fraction(number) * _NANOSECONDS[unit]) for number, unit in parts)
    if total >= _LIMIT:
        return None
    return -total if match[1] == "-" else total


def parse_seconds(text: str) -> float | None:
    """Read a waiting time in seconds; None if the text is not a duration or is negative."""
    found = parse_nanoseconds(text)
    return None if found is None or found < 0 else found / _SECOND


def format_duration(seconds: float) -> str:
    """Write whole seconds as `metav1.Duration` does: `1h2m3s`, `2m0s`, `7s`."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{left}s"
    return f"{minutes}m{left}s" if minutes else f"{left}s"


def duration_problem(text: str) -> str | None:
    """Explain why a string is not a valid duration; None if it is."""
    if parse_nanoseconds(text) is not None:
        return None
    return f"{_duration_fault(text)}; write a duration such as 90s, 10m or 1h30m"


def wait_problem(text: str) -> str | None:
    """Explain why a string is not a duration of 0 or more; None if it is."""
    if parse_seconds(text) is not None:
        return None
    return duration_problem(text) or f"must not be less than 0, found {quoted(text)}"


def _duration_fault(text: str) -> str:
    """What is wrong with a duration, in the words of Go, which Volcano's users know."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    while rest and (number := _NUMBER.match(rest)):
        unit = _UNIT.match(rest, number.end())
        if unit is None:
            return f"time: missing unit in duration {quoted(text)}"
        if unit[0] not in _NANOSECONDS:
            return f"time: unknown unit {quoted(unit[0])} in duration {quoted(text)}"
        rest = rest[unit.end() :]
    return f"time: invalid duration {quoted(text)}"


NOT_KNOWN = "<unknown>"
"""What kubectl shows in a cell whose value is not known."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY


def human_age(timestamp: str | None, now: float) -> str:
    """How long ago something was, as kubectl shows it."""
    since = parse_time(timestamp)
    return NOT_KNOWN if since is None else human_duration(now - since)


def human_duration(seconds: float) -> str:
    """A duration in at most two units; longer durations use coarser units.

    Source: Kubernetes apimachinery, `duration.HumanDuration`; the limits are facts of its output.
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    for limit, unit, letter, part, small in (
        (10 * _MINUTE, _MINUTE, "m", 1, "s"),
        (3 * _HOUR, _MINUTE, "m", 0, ""),
        (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
        (2 * _DAY, _HOUR, "h", 0, ""),
        (8 * _DAY, _DAY, "d", _HOUR, "h"),
        (2 * _YEAR, _DAY, "d", 0, ""),
        (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    ):
        if whole < limit:
            rest = whole % unit // part if part else 0
            return f"{whole // unit}{letter}" + (f"{rest}{small}" if rest else "")
    return f"{whole // _YEAR}y"
