"""gang: a job gets its minimum of pods or none."""

import numpy as np

from pumice.api.messages import listed
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.explain.nearest import pods_of
from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.candidates import Candidates, Preemptor, any_preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import SchedulingStatus
from pumice.scheduler.points import Vote
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.results import Reason
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause

__all__ = [
    "SPEC",
    "Gang",
    "is_pipelined",
    "is_ready",
    "is_starving",
    "may_lose",
    "vote",
    "why_invalid",
]

_VALID = (SchedulingStatus.PIPELINED, SchedulingStatus.PENDING)
_BROKEN, _WITHOUT_PLACES, _READY = range(3)
"""Order of gangs that wait."""


class Gang:
    """All-or-nothing placement of gangs."""

    def __init__(self, _arguments: Arguments) -> None:
        """There are no arguments."""

    def open(self, _session: SessionView, register: Registrar) -> None:
        """Register the checks."""
        register.job_valid(why_invalid, wakes=Cause.ITSELF)
        register.job_order(_place)
        register.job_ready(is_ready, wakes=Cause.ITSELF, needs_minimum=True)
        register.job_pipelined(vote)
        register.job_starving(is_starving)
        register.preemptable(may_lose, by=any_preemptor)
        register.reclaimable(may_lose, by=any_preemptor)


def _place(job: JobInfo) -> int:
    """Gangs that hold places and lack their minimum come first, since what they hold is of no use; ready ones come last."""
    if is_ready(job):
        return _READY
    return _BROKEN if job.holding else _WITHOUT_PLACES


def why_invalid(job: JobInfo) -> Reason | None:
    """Why a job has too few pods to reach its minimum on any nodes."""
    if _counts_roles(job):
        lacking = {
            role: (job.role_ready(role, *_VALID), minimum)
            for role, minimum in sorted(job.min_task.items())
            if job.role_ready(role, *_VALID) < minimum
        }
        if lacking:
            roles = listed([f"{role}: {has} of {needs}" for role, (has, needs) in lacking.items()])
            return Reason(
                "NotEnoughPodsOfTask",
                f"Not enough valid pods of each task for gang-scheduling, {roles}",
                {"tasks": {role: {"valid": v, "min": m} for role, (v, m) in lacking.items()}},
                plain=f"waits for pods of its tasks to be created: it has {roles}",
            )
    if job.valid < job.min_member:
        return Reason(
            "NotEnoughTasks",
            f"Not enough valid tasks for gang-scheduling, valid: {job.valid}, min: {job.min_member}",
            {"valid": job.valid, "min": job.min_member},
            plain=f"needs {pods_of(job.min_member)} and has {job.valid}; the others must be created first",
        )
    return None


def is_ready(job: JobInfo) -> bool:
    """Whether a job has its minimum."""
    return job.ready >= job.min_member and (not job.min_task or _has_roles(job))


def is_pipelined(job: JobInfo) -> bool:
    """True if a job has its minimum, including pipelined pods."""
    if job.counts[SchedulingStatus.PIPELINED] + job.ready < job.min_member:
        return False
    return not job.min_task or _has_roles(job, SchedulingStatus.PIPELINED)


def vote(job: JobInfo) -> Vote:
    """Whether a job may keep its pipelined pods."""
    return Vote.PERMIT if is_pipelined(job) else Vote.REJECT


def is_starving(job: JobInfo) -> bool:
    """Whether a job has less than its minimum, promised places included."""
    return job.counts[SchedulingStatus.PIPELINED] + job.ready < job.min_member


def may_lose(_: Preemptor, candidates: Candidates) -> Bools:
    """Candidates that their gang has beyond its minimum, and beyond the minimum of their task."""
    surplus = candidates.of_jobs(lambda job: job.gang.ready - job.gang.min_member)
    may: Bools = candidates.earlier(candidates.gang) < surplus
    if any(_counts_roles(job.gang) for job in candidates.jobs):
        may &= _role_may_lose(candidates)
    return may


def _role_may_lose(candidates: Candidates) -> Bools:
    roles: dict[tuple[str, str], int] = {}
    surplus: list[int] = []
    for task, place in zip(candidates.tasks, candidates.job.tolist(), strict=True):
        job = candidates.jobs[place].gang
        if (task.job, task.role) in roles:
            continue
        roles[task.job, task.role] = len(surplus)
        minimum = job.min_task.get(task.role, 0) if _counts_roles(job) else 0
        surplus.append(job.role_ready(task.role) - minimum if minimum else len(job.tasks))
    group = candidates.of_tasks(lambda task: roles[task.job, task.role])
    found: Bools = candidates.earlier(group) < np.array(surplus, dtype=np.int64)[group]
    return found


def _counts_roles(job: JobInfo) -> bool:
    """Minimums of roles that add up to more than the job's own are not looked at."""
    return bool(job.min_task) and job.min_member >= job.min_task_total


def _has_roles(job: JobInfo, *others: SchedulingStatus) -> bool:
    if not _counts_roles(job):
        return True
    return all(job.role_ready(role, *others) >= least for role, least in job.min_task.items())


SPEC = PluginSpec(
    name="gang",
    summary="A job gets the minimum of its pods, and of each task, or nothing.",
    build=Gang,
)
