"""The controller of CronJobs."""

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

from pumice.api.kinds import CRON_JOB, JOB
from pumice.api.meta import Raw
from pumice.api.schedules import time_zone
from pumice.cluster.cache import WatchCache
from pumice.controller.cronjobs import plan_cron_job
from pumice.controller.cronjobs.runs import instant_of, phase
from pumice.controller.objects import controller_key, controller_raw
from pumice.controller.plan import Plan
from pumice.controller.worker.controller import NamespacedController, PlannedObject, Source
from pumice.controller.worker.memory import ObjectKey, PlanOutcome
from pumice.controller.worker.process import ControllerProcess, Watches

_BY_CRON_JOB = "cron job"


def local_time_zone(name: str | None = None, file: Path = Path("/etc/localtime")) -> tzinfo:
    """The time zone of the process: that of the variable TZ, else that of the machine, else UTC.

    Args:
        name: What TZ says; the variable when None.
        file: The machine's time zone.
    """
    name = os.environ.get("TZ") if name is None else name
    try:
        if name is not None:
            return time_zone(name.removeprefix(":"))
        with file.open("rb") as data:
            return ZoneInfo.from_file(data)
    except (OSError, ValueError):
        return UTC


class CronJobCaches:
    """Watches: CronJobs and Jobs, raw."""

    def __init__(self, watches: Watches) -> None:
        """Create the caches."""
        self.cron_jobs: WatchCache[Raw] = watches.of(CRON_JOB, dict, optional=True)
        self.jobs: WatchCache[Raw] = watches.of(JOB, dict)
        self.jobs.index(_BY_CRON_JOB, partial(controller_key, kind=CRON_JOB))


class CronJobController(NamespacedController):
    """The CronJob controller, while this process is the leader."""

    def __init__(
        self,
        worker: ControllerProcess,
        caches: CronJobCaches,
        local: tzinfo,
    ) -> None:
        """Create a controller; it must `run`."""
        required = (caches.jobs, caches.cron_jobs)
        super().__init__(worker, "cron jobs", required, caches.cron_jobs)
        self._caches = caches
        self._local = local
        self._handled: dict[ObjectKey, tuple[str, float]] = {}

    def sources(self) -> Iterable[Source]:
        """CronJobs, and changes of their Jobs that affect them."""
        yield self._caches.jobs, self._job_changed
        yield self._caches.cron_jobs, self.added_or_changed

    async def plan(self, key: ObjectKey, subject: PlannedObject, finds: Sequence[Raw]) -> Plan:
        """Its next Job, what goes, and its status."""
        namespace, uid = key[0], subject.uid
        found = {each["metadata"]["name"]: each for each in finds}
        jobs = {
            each["metadata"]["name"]: each
            for each in finds
            if (namespace, uid) in controller_key(each, CRON_JOB)
        }
        for each in self._caches.jobs.indexed(_BY_CRON_JOB, (namespace, uid)):
            jobs[each["metadata"]["name"]] = each
        handled_uid, handled = self._handled.get(key, ("", None))
        return plan_cron_job(
            subject.obj,
            list(jobs.values()),
            self.clock.wall(),
            lambda name: self._caches.jobs.get(name, namespace) or found.get(name),
            local=self._local,
            handled=handled if handled_uid == uid else None,
        )

    def carried_out(
        self, key: ObjectKey, subject: PlannedObject, plan: Plan, outcome: PlanOutcome
    ) -> None:
        """Remember the run for which a Job was created: the Job may be gone before the status is written."""
        del plan
        for each in outcome.written:
            if each.kind == JOB and each.made is not None:
                instant = instant_of(key[1], each.made)
                if instant is not None:
                    self._handled[key] = subject.uid, instant

    def forget(self, key: ObjectKey) -> None:
        """A CronJob is gone."""
        self._handled.pop(key, None)

    def _job_changed(self, old: Raw | None, new: Raw | None) -> None:
        if old is not None and new is not None and _standing(old) == _standing(new):
            return
        for job in (old, new):
            owner = controller_raw(job) if job is not None else {}
            if job is not None and owner.get("kind") == CRON_JOB.kind:
                self.queue.add((job["metadata"].get("namespace", ""), owner["name"]))


def _standing(job: Raw) -> tuple[object, ...]:
    """The fields of a Job that affect its CronJob; pod counts do not."""
    meta = job["metadata"]
    return meta.get("uid"), phase(job), bool(meta.get("deletionTimestamp")), controller_raw(job)
