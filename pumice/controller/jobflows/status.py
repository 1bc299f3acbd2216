"""The status of a JobFlow.

Entries of ended Jobs are kept when the Jobs are removed. Entries of other removed Jobs are dropped, since their flows
get new Jobs. `conditions` also has the reason why a flow has no Job, if a user must act: under the name of its Job, in
field `phase`.
"""

from pumice.api.durations import parse_seconds
from pumice.api.jobs import Job
from pumice.api.meta import Raw, format_time, parse_time
from pumice.controller.jobflows.entries import ACTIVE, Flows
from pumice.controller.jobs.phases import COMPLETED, FAILED, FINISHED, PENDING, TERMINATED

__all__ = ["compose"]

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
    """The status that a JobFlow should have; nothing in it is empty.

    Args:
        flows: The JobFlow.
        stored: Its status as stored.
        now: The moment, in UNIX seconds.
    """
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
