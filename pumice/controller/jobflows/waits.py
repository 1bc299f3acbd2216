"""Reasons why a flow has no Job yet.

A flow starts once each of its targets has completed. With a probe it starts earlier, once the probe holds for the targets that
have not completed. Then the name of its Job must be free, and its template must exist.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pumice.api.jobflows import JOBS, Flow, JobFlow, Probe
from pumice.api.jobs import Job
from pumice.api.kinds import JOB_FLOW
from pumice.api.messages import listed
from pumice.api.meta import Raw
from pumice.controller.jobs.phases import ABORTED, ABORTING, COMPLETED, FAILED, TERMINATED
from pumice.controller.objects import controller_raw

_NAMES = 512
"""Bytes of the longest list of names; an event has 1,024 characters."""

_UNSATISFIED = ("", FAILED, TERMINATED, ABORTED, ABORTING)
"""Phases of Jobs for which no probe holds."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A reason why a flow has no Job yet.

    Attributes:
        reason: One word.
        message: One sentence.
        is_problem: Whether a user must act; such a reason is reported in the status and in an event.
    """

    reason: str
    message: str
    is_problem: bool = True


def of_end(phase: str) -> Wait | None:
    """The wait of flows in a JobFlow that has ended: no further Job starts."""
    if phase != "Failed":
        return None
    message = "is not started: a Job of the JobFlow has failed"
    return Wait("JobFlowFailed", message, is_problem=False)


def of_number(flows: int, retries: int) -> Wait | None:
    """A JobFlow that could have more Jobs than its status has room for; admission refuses it."""
    number = flows * (1 + retries)
    if number <= JOBS:
        return None
    with_retries = f" with {retries} retries each" if retries else ""
    message = (
        f"is not started: {flows} flows{with_retries} can have {number} Jobs, a JobFlow at most {JOBS};"
        " divide it into several"
    )
    return Wait("TooManyJobs", message)


def of_targets(
    flow: Flow, names: Mapping[str, str], phases: Mapping[str, str], jobs: Mapping[str, Job]
) -> Wait | None:
    """The targets that a flow waits for."""
    depends = flow.depends_on
    if depends is None:
        return None
    probe = depends.probe or Probe()
    missing = [each for each in depends.targets or () if each not in names]
    if missing:
        return Wait(
            "UnknownTarget",
            f"waits for {listed(missing, most=_NAMES)}, which spec.flows does not have",
        )
    waiting = [
        each
        for each in dict.fromkeys(depends.targets or ())
        if phases.get(names[each]) != COMPLETED and not _holds(probe, jobs.get(names[each]))
    ]
    if not waiting:
        return None
    found = [f"{each} ({phases.get(names[each]) or 'not started'})" for each in waiting]
    told = listed(found, most=_NAMES)
    if probe.http_get_list or probe.tcp_socket_list:
        message = (
            f"waits until {told} completes: its probe is not carried out, because"
            " httpGetList and tcpSocketList are not supported; use taskStatusList"
        )
        return Wait("UnsupportedProbe", message)
    until = " or its probe holds" if probe.task_status_list else ""
    return Wait("WaitingForTargets", f"waits until {told} completes{until}", is_problem=False)


def _holds(probe: Probe, job: Job | None) -> bool:
    """True if all pods of each task of a target's Job are in the phase that the probe names."""
    if job is None or probe.http_get_list or probe.tcp_socket_list or not probe.task_status_list:
        return False
    if job.metadata.deletion_timestamp or job.status.state.phase in _UNSATISFIED:
        return False
    counts = job.status.task_status_count or {}
    for wanted in probe.task_status_list:
        tasks = [task for task in job.tasks if wanted.task_name in ("", task.name)]
        if not tasks:
            return False
        for task in tasks:
            counted = counts.get(task.name)
            if ((counted and counted.phase) or {}).get(wanted.phase, 0) < task.size:
                return False
    return True


def of_name(job_flow: JobFlow, name: str, other: Raw | None) -> Wait | None:
    """The wait for a name that another Job has."""
    if other is None:
        return None
    owner = controller_raw(other)
    kind, by = owner.get("kind"), owner.get("name")
    if (kind, by) == (JOB_FLOW.kind, job_flow.metadata.name):
        message = f"waits until Job {name} of an earlier JobFlow of the same name is gone"
        return Wait("ForeignJob", message, is_problem=False)
    whose = f"it is controlled by {kind} {by}" if owner else "it has no controller"
    message = (
        f"waits: Job {name} exists and does not belong to this JobFlow ({whose});"
        " delete it, or give the JobFlow another name"
    )
    return Wait("ForeignJob", message)


def of_template(job_flow: JobFlow, name: str, templates: Collection[str]) -> Wait | None:
    """The wait for a template that does not exist."""
    if name in templates:
        return None
    message = (
        f"waits: there is no JobTemplate {name} in namespace {job_flow.metadata.namespace};"
        " the Job is created once there is"
    )
    return Wait("WaitingForTemplate", message)
