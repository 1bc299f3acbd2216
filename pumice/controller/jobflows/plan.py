"""Plans for a JobFlow (Jobs to create or remove, status, and events) and for a JobTemplate (the list of its Jobs).

The status is written before a Job is created or removed. So a Job is created only if the JobFlow has not changed
meanwhile, and the end of a Job is recorded before other steps depend on it. Events report differences between the
status as stored and as written; the Jobs that are created now are reported when they are first seen.

In the status, entries of ended Jobs are kept when the Jobs are removed. Entries of other removed Jobs are dropped, since
their flows get new Jobs. `conditions` also has the reason why a flow has no Job, if a user must act: under the name of its
Job, in field `phase`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from pumice.api.durations import parse_seconds
from pumice.api.jobflows import job_name
from pumice.api.jobs import Job
from pumice.api.kinds import COMMAND, JOB
from pumice.api.meta import Raw, format_time, parse_time
from pumice.controller.jobflows.entries import ACTIVE, Flows, read
from pumice.controller.jobflows.manifests import job_of, termination_of
from pumice.controller.jobs.phases import (
    ABORTED,
    COMPLETED,
    FAILED,
    FINISHED,
    PENDING,
    RESTARTING,
    RUNNING,
    TERMINATED,
    phase_of,
)
from pumice.controller.plan import CreateObject, DeleteObject, PatchStatus, Plan, RecordEvent

_LISTS = {
    PENDING: "pendingJobs",
    **dict.fromkeys(ACTIVE, "runningJobs"),
    COMPLETED: "completedJobs",
    FAILED: "failedJobs",
    TERMINATED: "terminatedJobs",
}
HISTORIES = 10
"""Maximum number of phases of a Job in `runningHistories`, the latest: a Job that restarts repeatedly has many."""

ALL_HISTORIES = 2000
"""Phases that are listed of all Jobs together; each has at least one."""

ALL_TASKS = 1000
"""Tasks whose pods are counted in `conditions`, of all Jobs together. With 1,000 Jobs a status takes less than 1 MB then."""

_OTHERS = "unKnowJobs"
"""Jobs in other phases: none yet, `Aborting`, `Aborted`, `Restarting`."""

_OWN = (*_LISTS.values(), _OTHERS, "jobStatusList", "conditions", "state")


def compose(flows: Flows, stored: Raw, now: float) -> Raw:
    """The status that a JobFlow should have; nothing in it is empty."""
    before = {each.get("name", ""): each for each in stored.get("jobStatusList") or ()}
    conditions = stored.get("conditions") or {}
    status = {key: value for key, value in stored.items() if key not in _OWN and value}
    status["state"] = {"phase": flows.phase}
    kept = max(1, min(HISTORIES, ALL_HISTORIES // max(1, len(flows.phases))))
    room = ALL_TASKS
    for name, phase in sorted(flows.phases.items()):
        job = flows.jobs.get(name)
        known = before.get(name, {"name": name, "state": phase})
        condition = conditions.get(name, {"phase": phase})
        if job is not None:
            known, condition = _job(job, phase, known, now), _condition(job, phase)
        if len(known.get("runningHistories") or ()) > kept:
            known = known | {"runningHistories": known["runningHistories"][-kept:]}
        room -= len(condition.get("taskStatusCount") or ())
        if room < 0:
            condition = {key: each for key, each in condition.items() if key != "taskStatusCount"}
        status.setdefault(_LISTS.get(phase, _OTHERS), []).append(name)
        status.setdefault("jobStatusList", []).append(known)
        status.setdefault("conditions", {})[name] = condition
    for each in flows.entries:
        if each.wait is not None and each.wait.is_problem:
            status.setdefault("conditions", {})[each.job_name] = {"phase": each.wait.reason}
    return status


def _job(job: Job, phase: str, before: Raw, now: float) -> Raw:
    """An item of `jobStatusList`. Its history starts empty if `before` is about another Job of that name."""
    created = job.metadata.creation_timestamp
    histories = list(before.get("runningHistories") or ())
    if before.get("startTimestamp") != created:
        histories = []
    if phase and (not histories or histories[-1].get("state") != phase):
        since = job.status.state.last_transition_time or format_time(now)
        if histories:
            histories[-1] = histories[-1] | {"endTimestamp": since}
        histories.append({"startTimestamp": since, "state": phase})
    found = {
        "name": job.metadata.name,
        "state": phase,
        "startTimestamp": created,
        "endTimestamp": _end(job),
        "restartCount": job.status.retry_count,
        "runningHistories": histories,
    }
    return {key: value for key, value in found.items() if value}


def _end(job: Job) -> str | None:
    """When a Job ended: when it entered its phase, or its creation time plus `runningDuration` if only that is known."""
    state = job.status.state
    if state.phase in FINISHED and state.last_transition_time:
        return state.last_transition_time
    created = parse_time(job.metadata.creation_timestamp)
    ran = parse_seconds(job.status.running_duration or "")
    return None if created is None or ran is None else format_time(created + ran)


def _condition(job: Job, phase: str) -> Raw:
    counts = job.status.task_status_count or {}
    found = {
        "phase": phase,
        "createTime": job.metadata.creation_timestamp,
        "runningDuration": job.status.running_duration,
        "taskStatusCount": {task: {"phase": each.phase or {}} for task, each in counts.items()},
    }
    return {key: value for key, value in found.items() if value}


_STOPPED = ("", PENDING, RUNNING, RESTARTING)
"""Phases of Jobs that are terminated when a JobFlow stops; those that are aborted have no pods, the others end by themselves."""


JOBS = 1000
"""Maximum number of listed Jobs, the newest: an object has at most 1.5 MB."""


_JOBS = "jobDependsOnList"


def plan_job_flow(
    job_flow: Raw,
    jobs: Iterable[Raw],
    templates: Mapping[str, Raw],
    now: float,
    commanded: Collection[str] = (),
) -> Plan:
    """Plan the writes for a JobFlow.

    Args:
        job_flow: The JobFlow as stored.
        jobs: The Jobs that it controls, and those that have a name of one of its Jobs.
        templates: The JobTemplates of its namespace by name, at least those that its flows name.
        now: The moment, in UNIX seconds.
        commanded: Names of Jobs for which there are Commands to terminate them.
    """
    if job_flow["metadata"].get("deletionTimestamp"):
        return Plan()
    stored = job_flow.get("status") or {}
    flows = read(job_flow, jobs, templates)
    status = compose(flows, stored, now)
    meta = flows.job_flow.metadata
    return Plan.of(
        [PatchStatus(status)] if status != stored else [],
        list(_events(flows, stored, status)),
        [
            CreateObject(JOB, job_of(meta, each.job_name, each.raw, templates[each.flow.name]))
            for each in flows.entries
            if each.is_due
        ],
        list(_terminations(flows, commanded)),
        list(_deletes(flows)),
    )


def _terminations(flows: Flows, commanded: Collection[str]) -> Iterator[CreateObject]:
    """Commands for the Jobs that still run in a JobFlow that has failed and is to stop then."""
    if flows.phase != "Failed" or not flows.options.stop:
        return
    for name, job in sorted(flows.jobs.items()):
        leaving = job.metadata.deletion_timestamp
        if not leaving and name not in commanded and job.status.state.phase in _STOPPED:
            yield CreateObject(COMMAND, termination_of(job.metadata, flows.job_flow.metadata.name))


def _deletes(flows: Flows) -> Iterator[DeleteObject]:
    """Deletions of the Jobs of a succeeded JobFlow that does not retain them."""
    if flows.phase != "Succeed" or flows.job_flow.spec.job_retain_policy != "delete":
        return
    for name, job in sorted(flows.jobs.items()):
        if not job.metadata.deletion_timestamp:
            yield DeleteObject(JOB, job.metadata.namespace, name, job.metadata.uid)


def _events(flows: Flows, stored: Raw, status: Raw) -> Iterator[RecordEvent]:
    known = {(each.get("name"), each.get("startTimestamp")) for each in _list(stored)}
    for each in _list(status):
        if each["name"] in flows.jobs and (each["name"], each.get("startTimestamp")) not in known:
            yield RecordEvent("Normal", "Created", f"Job {each['name']} is created")
    before, entries = _conditions(stored), {each.job_name: each for each in flows.entries}
    for name, reason in _conditions(status).items():
        if before.get(name) == reason:
            continue
        entry = entries.get(name)
        if entry is not None and entry.wait is not None:
            message = f"flow {entry.flow.name} {entry.wait.message}"
            yield RecordEvent("Warning", entry.wait.reason, message)
        elif reason == ABORTED:
            message = f"Job {name} is aborted; the JobFlow waits until it is resumed"
            yield RecordEvent("Warning", "JobAborted", message)
        elif reason in (FAILED, TERMINATED):
            message = f"Job {name} is {reason}; {_consequence(flows, name)}"
            yield RecordEvent("Warning", "JobFailed", message)
    if flows.phase == "Succeed" != phase_of(stored):
        yield RecordEvent("Normal", "Succeed", "all Jobs have completed")


def _consequence(flows: Flows, job: str) -> str:
    """What follows from the failure of a Job."""
    if flows.phase == "Failed":
        stopped = ", those that run are terminated" if flows.options.stop else ""
        return f"no more Jobs of the JobFlow are created{stopped}"
    number = flows.options.retries
    for each in flows.entries:
        retry = each.attempt.retry
        if retry and job_name(flows.job_flow.metadata.name, each.flow.name, retry - 1) == job:
            return f"Job {each.job_name} follows, retry {retry} of {number}"
    return "its flow goes on with another Job"


def _list(status: Raw) -> list[Raw]:
    return status.get("jobStatusList") or []


def _conditions(status: Raw) -> dict[str, str]:
    found = status.get("conditions") or {}
    return {name: condition.get("phase", "") for name, condition in found.items()}


def plan_job_template(template: Raw, jobs: Iterable[Raw]) -> Plan:
    """Plan the update of the list of Jobs.

    Args:
        template: The JobTemplate as stored.
        jobs: The Jobs whose label says that they were created from it.
    """
    stored = template.get("status") or {}
    newest = sorted((job["metadata"] for job in jobs), key=_age)[-JOBS:]
    names = sorted(meta["name"] for meta in newest)
    if template["metadata"].get("deletionTimestamp") or names == (stored.get(_JOBS) or []):
        return Plan()
    rest = {key: value for key, value in stored.items() if key != _JOBS}
    return Plan.of([PatchStatus(rest | ({_JOBS: names} if names else {}))])


def _age(meta: Raw) -> tuple[str, str]:
    """Order of creation; times have one form in the API, so they compare as text."""
    return meta.get("creationTimestamp") or "", meta["name"]
