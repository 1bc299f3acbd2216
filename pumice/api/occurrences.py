"""When schedules are due: the next instant after a moment, and the last one before it.

A calendar is due at each minute whose local time it lists. `once` is for schedules that do not list every hour. Where
clocks are put forward, the local times that are skipped are not due that day; where they are put back, those that are
repeated are due twice. With `once` a skipped time is due when the gap ends, and a repeated one is due the first time
only.

Time is cut into spans in which the offset of the zone does not change. Within a span local time is a number that grows with UTC,
so both searches take the days of a span and the listed times of a day in order.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, tzinfo
from functools import lru_cache
from itertools import islice

from pumice.api.schedules import Calendar, Interval

_DAY = 86_400
_EPOCH = date(1970, 1, 1).toordinal()

SEARCHED = 10 * 366
"""Number of days that are searched. 29 February may be eight years away."""

LAST = int(datetime(9998, 1, 1, tzinfo=UTC).timestamp())
"""UNIX seconds from which on nothing is due: RFC 3339 ends with year 9999."""


class Occurrences:
    """The instants at which a schedule is due in a time zone, in whole UNIX seconds.

    Those of an interval are counted from a moment; those of a calendar do not depend on it.
    """

    def __init__(
        self,
        schedule: Calendar | Interval,
        zone: tzinfo,
        *,
        anchor: float = 0.0,
        once: bool = False,
    ) -> None:
        """Describe the instants.

        Args:
            schedule: When it is due.
            zone: Time zone of the schedule.
            anchor: UNIX seconds from which an interval is counted.
            once: Whether each listed time of a day is due exactly once, also if a change of the clock skips or repeats
                it.
        """
        self._schedule = schedule
        self._zone = zone
        self._anchor = int(anchor)
        self._once = once and isinstance(schedule, Calendar) and len(schedule.hours) < 24

    def after(self, moment: float) -> int | None:
        """The first instant later than a moment; None if there is none within ten years."""
        begin = max(0, int(moment // 1) + 1)
        if isinstance(self._schedule, Interval):
            step = self._schedule.seconds
            found = max(self._anchor + step, begin + (self._anchor - begin) % step)
            return found if found < LAST else None
        return next(self._due(begin, min(LAST, begin + SEARCHED * _DAY)), None)

    def before(self, moment: float, since: float) -> int | None:
        """The last instant after `since` and not after `moment`; None if there is none.

        Args:
            moment: UNIX seconds.
            since: UNIX seconds; at most ten years are searched.
        """
        begin, end = max(0, int(since // 1) + 1), min(LAST, int(moment // 1) + 1)
        if isinstance(self._schedule, Interval):
            found = end - 1 - (end - 1 - self._anchor) % self._schedule.seconds
            return found if found >= max(begin, self._anchor + 1) else None
        return next(self._due(max(begin, end - SEARCHED * _DAY), end, backwards=True), None)

    def count(self, moment: float, since: float, most: int) -> int:
        """Number of instants after `since` and not after `moment`; counting stops at a limit."""
        begin, end = max(0, int(since // 1) + 1), min(LAST, int(moment // 1) + 1)
        if isinstance(self._schedule, Interval):
            last = self.before(moment, since)
            first = self.after(begin - 1)
            if last is None or first is None:
                return 0
            return min(most, (last - first) // self._schedule.seconds + 1)
        instants = self._due(max(begin, end - SEARCHED * _DAY), end, backwards=True)
        return sum(1 for _ in islice(instants, most))

    def _due(self, begin: int, end: int, *, backwards: bool = False) -> Iterator[int]:
        """Instants of a calendar from a moment until before another, in order or in reverse."""
        calendar = self._schedule
        if not isinstance(calendar, Calendar) or not calendar.possible or begin >= end:
            return
        step = -1 if backwards else 1
        for day in range(begin // _DAY, (end - 1) // _DAY + 1)[::step]:
            if not any(_is_day(calendar, day + near) for near in (-1, 0, 1)):
                continue  # no zone is a day away from UTC
            found: list[int] = []
            for span in self._spans(max(begin, day * _DAY), min(end, (day + 1) * _DAY)):
                found.extend(self._within(calendar, *span))
            yield from found[::step]

    def _spans(self, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Parts of at most a day with one offset each: begin, end, offset, and offset before that."""
        before = self._offset(begin - 1)
        while begin < end:
            offset = self._offset(begin)
            change = end
            if self._offset(end - 1) != offset:
                # Offsets do not change twice within a day.
                changes = range(begin + 1, end)
                change = changes[
                    bisect_left(changes, True, key=lambda at: self._offset(at) != offset)
                ]
            yield begin, change, offset, before
            begin, before = change, offset

    def _within(
        self, calendar: Calendar, begin: int, end: int, offset: int, before: int
    ) -> Iterable[int]:
        """Instants of a span, in order."""
        found = _listed(calendar, begin + offset, end + offset)
        if not self._once:
            return (local - offset for local in found)
        instants = [
            at
            for local in found
            if not datetime.fromtimestamp(at := local - offset, self._zone).fold
        ]
        is_skipped = any(True for _ in _listed(calendar, begin + before, begin + offset))
        if is_skipped and begin not in instants:
            instants.insert(0, begin)
        return instants

    def _offset(self, moment: int) -> int:
        found = datetime.fromtimestamp(moment, self._zone).utcoffset()
        return int(found.total_seconds()) if found is not None else 0


def _listed(calendar: Calendar, begin: int, end: int) -> Iterator[int]:
    """Listed local times, as seconds since 1970 began there, from one until before another."""
    times = _times(calendar.hours, calendar.minutes)
    for day in range(begin // _DAY, (end - 1) // _DAY + 1):
        if _is_day(calendar, day):
            first = bisect_left(times, begin - day * _DAY)
            last = bisect_left(times, end - day * _DAY)
            yield from (day * _DAY + time for time in times[first:last])


@lru_cache(maxsize=256)
def _times(hours: frozenset[int], minutes: frozenset[int]) -> tuple[int, ...]:
    """The scheduled seconds of a day, ascending."""
    return tuple(hour * 3600 + minute * 60 for hour in sorted(hours) for minute in sorted(minutes))


def _is_day(calendar: Calendar, day: int) -> bool:
    """True if a day, counted from 1970, is listed."""
    found = date.fromordinal(_EPOCH + day)
    if found.month not in calendar.months:
        return False
    by_date = found.day in calendar.days
    by_weekday = found.isoweekday() % 7 in calendar.weekdays
    return by_date or by_weekday if calendar.either_day else by_date and by_weekday
