"""The status of a CronJob: the Jobs that run, the last run, and the last success."""

from collections.abc import Sequence

from pumice.api import keys
from pumice.api.meta import Raw, format_time, parse_time
from pumice.controller.cronjobs.runs import (
    has_ended,
    instant_of,
    is_active,
    is_leaving,
    phase,
    reference,
)
from pumice.controller.cronjobs.subject import ObservedCronJob
from pumice.controller.jobs.phases import COMPLETED
from pumice.controller.plan import RecordEvent

__all__ = ["changed_status", "news"]

ACTIVE = 1000
"""Maximum number of Jobs in `active`, the newest: an object has at most 1.5 MB, and without a status a CronJob does not work."""


def changed_status(subject: ObservedCronJob, last: float | None) -> Raw | None:
    """The new status; None when it equals the stored one.

    Args:
        subject: The CronJob.
        last: The instant of the last run for which a Job was made.
    """
    stored: Raw = subject.raw.get("status") or {}
    kept = {key: value for key, value in stored.items() if value}
    status = {key: kept[key] for key in kept if key not in ("active", "lastScheduleTime")}
    if active := _active(subject):
        status["active"] = active
    if last is not None:
        status["lastScheduleTime"] = format_time(last)
    if (success := _last_success(subject)) is not None:
        status["lastSuccessfulTime"] = success
    return None if status == kept else status


def news(subject: ObservedCronJob, last: float | None) -> list[RecordEvent]:
    """Events for a new status: about the Job of the last run, and about Jobs that are no longer active.

    Args:
        subject: The CronJob.
        last: The instant of the last run for which a Job was made.
    """
    has_run = last is not None and last != parse_time(subject.status.last_schedule_time)
    was_replaced = has_run and subject.spec.concurrency_policy == "Replace"
    jobs = {job["metadata"].get("uid"): job for job in subject.jobs}
    events = []
    for each in subject.status.active or ():
        job = jobs.get(each.uid)
        if job is None and not was_replaced:
            message = f"Job {each.name} was active and exists no longer"
            events.append(RecordEvent("Normal", "StaleReference", message))
        elif job is not None and has_ended(job):
            message = f"Job {each.name} has ended: {phase(job)}"
            events.append(RecordEvent("Normal", "SawCompletedJob", message))
    for job in subject.jobs:
        if has_run and instant_of(subject.meta.name, job) == last:
            shown = job["metadata"]["annotations"][keys.CRON_JOB_SCHEDULED]
            message = f"Job {job['metadata']['name']} was created for the run of {shown}"
            events.append(RecordEvent("Normal", "SuccessfulCreate", message))
    return events


def _active(subject: ObservedCronJob) -> Sequence[Raw]:
    """References to the newest active Jobs; existing references are kept."""
    stored = {
        each.get("uid"): each for each in (subject.raw.get("status") or {}).get("active") or ()
    }
    running = [job for job in subject.jobs if is_active(job) and not is_leaving(job)]
    return [stored.get(job["metadata"].get("uid")) or reference(job) for job in running[-ACTIVE:]]


def _last_success(subject: ObservedCronJob) -> str | None:
    """When a Job last completed; it never moves back."""
    times = [
        parse_time(job["status"]["state"].get("lastTransitionTime"))
        for job in subject.jobs
        if phase(job) == COMPLETED
    ]
    stored = subject.status.last_successful_time
    known = parse_time(stored)
    latest = max((each for each in times if each is not None), default=None)
    if latest is None or (known is not None and known >= latest):
        return stored
    return format_time(latest)
