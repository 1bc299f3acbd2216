"""Lines of the logs of pods, in the order of their times, as text that is safe on a terminal.

The API server gives each line with its time (`timestamps=true`). Pure: bytes in, text out.
"""

import heapq
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from pumice.api.failures import without_escapes
from pumice.api.fields import plain

__all__ = ["LONGEST", "Lines", "LogLine", "in_order", "shown"]

LONGEST = 65_536
"""Bytes of the longest line; a longer one is shown as several."""

_PART = 16_384
"""Bytes of the parts in which container runtimes write a long line."""

_TIME = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d) ?")


class LogLine(NamedTuple):
    """A line of a log.

    Attributes:
        moment: When it was written, in nanoseconds since 1970.
        source: Number of the log; lines of the same moment are shown in this order.
        text: The line, without what controls a terminal.
    """

    moment: int
    source: int
    text: str


class Lines:
    """The lines of one log, from chunks of bytes; it can be read again from where it broke off.

    Attributes:
        source: Number of the log.
        last: Moment of the last line, in nanoseconds; 0 before the first one.
    """

    def __init__(self, source: int) -> None:
        """Begin a log with a number."""
        self.last = 0
        self.source = source
        self._rest = b""
        self._known = 0
        self._repeated: int | None = None

    def resume(self) -> str | None:
        """Begin to read again: the `sinceTime` to ask for, which has whole seconds; None before the first line.

        Lines that were read already are left out afterwards.
        """
        self._rest = b""
        self._repeated = self._known
        if not self.last:
            return None
        whole = datetime.fromtimestamp(self.last // 1_000_000_000, tz=UTC)
        return whole.strftime("%Y-%m-%dT%H:%M:%SZ")

    def feed(self, chunk: bytes) -> Iterator[LogLine]:
        """The lines that a chunk completes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            yield from self._read(line)
        while len(self._rest) > LONGEST:
            yield from self._read(self._rest[:LONGEST])
            self._rest = self._rest[LONGEST:]

    def end(self) -> Iterator[LogLine]:
        """The last line, if it has no line end."""
        rest, self._rest = self._rest, b""
        if rest:
            yield from self._read(rest)

    def _read(self, line: bytes) -> Iterator[LogLine]:
        moment, text = _timed(line)
        text = _whole(text)
        moment = self.last if moment is None else moment
        if self._repeated is not None:
            if moment < self.last:
                return
            if moment == self.last and self._repeated:
                self._repeated -= 1
                return
            self._repeated = None
        self._known = self._known + 1 if moment == self.last else 1
        self.last = max(moment, self.last)  # clocks may be set back; the order of a log counts more
        yield LogLine(self.last, self.source, shown(text))


def _whole(text: bytes) -> bytes:
    """A long line without the times that kubelets write before each part of it (kubernetes/kubernetes#77603)."""
    at = _PART
    while len(text) > at and (found := _TIME.match(text, at)) is not None:
        text = text[:at] + text[found.end() :]
        at += _PART
    return text


def in_order(logs: Iterable[Iterable[LogLine]]) -> Iterator[LogLine]:
    """Lines of several logs in the order of their times; those of one log keep their order."""
    return heapq.merge(*logs, key=lambda line: line[:2])


def shown(line: bytes) -> str:
    r"""A line as text: of a line that was overwritten (`\r`) what it showed last, without escapes and control characters."""
    text = line.decode(errors="replace").rstrip("\r").rpartition("\r")[2].expandtabs()
    return text if text.isprintable() else plain(without_escapes(text))


def _timed(line: bytes) -> tuple[int | None, bytes]:
    """The time of a line, and the rest of it."""
    found = _TIME.match(line)
    if found is None:
        return None, line
    second, fraction, zone = found.groups()
    begin = _second(second, zone)
    if begin is None:
        return None, line
    return begin + int((fraction or b"0").ljust(9, b"0")), line[found.end() :]


@lru_cache(maxsize=4096)
def _second(text: bytes, zone: bytes) -> int | None:
    try:
        moment = datetime.fromisoformat(f"{text.decode()}{zone.decode()}")
        return int(moment.timestamp()) * 1_000_000_000
    except (ValueError, OverflowError):
        return None
