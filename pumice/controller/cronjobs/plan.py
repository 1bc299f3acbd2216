"""The plan for a CronJob: whether a run is due and what to do about it, and its status.

The status has the Jobs that run, the last run, and the last success.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Literal

from pumice.api import keys
from pumice.api.cronjobs import job_name
from pumice.api.kinds import CRON_JOB, JOB
from pumice.api.messages import listed
from pumice.api.meta import ObjectMeta, Raw, format_time, parse_time
from pumice.controller.cronjobs.runs import (
    ObservedCronJob,
    has_ended,
    instant_of,
    is_active,
    is_leaving,
    manifest,
    phase,
    read,
    reference,
    surplus,
)
from pumice.controller.cronjobs.timetable import (
    Timetable,
    TimetableError,
    fingerprint,
    read_timetable,
)
from pumice.controller.jobs.phases import COMPLETED
from pumice.controller.objects import controls_raw, described
from pumice.controller.plan import (
    CreateObject,
    DeleteObject,
    PatchStatus,
    Plan,
    RecordEvent,
    RequeueAfter,
    Step,
    UpdateObject,
)

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
    """Decide on the latest instant that has passed and has no Job yet. Earlier ones are missed."""
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


LATE = 0.1
"""Seconds between an instant and the pass for it, so that the instant has passed on all clocks nearby."""


ACTIVE = 1000
"""Maximum number of Jobs in `active`, the newest: an object has at most 1.5 MB, and without a status a CronJob does not work."""


def plan_cron_job(
    cron_job: Raw,
    jobs: Sequence[Raw],
    now: float,
    find: FindJob,
    *,
    local: tzinfo = UTC,
    handled: float | None = None,
) -> Plan:
    """Plan the writes for a CronJob.

    The status is written first, so that it has the last run before the Job of that run is deleted. Changes for a new Job are written
    by the pass that sees the Job.

    Args:
        cron_job: The CronJob.
        jobs: The Jobs that it controls (by uid), in any order.
        now: The current time in UNIX seconds.
        find: Finds any Job of its namespace by name.
        local: Time zone of the process, for CronJobs that name none.
        handled: Time of a run for which this process created a Job, even if the Job was deleted since.
    """
    subject = read(cron_job, jobs, now, handled)
    if subject.meta.deletion_timestamp is not None:
        return Plan()
    if subject.is_new_schedule:
        return Plan.of([_note(subject, now)])
    decision, trouble, timetable = None, [], None
    try:
        timetable = read_timetable(subject.meta, subject.spec, local)
    except TimetableError as error:
        trouble = [RecordEvent("Warning", error.reason, str(error))]
    else:
        if timetable.doubt:
            trouble = [RecordEvent("Warning", "UnsupportedSchedule", timetable.doubt)]
        if not subject.spec.suspend:
            decision = decide(subject, timetable, now, find)
    last = subject.last
    if decision is not None and decision.answer == "adopt":
        last = decision.instant
    status = changed_status(subject, last)
    wait = [] if decision is None else _wake(decision, now)
    return Plan.of(
        wait,
        trouble,
        [] if status is None else [PatchStatus(status)],
        [] if status is None else news(subject, last),
        *([] if decision is None or timetable is None else _run(subject, timetable, decision)),
        *_history(subject),
    )


def _note(subject: ObservedCronJob, now: float) -> UpdateObject:
    """Record the current schedule, and the time of its change if there was another one before."""
    meta = subject.meta
    value = fingerprint(meta, subject.spec)
    if subject.seen:
        value += f"@{format_time(now)}"
    guard = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    patch: Raw = {"metadata": {**guard, "annotations": {keys.SCHEDULE_SEEN: value}}}
    return UpdateObject(CRON_JOB, meta.namespace, meta.name, patch)


def _run(subject: ObservedCronJob, timetable: Timetable, decision: RunDecision) -> list[list[Step]]:
    """Stages of the run that is due."""
    events: list[Step] = list(decision.events)
    if decision.answer not in ("create", "replace") or decision.instant is None:
        return [events]
    propagation = (
        "Foreground" if decision.answer == "replace" else None
    )  # it is gone after its pods
    deletes: list[Step] = []
    for job in decision.replaced:
        meta = job["metadata"]
        deletes.append(
            DeleteObject(
                JOB, subject.meta.namespace, meta["name"], meta["uid"], propagation=propagation
            )
        )
    deleted: list[Step] = [_deleted(job, "it was replaced") for job in decision.replaced]
    if decision.answer == "replace":
        return [events, deletes, deleted]
    job = manifest(subject.raw, subject.meta, timetable, decision.instant)
    return [events, deletes, deleted, [CreateObject(JOB, job)]]


def _history(subject: ObservedCronJob) -> list[list[Step]]:
    """Delete ended Jobs above the limits, if their state is still the observed one."""
    spec, namespace = subject.spec, subject.meta.namespace
    limits = spec.successful_jobs_history_limit, spec.failed_jobs_history_limit
    deletes: list[Step] = []
    deleted: list[Step] = []
    for job in surplus(subject.jobs, *limits):
        meta = job["metadata"]
        version = meta.get("resourceVersion")
        deletes.append(
            DeleteObject(JOB, namespace, meta["name"], meta["uid"], resource_version=version)
        )
        deleted.append(_deleted(job, "the limits of the history are reached"))
    return [deletes, deleted]


def _deleted(job: Raw, why: str) -> RecordEvent:
    return RecordEvent(
        "Normal", "SuccessfulDelete", f"deleted Job {job['metadata']['name']}: {why}"
    )


def _wake(decision: RunDecision, now: float) -> list[Step]:
    return [] if decision.next is None else [RequeueAfter(decision.next + LATE - now)]


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
