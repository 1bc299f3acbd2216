"""Jobs as a reader finds them, line by line: limits, skipped lines, unique names, and the order of submission.

Input is what anyone may have written. A line that breaks the format is skipped, and a file with many of them is refused: it
is probably in another format.
"""

import math
import re
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from pumice.api.names import LABEL_LENGTH, dns_subdomain_problem
from pumice.traces.trace import (
    LINES_LIMIT,
    REPLICAS_LIMIT,
    SkippedLine,
    Trace,
    TraceError,
    TraceJob,
)

UTF_8_MARK = b"\xef\xbb\xbf"
"""With what some programs begin a file of UTF-8."""

LINE_LIMIT = 1 << 20
"""Bytes of one line."""

SECONDS_LIMIT = 1e10
"""Largest moment and duration, 317 years: all sums of them are exact enough, and have a date."""

BAD_SHARE = 0.01
"""Share of bad lines up to which a trace is read."""

_SHOWN = 3
_NAME_LENGTH = 40
"""Characters of a name, so that names of pods, which begin with it, fit into a DNS label."""

_DIGITS = re.compile(r"(\d+)", re.ASCII)
_NOT_LABEL = re.compile(r"[^a-z0-9]+")


class BadLineError(ValueError):
    """A line that breaks the format; the message says what is wrong."""


def written_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Lines that are not empty, with their numbers from 1.

    Raises:
        TraceError: There are too many.
    """
    data = data.removeprefix(UTF_8_MARK)
    begin = count = number = 0
    while begin < len(data):
        end = data.find(b"\n", begin)
        end = len(data) if end < 0 else end
        number += 1
        line = data[begin:end].strip()
        begin = end + 1
        if line:
            count += 1
            if count > LINES_LIMIT:
                raise TraceError(
                    f"more than {LINES_LIMIT:,} lines: split the trace, for example with `head`"
                )
            yield number, line


def decoded(line: bytes) -> str:
    """A line as text.

    Raises:
        BadLineError: It is too long, is not UTF-8, or has a NUL.
    """
    if len(line) > LINE_LIMIT:
        raise BadLineError(f"{len(line):,} bytes; expected at most {LINE_LIMIT:,}")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise BadLineError("the line is not UTF-8") from None
    if "\0" in text:
        raise BadLineError("the line has a NUL character")
    return text


def number(text: str | float, what: str, least: float = 0.0, most: float = SECONDS_LIMIT) -> float:
    """A number within bounds.

    Raises:
        BadLineError: The text is something else.
    """
    try:
        found = math.nan if isinstance(text, str) and "_" in text else float(text)
    except (ValueError, OverflowError):
        found = math.nan
    if not least <= found <= most:
        raise BadLineError(
            f"{what} is {_shown(text)}; expected a number from {least:g} to {most:g}"
        )
    return found + 0.0  # without the sign of -0.0


def whole(text: str | float, what: str, least: int, most: int) -> int:
    """A whole number within bounds; the bounds are of at most 15 digits.

    Raises:
        BadLineError: The text is something else.
    """
    found = number(text, what, least, most)
    if not found.is_integer():
        raise BadLineError(f"{what} is {_shown(text)}; expected a whole number")
    return int(found)


def label(text: str) -> str:
    """A DNS label like a text; empty if the text has no letter or digit."""
    return _NOT_LABEL.sub("-", text.lower()).strip("-")[:LABEL_LENGTH].rstrip("-")


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return f"{text[:40]}…" if len(text) > 40 else text or "empty"


class JobList:
    """Jobs of a file while it is read.

    Attributes:
        lines: Lines so far that are to be jobs.
        skipped: Those of them that are none.
        remarks: Sentences for the user.
    """

    def __init__(self, unit: str = "line") -> None:
        """Begin.

        Args:
            unit: What the file is made of.
        """
        self._unit = unit
        self.lines = 0
        self.skipped: list[SkippedLine] = []
        self.remarks: list[str] = []
        self._jobs: list[tuple[tuple[object, ...], TraceJob]] = []

    def add(self, job: TraceJob, order: tuple[object, ...]) -> None:
        """Add a job.

        Args:
            job: The job; its name may be any text.
            order: What decides between jobs of equal submission: the same for any order of the lines, where they have names.

        Raises:
            BadLineError: The trace cannot have this job.
        """
        if not 1 <= job.replicas <= REPLICAS_LIMIT:
            raise BadLineError(
                f"{_shown(job.replicas)} pods; expected a whole number from 1 to {REPLICAS_LIMIT:,}"
            )
        if not 1 <= job.min <= job.replicas:
            raise BadLineError(f"min is {job.min}; expected 1 to replicas, which is {job.replicas}")
        if problem := dns_subdomain_problem(job.queue):
            raise BadLineError(f"the name of the queue: {problem}")
        self._jobs.append(((job.submit, *order), job))

    def skip(self, line: int, why: str, *, is_bad: bool = True) -> None:
        """Leave a line out, which counts as one of `lines`."""
        self.skipped.append(SkippedLine(line, why, is_bad))

    def trace(self) -> Trace:
        """The trace, with unique names.

        Raises:
            TraceError: Too many lines are bad.
        """
        bad = [each for each in self.skipped if each.is_bad]
        if len(bad) > self.lines * BAD_SHARE:
            shown = "; ".join(f"{self._unit} {each.line}: {each.why}" for each in bad[:_SHOWN])
            raise TraceError(
                f"{len(bad):,} of {self.lines:,} {self._unit}s cannot be read, which is more than 1 %: {shown}"
                f"{'; …' if len(bad) > _SHOWN else ''}"
            )
        self._jobs.sort(key=lambda each: (each[0], msgspec.json.encode(each[1], order="sorted")))
        taken: dict[str, int] = {}
        jobs = []
        for place, (_, job) in enumerate(self._jobs, 1):
            name = _unique(label(job.name)[:_NAME_LENGTH].strip("-") or f"job-{place}", taken)
            jobs.append(job if name == job.name else replace(job, name=name))
        return Trace(
            jobs=jobs,
            skipped=self.skipped,
            lines=self.lines,
            remarks=self.remarks,
            unit=self._unit,
        )


def by_name(name: str) -> tuple[object, ...]:
    """The order of names: as people count, `job-9` before `job-10`."""
    parts = _DIGITS.split(name[:200])
    return tuple(int(each) if place % 2 else each for place, each in enumerate(parts)), name


def _unique(name: str, taken: dict[str, int]) -> str:
    """A name, with a number if there is one like it.

    Args:
        name: The name.
        taken: The names before it, and the last number that was added to each.
    """
    found = name
    while found in taken:
        taken[name] += 1
        found = f"{name}-{taken[name]}"
    taken[found] = 1
    return found
