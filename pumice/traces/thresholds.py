"""Thresholds of a run: `wait.p95 > +10%` says when it fails.

A threshold is a path of the summary, a comparison, and either a number or a signed percentage of the base's number. What a threshold
describes is the failure.
"""

import difflib
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

_COMPARISONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_FORM = re.compile(
    r"\s*(?P<path>[^\s<>=!]{1,300})\s*(?P<comparison>[<>]=?|[=!]=)\s*"
    r"(?:(?P<percent>[+-][0-9]{1,9}(?:\.[0-9]{1,9})?)\s*%|(?P<number>-?[0-9]{1,15}(?:\.[0-9]{1,15})?))\s*",
    re.ASCII,
)
_EXAMPLE = "`wait.p95 > +10%` or `utilization.cpu < 0.8`"


class ThresholdError(ValueError):
    """A threshold that cannot be read or applied; the message is one sentence for the user."""


class Threshold:
    """When a run fails.

    Attributes:
        text: The threshold as it was given.
        is_relative: True if it compares with the base.
    """

    def __init__(self, text: str) -> None:
        """Read a threshold.

        Raises:
            ThresholdError: The text is not a threshold.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise ThresholdError(
                f"invalid threshold {text!r}: expected a number of the summary, a comparison ({', '.join(_COMPARISONS)}), and a number "
                f"or a percentage with its sign, for example {_EXAMPLE}"
            )
        self.text = text.strip()
        self._path = found["path"]
        self._holds = _COMPARISONS[found["comparison"]]
        self.is_relative = found["percent"] is not None
        self._value = Fraction(found["percent"] or found["number"])

    def check(self, summary: Mapping[str, Any], *, is_compared: bool) -> None:
        """Check what can be checked before a run.

        Args:
            summary: That of a run without a job, as plain data.
            is_compared: True if there is a base.

        Raises:
            ThresholdError: No run has such a number, or the threshold is a percentage and there is no base.
        """
        if self.is_relative and not is_compared:
            raise ThresholdError(
                f"threshold {self.text!r} is a percentage, which needs --compare or --compare-nodes: give a number instead, or compare"
            )
        found, rest = self._followed(summary)
        is_open = rest and isinstance(found, Mapping) and not found  # names are those of the run
        if not is_open and (rest or isinstance(found, Mapping | bool)):
            raise ThresholdError(f"threshold {self.text!r}: {self._expected(summary)}")

    def failure(self, summary: Mapping[str, Any], base: Mapping[str, Any] | None) -> str:
        """Why a run fails, in one sentence; empty if it does not.

        Args:
            summary: The summary of the run, as plain data: of the other run where two were compared.
            base: That of the base; None without one.

        Raises:
            ThresholdError: The summary has no such number.
        """
        value = self._number(summary)
        before = None if base is None else self._number(base)
        if value is None:
            if base is not None and before is None:
                return ""
            return f"{self.text}: {self._path} has no value"
        limit = self._value
        if self.is_relative:
            if before is None:
                return ""
            limit = _as_written(before) * (100 + self._value) / 100
        if not self._holds(_as_written(value), limit):
            return ""
        shown = f"{self.text}: {self._path} is {value}"
        return shown if before is None else f"{shown}, and {before} in the base"

    def _number(self, summary: Mapping[str, Any]) -> float | None:
        found, rest = self._followed(summary)
        if rest or isinstance(found, Mapping | bool):
            raise ThresholdError(f"threshold {self.text!r}: {self._expected(summary)}")
        number: float | None = found
        return number

    def _followed(self, summary: Mapping[str, Any]) -> tuple[Any, str]:
        """What the path leads to, and the rest of it that leads no further."""
        found: Any = summary
        rest = self._path
        while rest and isinstance(found, Mapping):
            # Names of resources and queues have dots in them, so the longest name counts.
            name = max(
                (key for key in found if rest == key or rest.startswith(f"{key}.")),
                key=len,
                default=None,
            )
            if name is None:
                break
            found, rest = found[name], rest[len(name) + 1 :]
        return found, rest

    def _expected(self, summary: Mapping[str, Any]) -> str:
        paths = [".".join(path) for path in paths_of(summary)]
        inside = [path for path in paths if path.startswith(f"{self._path}.")]
        near = inside[:3] or difflib.get_close_matches(self._path, paths, 3) or paths[:3]
        return f"the summary has no number {self._path!r}; it has, for example, {', '.join(near)}"


def _as_written(value: float) -> Fraction:
    """A number as JSON shows it: 0.1 is a tenth, so that it equals the 0.1 of a threshold."""
    return Fraction(str(value))


def paths_of(summary: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The path of each number of a summary, in order."""
    for name, value in summary.items():
        if isinstance(value, Mapping):
            yield from ((name, *rest) for rest in paths_of(value))
        elif not isinstance(value, bool):
            yield (name,)
