"""The schedule of a CronJob with its time zone, and what is wrong with it.

Admission refuses invalid schedules, but it may have been off, so the controller checks again. As in Volcano it also
reads a prefix `TZ=` or `CRON_TZ=`.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from pumice.api import keys
from pumice.api.cronjobs import CronJobSpec
from pumice.api.meta import ObjectMeta, parse_bool
from pumice.api.occurrences import Occurrences
from pumice.api.schedules import Calendar, Interval, ScheduleError, parse_schedule, time_zone

_ZONED = re.compile(r"(?:CRON_)?TZ=([^ ]*) +(.*)", re.DOTALL)


class TimetableError(ValueError):
    """A schedule that never creates a Job.

    Attributes:
        reason: One word for an event.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Timetable:
    """The schedule of a CronJob in its time zone.

    Attributes:
        schedule: The schedule.
        zone: Time zone of the schedule.
        shown: Time zone in which instants are written.
        once: Whether each local time is due once a day, also if a change of the clock skips or repeats it.
        doubt: A problem of a schedule that can still be used; empty if there is none.
    """

    schedule: Calendar | Interval
    zone: tzinfo
    shown: tzinfo
    once: bool = False
    doubt: str = ""

    def counted_from(self, anchor: float) -> Occurrences:
        """The instants of the schedule; an interval is counted from the given moment."""
        return Occurrences(self.schedule, self.zone, anchor=anchor, once=self.once)

    def show(self, instant: float) -> str:
        """A time in RFC 3339, in the time zone of the CronJob."""
        text = datetime.fromtimestamp(instant, self.shown).isoformat(timespec="seconds")
        return text.replace("+00:00", "Z")


def read_timetable(meta: ObjectMeta, spec: CronJobSpec, local: tzinfo = UTC) -> Timetable:
    """Read schedule and time zone of a CronJob.

    Args:
        meta: Its metadata; an annotation says how changes of the clock are handled.
        spec: Its spec.
        local: Time zone of the process, for CronJobs that name none.

    Raises:
        TimetableError: The schedule cannot be used.
    """
    shown: tzinfo = UTC
    zone, doubt = local, ""
    if spec.time_zone is not None:
        try:
            zone = shown = time_zone(spec.time_zone)
        except ValueError as error:
            raise TimetableError("InvalidTimeZone", f"spec.timeZone {error}") from None
    text = spec.schedule
    if (zoned := _ZONED.fullmatch(text)) is not None:
        doubt = f'spec.schedule "{text}" names a time zone, which counts instead of spec.timeZone; use the field'
        try:
            zone, text = time_zone(zoned[1]), zoned[2].strip()
        except ValueError as error:
            raise _unreadable(f"the time zone of the schedule {error}") from None
    try:
        schedule = parse_schedule(text)
    except ScheduleError as error:
        raise _unreadable(str(error)) from None
    if not schedule.possible:
        message = f'spec.schedule "{text}" is never due: no date matches these'
        raise TimetableError("InvalidSchedule", message)
    once = parse_bool(meta.annotation(keys.ONCE_PER_LOCAL_DAY)) is True
    return Timetable(schedule, zone, shown, once, doubt)


def fingerprint(meta: ObjectMeta, spec: CronJobSpec) -> str:
    """A short text that changes with the schedule."""
    parts = (spec.schedule, repr(spec.time_zone), meta.annotation(keys.ONCE_PER_LOCAL_DAY))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _unreadable(why: str) -> TimetableError:
    message = f"spec.schedule cannot be read, so no Job is made: {why}"
    return TimetableError("UnParseableCronJobSchedule", message)
