"""The flows of a JobFlow: the Job of each, or what it waits for.

The status keeps the phase of an ended Job, so a Job that is removed is not created again. The phase of the JobFlow
depends only on the present phases of all Jobs, so one pass after a long pause has the same result as many passes.

An attempt at a flow is its first Job, or one that is created after a Job has failed. A failed Job is not removed. The next one has a name of its own, so what was tried and how it ended is known from the Jobs and from
the lists of the status alone. A controller that dies at any write neither loses nor repeats an attempt: the failure is noted in the
status before the next Job is created, and that Job's name can be taken only once.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec

from pumice.api.jobflows import (
    MAX_RETRIES,
    FailureOptions,
    Flow,
    JobFlow,
    JobFlowStatus,
    failure_options,
    job_name,
)
from pumice.api.jobs import Job
from pumice.api.meta import Raw
from pumice.controller.jobflows.waits import (
    Wait,
    of_end,
    of_name,
    of_number,
    of_targets,
    of_template,
)
from pumice.controller.jobs.phases import (
    COMPLETED,
    COMPLETING,
    FAILED,
    RUNNING,
    TERMINATED,
    TERMINATING,
)
from pumice.controller.objects import controls_raw

ACTIVE = (RUNNING, COMPLETING, TERMINATING)
"""Phases of Jobs that a JobFlow counts as running."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a flow.

    Attributes:
        job: Name of its Job.
        retry: 0 for the first one.
        phase: Phase of the Job, also of one that has ended and was removed; None if there was none.
    """

    job: str
    retry: int = 0
    phase: str | None = None


@dataclass(frozen=True, slots=True)
class FlowEntry:
    """A flow.

    Attributes:
        flow: The flow.
        raw: The flow as stored, with all fields of its patch.
        attempt: The Job that counts for it, or that it gets next.
        wait: Why it has no Job; None if it has one, or if the Job is to be created now.
    """

    flow: Flow
    raw: Raw
    attempt: Attempt
    wait: Wait | None

    @property
    def job_name(self) -> str:
        """Name of its Job."""
        return self.attempt.job

    @property
    def phase(self) -> str | None:
        """Phase of its Job, also of one that has ended and was removed; None if there was none."""
        return self.attempt.phase

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
        options: What is done about Jobs that fail.
    """

    job_flow: JobFlow
    entries: tuple[FlowEntry, ...]
    jobs: Mapping[str, Job]
    phases: Mapping[str, str]
    phase: str
    options: FailureOptions


def read(job_flow: Raw, jobs: Iterable[Raw], templates: Collection[str]) -> Flows:
    """Find the state of each flow.

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
    options = failure_options(decoded.metadata)
    attempts, phase = _attempts(decoded, named, phases, options.retries)
    names = {name: each.job for name, each in attempts.items()}
    crowd = of_number(len(named), options.retries)
    entries = []
    for name, (flow, raw) in named.items():
        attempt, wait = attempts[name], None
        if attempt.phase is None:
            wait = (
                of_end(phase)
                or crowd
                or of_targets(flow, names, phases, mine)
                or of_name(decoded, attempt.job, present.get(attempt.job))
                or of_template(decoded, name, templates)
            )
        if crowd is not None and wait is crowd:
            crowd = replace(crowd, is_problem=False)  # it is said once
        entries.append(FlowEntry(flow, raw, attempt, wait))
    return Flows(decoded, tuple(entries), mine, phases, phase, options)


def _attempts(
    job_flow: JobFlow, names: Iterable[str], phases: Mapping[str, str], retries: int
) -> tuple[dict[str, Attempt], str]:
    """The attempt at each flow that counts, or that comes next unless the JobFlow has failed, and the phase of the JobFlow."""
    meta, stored = job_flow.metadata, job_flow.status.state.phase
    firsts = {job_name(meta.name, name) for name in names}
    tried = {name: latest(meta.name, name, phases, firsts) for name in names}
    again = {
        name: found
        for name, each in tried.items()
        if (found := next_of(each, meta.name, name, retries, firsts)) is not None
    }
    # A flow that gets another Job has not failed.
    counted = [RUNNING if name in again else each.phase for name, each in tried.items()]
    phase = _phase(stored, counted)
    return tried if phase == "Failed" else tried | again, phase


def _ended(status: JobFlowStatus) -> dict[str, str]:
    """Phases of the Jobs that had ended when the status was written."""
    lists = {
        FAILED: status.failed_jobs,
        TERMINATED: status.terminated_jobs,
        COMPLETED: status.completed_jobs,
    }
    return {name: phase for phase, names in lists.items() for name in names or ()}


def awaits_end(job_flow: Raw, name: str) -> bool:
    """True if a JobFlow has not yet recorded the end of one of its Jobs."""
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


def latest(job_flow: str, flow: str, phases: Mapping[str, str], others: Collection[str]) -> Attempt:
    """The attempt that counts: one that has completed, otherwise the latest.

    Args:
        job_flow: Name of the JobFlow.
        flow: Name of the flow.
        phases: Phases of existing and former Jobs by name.
        others: Names of the first Jobs of all flows; such a Job is not an attempt at another flow.
    """
    first = job_name(job_flow, flow)
    found = Attempt(first, 0, phases.get(first))
    for retry in range(1, MAX_RETRIES + 1):
        job = job_name(job_flow, flow, retry)
        if found.phase == COMPLETED or job not in phases or job in others:
            break
        found = Attempt(job, retry, phases[job])
    return found


def next_of(
    attempt: Attempt, job_flow: str, flow: str, retries: int, others: Collection[str]
) -> Attempt | None:
    """The attempt that follows a failed one; None if it has not failed, or was the last one.

    Args:
        attempt: The latest attempt.
        job_flow: Name of the JobFlow.
        flow: Name of the flow.
        retries: How many attempts may follow the first.
        others: As for `latest`.
    """
    if attempt.phase not in (FAILED, TERMINATED) or attempt.retry >= retries:
        return None
    job = job_name(job_flow, flow, attempt.retry + 1)
    return None if job in others else Attempt(job, attempt.retry + 1)
