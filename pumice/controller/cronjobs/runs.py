"""A CronJob as the controller reads it, and its Jobs: their manifests, the runs that they are for, and which are kept."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC

import msgspec

from pumice.api import keys
from pumice.api.cronjobs import CronJobSpec, CronJobStatus, job_name
from pumice.api.kinds import CRON_JOB, JOB
from pumice.api.meta import ObjectMeta, Raw, parse_bool, parse_time
from pumice.controller.cronjobs.timetable import (
    Timetable,
    TimetableError,
    fingerprint,
    read_timetable,
)
from pumice.controller.jobs.phases import ABORTED, COMPLETED, FINISHED, phase_of
from pumice.controller.objects import controller_reference


def manifest(raw: Raw, meta: ObjectMeta, timetable: Timetable, instant: int) -> Raw:
    """The Job of a run.

    Args:
        raw: The CronJob.
        meta: Its metadata.
        timetable: When it is due.
        instant: When the run is due, in UNIX seconds.
    """
    template = raw["spec"].get("jobTemplate") or {}
    inner = template.get("metadata") or {}
    annotations = {**(inner.get("annotations") or {})}
    annotations[keys.CRON_JOB_SCHEDULED] = timetable.show(instant)
    head: Raw = {
        "name": job_name(meta.name, timetable.schedule, instant),
        "namespace": meta.namespace,
        "annotations": annotations,
        "ownerReferences": [controller_reference(meta, CRON_JOB)],
    }
    if inner.get("labels"):
        head["labels"] = {**inner["labels"]}
    return {
        **JOB.type_meta,
        "metadata": head,
        "spec": template.get("spec") or {},
    }


def instant_of(cron_job: str, job: Raw) -> float | None:
    """The instant of the run that a Job is for.

    The annotation counts only if the name agrees with it: names cannot be edited.
    """
    meta = job["metadata"]
    found = parse_time((meta.get("annotations") or {}).get(keys.CRON_JOB_SCHEDULED))
    if found is None:
        return None
    names = (f"{cron_job}-{int(found) // 60}", f"{cron_job}-{int(found)}")
    return found if meta["name"] in names else None


def awaits_note(cron_job: Raw, job: Raw) -> bool:
    """True if a CronJob has not yet recorded, in `lastScheduleTime`, the run for which one of its Jobs was created."""
    meta = cron_job["metadata"]
    instant = instant_of(meta["name"], job)
    if instant is None or meta.get("deletionTimestamp"):
        return False
    noted = parse_time((cron_job.get("status") or {}).get("lastScheduleTime"))
    return noted is None or noted < instant


def phase(job: Raw) -> str:
    """The phase of a Job; empty before it has one."""
    return phase_of(job.get("status"))


def has_ended(job: Raw) -> bool:
    """Whether a Job will not run again."""
    return phase(job) in FINISHED


def is_leaving(job: Raw) -> bool:
    """True if a Job is being deleted."""
    return bool(job["metadata"].get("deletionTimestamp"))


def is_active(job: Raw) -> bool:
    """True if a Job runs or will run; an aborted Job counts only after it is resumed."""
    return phase(job) not in FINISHED and phase(job) != ABORTED


def surplus(jobs: Iterable[Raw], successful: int | None, failed: int | None) -> list[Raw]:
    """Jobs above the limits of the history, the oldest first in each group.

    Args:
        jobs: The Jobs, oldest first.
        successful: Completed Jobs that are kept; all when None.
        failed: Other Jobs that do not run and are kept; all when None.
    """
    idle = [job for job in jobs if not is_active(job) and not is_leaving(job)]
    completed = [job for job in idle if phase(job) == COMPLETED]
    others = [job for job in idle if phase(job) != COMPLETED]
    return [*_beyond(completed, successful), *_beyond(others, failed)]


def _beyond(jobs: Sequence[Raw], limit: int | None) -> Sequence[Raw]:
    return () if limit is None else jobs[: max(0, len(jobs) - max(0, limit))]


def reference(job: Raw) -> Raw:
    """A reference to a Job, as `status.active` has it."""
    meta = job["metadata"]
    found = {**JOB.type_meta, "name": meta["name"]}
    for key in ("namespace", "resourceVersion", "uid"):
        if meta.get(key):
            found[key] = meta[key]
    return found


@dataclass(frozen=True, slots=True)
class ObservedCronJob:
    """A CronJob, its Jobs, and the state of its runs.

    Attributes:
        raw: The CronJob as raw JSON.
        meta: Its metadata.
        spec: Its spec, without the job template, which is not read.
        status: Its status as stored.
        jobs: The Jobs that it controls, oldest first.
        created: When it was created, in UNIX seconds.
        last: The instant of the last run for which a Job was made; None before the first.
        edited: When its schedule was last edited; None if that is not known.
        seen: Fingerprint of the schedule at the last pass; empty before the first.
    """

    raw: Raw
    meta: ObjectMeta
    spec: CronJobSpec
    status: CronJobStatus
    jobs: Sequence[Raw]
    created: float
    last: float | None
    edited: float | None
    seen: str

    @property
    def waits_for_replaced(self) -> bool:
        """True if a run begins only when the Jobs that it replaces, and their pods, are gone."""
        asked = parse_bool(self.meta.annotation(keys.REPLACE_WHEN_GONE)) is True
        return asked and self.spec.concurrency_policy == "Replace"

    @property
    def is_new_schedule(self) -> bool:
        """True if the schedule differs from the one at the last pass."""
        return self.seen != fingerprint(self.meta, self.spec)


def read(
    raw: Raw, jobs: Sequence[Raw] = (), now: float = 0.0, handled: float | None = None
) -> ObservedCronJob:
    """Read a CronJob.

    Args:
        raw: The CronJob.
        jobs: Jobs that it controls.
        now: The current time; objects without a creation time count as created now.
        handled: Time of a run for which a Job was created, also if the status does not have it.

    Raises:
        msgspec.ValidationError: A field does not have the type of the schema.
    """
    meta = msgspec.convert(raw["metadata"], ObjectMeta)
    fields = {key: value for key, value in raw["spec"].items() if key != "jobTemplate"}
    spec = msgspec.convert(fields, CronJobSpec)
    status = msgspec.convert(raw.get("status") or {}, CronJobStatus)
    # An existing Job was created, also if the status could not be written any more.
    instants = [instant_of(meta.name, job) for job in jobs]
    made = [parse_time(status.last_schedule_time), handled, *instants]
    seen, _, since = meta.annotation(keys.SCHEDULE_SEEN).partition("@")
    created = parse_time(meta.creation_timestamp)
    return ObservedCronJob(
        raw=raw,
        meta=meta,
        spec=spec,
        status=status,
        jobs=sorted(jobs, key=_age),
        created=now if created is None else created,
        last=max((each for each in made if each is not None and each > 0), default=None),
        edited=parse_time(since),
        seen=seen,
    )


def _age(job: Raw) -> tuple[str, str]:
    """Order of creation; Jobs without a creation time come last."""
    meta = job["metadata"]
    return meta.get("creationTimestamp") or "~", meta["name"]


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


def forecast(cron_job: Raw, now: float) -> Forecast:
    """The next three runs, in UTC if it names no time zone. A CronJob that does not exist yet counts as created now."""
    subject = read(cron_job, (), now)
    if subject.spec.suspend:
        return Forecast((), why_none="it is suspended")
    try:
        timetable = read_timetable(subject.meta, subject.spec, UTC)
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


def next_job(cron_job: Raw, now: float) -> Raw | None:
    """The Job of the next run, also of a suspended CronJob; None if there is no next run."""
    subject = read(cron_job, (), now)
    try:
        timetable = read_timetable(subject.meta, subject.spec, UTC)
    except TimetableError:
        return None
    instant = _after(subject, timetable, now)
    return None if instant is None else manifest(cron_job, subject.meta, timetable, instant)


def _after(subject: ObservedCronJob, timetable: Timetable, now: float) -> int | None:
    since = subject.created if subject.last is None else subject.last
    return timetable.counted_from(since).after(max(now, since))
