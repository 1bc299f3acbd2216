"""Decides whether a run of a CronJob is due, and what to do about it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from pumice.api import keys
from pumice.api.cronjobs import job_name
from pumice.api.messages import listed
from pumice.api.meta import ObjectMeta, Raw
from pumice.controller.cronjobs.runs import is_active, is_leaving
from pumice.controller.cronjobs.subject import ObservedCronJob
from pumice.controller.cronjobs.timetable import Timetable
from pumice.controller.owners import controls_raw, described
from pumice.controller.plan import RecordEvent

__all__ = ["FindJob", "RunDecision", "decide"]

_NAMES = 512
"""Bytes of the longest list of names; an event has 1,024 characters."""

FindJob = Callable[[str], Raw | None]
"""The Job of a name in the namespace of the CronJob, of any owner."""

MANY = 100
"""Number of missed runs above which a warning is recorded."""

GRACE = 1.0
"""Seconds that a run may be late, however short its deadline is."""

Answer = Literal["wait", "create", "replace", "adopt", "skip"]


@dataclass(frozen=True, slots=True)
class RunDecision:
    """Decision about the run that is due, if one is.

    Attributes:
        answer: Wait for the next run, create a Job, delete Jobs that must be gone first, note a Job that exists already, or make none for
            this run.
        instant: When the run is or was due; None when waiting.
        next: When the next run is due; None if there is none within ten years.
        replaced: Jobs that are deleted first.
        events: Events to record.
    """

    answer: Answer
    next: int | None
    instant: int | None = None
    replaced: tuple[Raw, ...] = ()
    events: tuple[RecordEvent, ...] = field(default=())


def decide(
    subject: ObservedCronJob, timetable: Timetable, now: float, find: FindJob
) -> RunDecision:
    """Decide on the latest instant that has passed and has no Job yet. Earlier ones are missed.

    Args:
        subject: The CronJob; it is not suspended.
        timetable: When it is due.
        now: The moment, in UNIX seconds.
        find: Finds a Job by its name.
    """
    since = subject.created if subject.last is None else subject.last
    due = timetable.counted_from(since)
    following = due.after(max(now, since))
    since = max(since, subject.edited or since)  # no instant from before the schedule was edited
    instant = due.before(now, since)
    if instant is None:
        return RunDecision("wait", following)
    name = job_name(subject.meta.name, timetable.schedule, instant)
    shown = timetable.show(instant)
    stored = find(name)
    if stored is not None:
        if controls_raw(ObjectMeta(uid=subject.meta.uid), stored):
            return RunDecision("adopt", following, instant)
        message = (
            f"the run of {shown} has no Job: Job {name} exists and does not belong to this CronJob"
            f" (it is controlled by {described(stored)})"
        )
        return _skipped("ForeignJob", message, instant, following)
    deadline = subject.spec.starting_deadline_seconds
    if deadline is not None:
        if now - instant > max(deadline, GRACE):
            message = f"the run of {shown} was missed: it could not begin within startingDeadlineSeconds ({deadline})"
            return _skipped("MissSchedule", message, instant, following)
        since = max(since, now - max(deadline, GRACE))
    active = [job for job in subject.jobs if is_active(job)]
    policy = subject.spec.concurrency_policy
    if policy == "Forbid" and active:
        names = listed([job["metadata"]["name"] for job in active], most=_NAMES)
        message = f"the run of {shown} waits for {names} to end, as concurrencyPolicy Forbid says"
        return _skipped("ForbidConcurrent", message, instant, following)
    events = []
    if due.count(now, since, MANY + 1) > MANY:
        message = (
            f"more than {MANY} runs were missed; only the last one, of {shown}, is made up for"
        )
        events.append(RecordEvent("Warning", "TooManyMissedTimes", message))
    replaced = tuple(job for job in active if policy == "Replace" and not is_leaving(job))
    leaving = [job for job in subject.jobs if is_active(job) or is_leaving(job)]
    if leaving and subject.waits_for_replaced:
        names = listed([job["metadata"]["name"] for job in leaving], most=_NAMES)
        message = f"{names} goes for the run of {shown}, which begins when it is gone with its pods, as {keys.REPLACE_WHEN_GONE} says"
        events.append(RecordEvent("Warning", "ReplaceConcurrent", message))
        return RunDecision("replace", following, instant, replaced, tuple(events))
    if replaced:
        names = listed([job["metadata"]["name"] for job in replaced], most=_NAMES)
        message = f"{names} goes for the run of {shown}, as concurrencyPolicy Replace says"
        events.append(RecordEvent("Warning", "ReplaceConcurrent", message))
    return RunDecision("create", following, instant, replaced, tuple(events))


def _skipped(reason: str, message: str, instant: int, following: int | None) -> RunDecision:
    return RunDecision(
        "skip", following, instant, events=(RecordEvent("Warning", reason, message),)
    )
