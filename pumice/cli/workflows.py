"""JobFlows and CronJobs on the command line: Jobs and next runs for `render` and `lint`, the state for `explain`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pumice.api.fields import FieldError, plain
from pumice.api.meta import ObjectMeta, Raw
from pumice.cli.files.manifests import Manifest
from pumice.cli.output import note

if TYPE_CHECKING:
    from pumice.cli.files.checking import ManifestChecker
    from pumice.cli.live.observed import ReadableCluster
    from pumice.cluster.client import Client
    from pumice.controller.jobflows import FlowEntry, Flows

_NOT_YET = "its Job is not created yet; is `pumice controller` running?"


def jobs_of(
    manifest: Manifest, templates: Sequence[Manifest], checker: "ManifestChecker"
) -> list[Manifest] | None:
    """The Jobs that a JobFlow creates, before their admission; None if something is refused or missing, which is reported."""
    job_flow = admitted(manifest, checker)
    if job_flow is None:
        return None
    present = {each.name: each for each in templates if each.namespace == manifest.namespace}
    names = list(dict.fromkeys(each["name"] for each in _flows(job_flow)))
    for name in names:
        if name not in present:
            note(plain(f"{manifest.identity}: flow {name}: there is no JobTemplate {name}"))
    found = {name: admitted(present[name], checker) for name in names if name in present}
    usable = {name: each for name, each in found.items() if each is not None}
    if len(usable) < len(names):
        return None
    return [Manifest(job, manifest.source) for _, job in _jobs(job_flow, usable)]


def doubts(
    manifest: Manifest, job_flow: Raw, templates: Mapping[str, Raw], checker: "ManifestChecker"
) -> list[FieldError]:
    """Problems of the Jobs of a JobFlow, as far as their templates are known."""
    return [
        FieldError(path, f"its Job would be refused: {error.path}: {error.message}", error.code)
        for path, job in _jobs(job_flow, templates)
        for error in checker.judge(Manifest(job, manifest.source)).errors
    ]


def _flows(job_flow: Raw) -> list[Raw]:
    return (job_flow.get("spec") or {}).get("flows") or []


def _jobs(job_flow: Raw, templates: Mapping[str, Raw]) -> Iterator[tuple[str, Raw]]:
    """The Jobs of the flows whose templates are known, each with the path of its flow."""
    from pumice.api.jobflows import job_name
    from pumice.controller.jobflows import job_of
    from pumice.controller.render import NO_UID

    meta = job_flow["metadata"]
    owner = ObjectMeta(
        name=meta["name"], namespace=meta.get("namespace", ""), uid=meta.get("uid") or NO_UID
    )
    last = {flow["name"]: (number, flow) for number, flow in enumerate(_flows(job_flow))}
    for name, (number, flow) in last.items():
        if name in templates:
            job = job_of(owner, job_name(owner.name, name), flow, templates[name])
            yield f"spec.flows[{number}]", job


def admitted(manifest: Manifest, checker: "ManifestChecker") -> Raw | None:
    """An object after admission; errors and warnings are reported."""
    found = checker.judge(manifest)
    for warning in found.warnings:
        note(plain(f"{manifest.identity}: warning: {warning}"))
    for error in found.errors:
        note(plain(f"{manifest.identity} is refused: {error}"))
    return found.patched if found.allowed else None


def _why(entry: "FlowEntry", flows: "Flows") -> str:
    """Why a flow has no Job; for a retry, which one it is."""
    told = entry.wait.message if entry.wait else _NOT_YET if entry.is_due else ""
    retry = entry.attempt.retry
    if not retry:
        return told
    number = f"retry {retry} of {max(retry, flows.options.retries)}"
    return f"{number} {told}" if entry.wait else f"{number}: {told}" if told else number


async def explain_job_flow(
    client: "Client", job_flow: Raw
) -> "tuple[ReadableCluster, dict[str, Any]]":
    """Each flow with its Job, or what it waits for; computed from what the user may read.

    Raises:
        Forbidden: The user may not read Jobs.
    """
    from pumice.api.kinds import EVENT, JOB, JOB_FLOW, JOB_TEMPLATE
    from pumice.cli.live.explanations import events_about
    from pumice.cli.live.observed import ReadableCluster
    from pumice.cluster.errors import Forbidden
    from pumice.controller.jobflows import read

    meta = job_flow["metadata"]
    namespace = meta["namespace"]
    seen = ReadableCluster(namespace)
    listed = {}
    for kind in (JOB, JOB_TEMPLATE, EVENT):
        try:
            listed[kind] = await client.list(kind, namespace)
        except Forbidden:
            if kind == JOB:
                raise
            seen.forbidden.append(kind.plural)
    seen.versions = [
        (kind, namespace, found["metadata"]["resourceVersion"])
        for kind, found in listed.items()
        if kind != EVENT
    ]
    seen.versions.append((JOB_FLOW, namespace, meta["resourceVersion"]))
    templates = {each["name"] for each in _flows(job_flow)}
    if JOB_TEMPLATE in listed:
        templates = {each["metadata"]["name"] for each in listed[JOB_TEMPLATE]["items"]}
    flows = read(job_flow, listed[JOB]["items"], templates)
    done = sum(each.phase == "Completed" for each in flows.entries)
    message = (
        f"JobFlow {namespace}/{meta['name']} is {flows.phase}:"
        f" {done} of {len(flows.entries)} Jobs have completed"
    )
    return seen, {
        "jobFlow": f"{namespace}/{meta['name']}",
        "phase": flows.phase,
        "waiting": flows.phase == "Pending",
        "message": message,
        "flows": [
            {
                "name": each.flow.name,
                "job": each.job_name,
                "phase": each.phase or "",
                "reason": each.wait.reason if each.wait else "",
                "message": _why(each, flows),
            }
            for each in flows.entries
        ],
        "events": events_about(listed.get(EVENT, {}).get("items", ()), {meta["uid"]}),
        "notAllowed": seen.forbidden,
    }


def next_runs(cron_job: Raw, now: float) -> str:
    """The next runs of a CronJob, as text of one line."""
    from pumice.controller.cronjobs import forecast

    found = forecast(cron_job, now)
    if found.why_none:
        return f"none: {found.why_none}"
    return f"{', '.join(found.runs)} ({found.zone})"


def next_of(manifest: Manifest, checker: "ManifestChecker", now: float) -> Manifest | None:
    """The Job of the next run, before its admission; None if the CronJob is refused or has no next run, which is reported."""
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
    """One sentence about a CronJob, and whether a run waits."""
    from pumice.controller.cronjobs import TimetableError, decide, read, read_timetable
    from pumice.controller.objects import controls_raw

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


async def explain_cron_job(
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
    from pumice.controller.objects import controller_raw

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
