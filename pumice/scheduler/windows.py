"""Daily time windows, such as 22:00-6:00, in the local time of a zone.

A window is open from its start, inclusive, to its end, exclusive. One whose end is not after its start ends on the next day.
A time that the clock skips counts as if it had not skipped it, and of a time that it shows twice the first one counts.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from pumice.api.remembering import remembered

__all__ = ["Window", "next_change", "read_window", "window_problem"]

_FORM = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})", re.ASCII)
_HOURS, _MINUTES = 24, 60
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Window:
    """A window of every day.

    Attributes:
        start: Time of day at which it opens.
        end: Time of day at which it closes, on the next day unless it is after the start.
    """

    start: time
    end: time

    def is_open(self, now: float, zone: ZoneInfo) -> bool:
        """True if the window is open at a time in UNIX seconds."""
        return any(start <= now < end for start, end in self._around(now, zone))

    def next_change(self, now: float, zone: ZoneInfo) -> float:
        """When it opens or closes next, UNIX seconds."""
        return min(moment for span in self._around(now, zone) for moment in span if moment > now)

    def _around(self, now: float, zone: ZoneInfo) -> Iterator[tuple[float, float]]:
        """When it opens and closes from yesterday to tomorrow."""
        today = datetime.fromtimestamp(now, zone).date()
        for day in (today - _DAY, today, today + _DAY):
            last = day if self.end > self.start else day + _DAY
            yield _moment(day, self.start, zone), _moment(last, self.end, zone)


def _moment(day: date, at: time, zone: ZoneInfo) -> float:
    return datetime.combine(day, at, zone).astimezone(UTC).timestamp()


@remembered(64)
def read_window(text: str) -> Window | None:
    """Read a window, such as `8:30-18:00`; None if the text is not one."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        return None
    hour, minute, end_hour, end_minute = (int(part) for part in match.groups())
    if max(hour, end_hour) >= _HOURS or max(minute, end_minute) >= _MINUTES:
        return None
    return Window(time(hour, minute), time(end_hour, end_minute))


def window_problem(text: str) -> str | None:
    """Explain why a string is not a valid window; None if it is."""
    if read_window(text) is not None:
        return None
    return (
        "must be two times of day such as 22:00-6:00, with hours from 0 to 23 and minutes of two digits (an end that is "
        f"not after the start is on the next day; 0:00-0:00 is always open), found {text!r}"
    )


def next_change(windows: Iterable[Window], now: float, zone: ZoneInfo) -> float | None:
    """When the first of several windows opens or closes next, UNIX seconds; None without windows."""
    return min((window.next_change(now, zone) for window in windows), default=None)
