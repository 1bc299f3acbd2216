"""A CronJob in the form that the controller uses."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from pumice.api import keys
from pumice.api.booleans import parse_bool
from pumice.api.cronjobs import CronJobSpec, CronJobStatus
from pumice.api.meta import ObjectMeta, Raw, parse_time
from pumice.controller.cronjobs.runs import instant_of
from pumice.controller.cronjobs.timetable import fingerprint

__all__ = ["ObservedCronJob", "read"]


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
