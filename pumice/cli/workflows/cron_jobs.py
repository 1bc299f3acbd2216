"""CronJobs on the command line: next runs for `lint`, the next Job for `render`, the state for `explain`."""

from typing import TYPE_CHECKING, Any

from pumice.api.fields import plain
from pumice.cli.files.manifests import Manifest, Raw
from pumice.cli.output import note
from pumice.cli.workflows.job_flows import admitted

if TYPE_CHECKING:
    from pumice.cli.files.checking import ManifestChecker
    from pumice.cli.live.observed import ReadableCluster
    from pumice.cluster.client import Client

__all__ = ["explanation", "next_of", "next_runs", "standing"]


def next_runs(cron_job: Raw, now: float) -> str:
    """The next runs of a CronJob, as text of one line."""
    from pumice.controller.cronjobs import forecast

    found = forecast(cron_job, now)
    if found.why_none:
        return f"none: {found.why_none}"
    return f"{', '.join(found.runs)} ({found.zone})"


def next_of(manifest: Manifest, checker: "ManifestChecker", now: float) -> Manifest | None:
    """The Job of the next run, before its admission; None if the CronJob is refused or has no next run, which is reported.

    Args:
        manifest: The CronJob.
        checker: Checks it.
        now: The moment, in UNIX seconds.
    """
    from pumice.controller.cronjobs import next_job
    from pumice.controller.render import NO_UID

    cron_job = admitted(manifest, checker)
    if cron_job is None:
        return None
    cron_job["metadata"].setdefault("uid", NO_UID)
    job = next_job(cron_job, now)
    if job is None:
        note(plain(f"{manifest.identity}: it has no next run"))
        return None
    return Manifest(job, manifest.source)


def standing(cron_job: Raw, jobs: list[Raw], now: float) -> tuple[str, bool]:
    """One sentence about a CronJob, and whether a run waits.

    Args:
        cron_job: The CronJob.
        jobs: All Jobs of its namespace.
        now: The moment, in UNIX seconds.
    """
    from pumice.controller.cronjobs import TimetableError, decide, read, read_timetable
    from pumice.controller.owners import controls_raw

    named = {job["metadata"]["name"]: job for job in jobs}
    subject = read(cron_job, (), now)
    own = [job for job in jobs if controls_raw(subject.meta, job)]
    subject = read(cron_job, own, now)
    name = f"CronJob {subject.meta.namespace}/{subject.meta.name}"
    if subject.spec.suspend:
        return f"{name} is suspended: no Job is created until spec.suspend is false", False
    try:
        timetable = read_timetable(subject.meta, subject.spec)
    except TimetableError as error:
        return f"{name} creates no Job: {error}", False
    decision = decide(subject, timetable, now, named.get)
    if decision.answer == "skip":
        return f"{name}: {decision.events[0].message}", True
    if decision.answer == "create" and decision.instant is not None:
        shown = timetable.show(decision.instant)
        return (
            f"{name}: the run of {shown} is due and has no Job yet; is `pumice controller` running?",
            True,
        )
    following = "no run" if decision.next is None else f"the run of {timetable.show(decision.next)}"
    return f"{name} waits for {following}", False


async def explanation(
    client: "Client", cron_job: Raw, now: float
) -> "tuple[ReadableCluster, dict[str, Any]]":
    """A CronJob: why it does not run, its next runs, and its Jobs.

    Raises:
        Forbidden: The user may not read Jobs.
    """
    from pumice.api.kinds import CRON_JOB, EVENT, JOB
    from pumice.cli.live.explanations import events_about
    from pumice.cli.live.observed import ReadableCluster
    from pumice.cluster.errors import Forbidden
    from pumice.controller.cronjobs import forecast, phase
    from pumice.controller.owners import controller_raw

    meta, status = cron_job["metadata"], cron_job.get("status") or {}
    seen = ReadableCluster(meta["namespace"])
    jobs = await client.list(JOB, seen.namespace)
    events: list[Raw] = []
    try:
        events = (await client.list(EVENT, seen.namespace))["items"]
    except Forbidden:
        seen.forbidden.append(EVENT.plural)
    seen.versions = [
        (JOB, seen.namespace, jobs["metadata"]["resourceVersion"]),
        (CRON_JOB, seen.namespace, meta["resourceVersion"]),
    ]
    message, waits = standing(cron_job, jobs["items"], now)
    coming = forecast(cron_job, now)
    own = [job for job in jobs["items"] if controller_raw(job).get("uid") == meta["uid"]]
    return seen, {
        "cronJob": f"{seen.namespace}/{meta['name']}",
        "waiting": waits,
        "message": message,
        "nextRuns": list(coming.runs),
        "timeZone": coming.zone,
        "lastScheduleTime": status.get("lastScheduleTime"),
        "lastSuccessfulTime": status.get("lastSuccessfulTime"),
        "jobs": [
            {"name": job["metadata"]["name"], "phase": phase(job)}
            for job in sorted(own, key=lambda each: str(each["metadata"]["name"]))
        ],
        "events": events_about(events, {meta["uid"]}),
        "notAllowed": seen.forbidden,
    }
