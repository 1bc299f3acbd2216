"""The next runs of a CronJob, for commands that show them in advance."""

from dataclasses import dataclass
from datetime import UTC, tzinfo

from pumice.api.meta import Raw
from pumice.controller.cronjobs.runs import ObservedCronJob, manifest, read
from pumice.controller.cronjobs.timetable import Timetable, TimetableError, read_timetable

__all__ = ["Forecast", "forecast", "next_job"]

RUNS = 3


@dataclass(frozen=True, slots=True)
class Forecast:
    """The next runs of a CronJob.

    Attributes:
        runs: When they are due, as RFC 3339 in the time zone of the CronJob.
        zone: Name of that time zone.
        why_none: Why there is none; empty if there is one.
    """

    runs: tuple[str, ...]
    zone: str = "UTC"
    why_none: str = ""


def forecast(cron_job: Raw, now: float, local: tzinfo = UTC) -> Forecast:
    """The next three runs. A CronJob that does not exist yet counts as created now.

    Args:
        cron_job: The CronJob.
        now: The moment, in UNIX seconds.
        local: Time zone of CronJobs that name none.
    """
    subject = read(cron_job, (), now)
    if subject.spec.suspend:
        return Forecast((), why_none="it is suspended")
    try:
        timetable = read_timetable(subject.meta, subject.spec, local)
    except TimetableError as error:
        return Forecast((), why_none=str(error))
    shown = []
    for _ in range(RUNS):
        instant = _after(subject, timetable, now)
        if instant is None:
            break
        shown.append(timetable.show(instant))
        now = instant
    why_none = "" if shown else "none is due within ten years"
    return Forecast(tuple(shown), str(timetable.shown), why_none)


def next_job(cron_job: Raw, now: float, local: tzinfo = UTC) -> Raw | None:
    """The Job of the next run, also of a suspended CronJob; None if there is no next run.

    Args:
        cron_job: The CronJob, with a uid.
        now: The moment, in UNIX seconds.
        local: Time zone of CronJobs that name none.
    """
    subject = read(cron_job, (), now)
    try:
        timetable = read_timetable(subject.meta, subject.spec, local)
    except TimetableError:
        return None
    instant = _after(subject, timetable, now)
    return None if instant is None else manifest(cron_job, subject.meta, timetable, instant)


def _after(subject: ObservedCronJob, timetable: Timetable, now: float) -> int | None:
    since = subject.created if subject.last is None else subject.last
    return timetable.counted_from(since).after(max(now, since))
