"""The flows of a JobFlow: the Job of each, or what it waits for.

A flow starts once each of its targets has completed. With a probe it starts earlier, once the probe holds for the targets that
have not completed. A Job that has ended has run: the status remembers it when the Job is removed, and it is not created again. The
phase of the JobFlow follows from the phases of all Jobs at once, so that a pass after a long pause finds the same as many passes.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from pumice.api.jobflows import Flow, JobFlow, JobFlowStatus, Probe, job_name
from pumice.api.jobs import Job
from pumice.api.kinds import JOB_FLOW
from pumice.api.meta import Raw
from pumice.controller.owners import controller_raw, controls_raw
from pumice.controller.phases import (
    ABORTED,
    ABORTING,
    COMPLETED,
    COMPLETING,
    FAILED,
    RUNNING,
    TERMINATED,
    TERMINATING,
)

__all__ = ["Entry", "Flows", "Wait", "awaits_end", "read"]

ACTIVE = (RUNNING, COMPLETING, TERMINATING)
"""Phases of Jobs that a JobFlow counts as running."""

_UNSATISFIED = ("", FAILED, TERMINATED, ABORTED, ABORTING)
"""Phases of Jobs for which no probe holds."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a flow has no Job yet.

    Attributes:
        reason: One word.
        message: One sentence.
        is_problem: Whether it does not pass by itself; such a reason stands in the status and in an event.
    """

    reason: str
    message: str
    is_problem: bool = True


@dataclass(frozen=True, slots=True)
class Entry:
    """A flow.

    Attributes:
        flow: The flow.
        raw: The flow as stored, with all fields of its patch.
        job_name: Name of its Job.
        phase: Phase of its Job, also of one that has ended and was removed; None if there was none.
        wait: Why it has no Job; None if it has one, or if the Job is to be created now.
    """

    flow: Flow
    raw: Raw
    job_name: str
    phase: str | None
    wait: Wait | None

    @property
    def is_due(self) -> bool:
        """Whether its Job is to be created now."""
        return self.phase is None and self.wait is None


@dataclass(frozen=True, slots=True)
class Flows:
    """A JobFlow and its Jobs.

    Attributes:
        job_flow: The JobFlow.
        entries: Its flows; of several flows of one name the last counts.
        jobs: The Jobs that it controls, by name.
        phases: Phases by name of these Jobs and of those that have ended and were removed.
        phase: Phase of the JobFlow.
    """

    job_flow: JobFlow
    entries: tuple[Entry, ...]
    jobs: Mapping[str, Job]
    phases: Mapping[str, str]
    phase: str


def read(job_flow: Raw, jobs: Iterable[Raw], templates: Collection[str]) -> Flows:
    """Find out how each flow stands.

    Args:
        job_flow: The JobFlow as stored.
        jobs: The Jobs that it controls, and those that have a name of one of its Jobs.
        templates: Names of the JobTemplates of its namespace.
    """
    decoded = msgspec.convert(job_flow, JobFlow)
    present = {each["metadata"]["name"]: each for each in jobs}
    mine = {
        name: msgspec.convert(each, Job)
        for name, each in present.items()
        if controls_raw(decoded.metadata, each)
    }
    ended = _ended(decoded.status)
    phases = ended | {name: each.status.state.phase for name, each in mine.items()}
    phases |= {name: COMPLETED for name, phase in ended.items() if phase == COMPLETED}
    raws = (job_flow.get("spec") or {}).get("flows") or []
    named = {each.name: (each, raw) for each, raw in zip(decoded.flows, raws, strict=True)}
    names = {name: job_name(decoded.metadata.name, name) for name in named}
    phase = _phase(decoded.status.state.phase, [phases.get(each) for each in names.values()])
    entries = []
    for name, (flow, raw) in named.items():
        job = names[name]
        wait = None
        if job not in phases:
            wait = (
                _of_end(phase)
                or _of_targets(flow, names, phases, mine)
                or _of_name(decoded, job, present.get(job))
                or _of_template(decoded, name, templates)
            )
        entries.append(Entry(flow, raw, job, phases.get(job), wait))
    return Flows(decoded, tuple(entries), mine, phases, phase)


def _ended(status: JobFlowStatus) -> dict[str, str]:
    """Phases of the Jobs that had ended when the status was written."""
    lists = {
        FAILED: status.failed_jobs,
        TERMINATED: status.terminated_jobs,
        COMPLETED: status.completed_jobs,
    }
    return {name: phase for phase, names in lists.items() for name in names or ()}


def awaits_end(job_flow: Raw, name: str) -> bool:
    """Whether a JobFlow has yet to note that a Job of its own, which has ended, has done so."""
    if job_flow["metadata"].get("deletionTimestamp"):
        return False
    return name not in _ended(msgspec.convert(job_flow.get("status") or {}, JobFlowStatus))


def _phase(stored: str, phases: list[str | None]) -> str:
    """Phase of a JobFlow by the phases of the Jobs of its flows; None for a flow that has none yet."""
    if all(each == COMPLETED for each in phases):
        return "Succeed"
    if any(each in (FAILED, TERMINATED) for each in phases):
        return "Failed"
    if stored not in ("", "Pending") or any(each in (*ACTIVE, COMPLETED) for each in phases):
        return "Running"
    return "Pending"


def _of_end(phase: str) -> Wait | None:
    if phase != "Failed":
        return None
    message = "is not started: a Job of the JobFlow has failed"
    return Wait("JobFlowFailed", message, is_problem=False)


def _of_targets(
    flow: Flow, names: Mapping[str, str], phases: Mapping[str, str], jobs: Mapping[str, Job]
) -> Wait | None:
    """What a flow waits for among its targets."""
    depends = flow.depends_on
    if depends is None:
        return None
    probe = depends.probe or Probe()
    missing = [each for each in depends.targets or () if each not in names]
    if missing:
        return Wait(
            "UnknownTarget", f"waits for {_listed(missing)}, which spec.flows does not have"
        )
    waiting = [
        each
        for each in dict.fromkeys(depends.targets or ())
        if phases.get(names[each]) != COMPLETED and not _holds(probe, jobs.get(names[each]))
    ]
    if not waiting:
        return None
    told = _listed([f"{each} ({phases.get(names[each]) or 'not started'})" for each in waiting])
    if probe.http_get_list or probe.tcp_socket_list:
        message = (
            f"waits until {told} completes: its probe is not carried out, because"
            " httpGetList and tcpSocketList are not supported; use taskStatusList"
        )
        return Wait("UnsupportedProbe", message)
    until = " or its probe holds" if probe.task_status_list else ""
    return Wait("WaitingForTargets", f"waits until {told} completes{until}", is_problem=False)


def _holds(probe: Probe, job: Job | None) -> bool:
    """Whether a probe holds for the Job of a target: all pods of each task are in the phase that is asked for."""
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


def _of_name(job_flow: JobFlow, name: str, other: Raw | None) -> Wait | None:
    """The name of a flow's Job is that of another Job."""
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


def _of_template(job_flow: JobFlow, name: str, templates: Collection[str]) -> Wait | None:
    if name in templates:
        return None
    message = (
        f"waits: there is no JobTemplate {name} in namespace {job_flow.metadata.namespace};"
        " the Job is created once there is"
    )
    return Wait("WaitingForTemplate", message)


def _listed(names: list[str]) -> str:
    return ", ".join(names)
