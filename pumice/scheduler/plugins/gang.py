"""gang: a job gets its minimum of pods, of each task and of its sub-groups, or none."""

from collections.abc import Sequence

import numpy as np

from pumice.scheduler.explain.nearest import pods_of
from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.candidates import Candidates, Preemptor, any_preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.sub_groups import SubGroupLosses, too_few
from pumice.scheduler.model.tasks import PENDING, PIPELINED, SchedulingStatus
from pumice.scheduler.points import Vote
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.results import Reason
from pumice.scheduler.specs import LastingPlugin, PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause

_VALID = (PIPELINED, PENDING)
_BROKEN, _WITHOUT_PLACES, _READY = range(3)
"""Order of gangs that wait."""


class Gang(LastingPlugin):
    """All-or-nothing placement of gangs."""

    def open(self, _session: SessionView, register: Registrar) -> None:
        """Register the checks."""
        register.job_valid(why_invalid, wakes=Cause.ITSELF)
        register.job_order(_place)
        register.job_ready(is_ready, wakes=Cause.ITSELF, needs_minimum=True)
        register.job_pipelined(vote, needs_minimum=True)
        register.job_starving(is_starving)
        register.preemptable(may_lose, by=any_preemptor, spares=_may_lose_none)
        register.reclaimable(may_lose, by=any_preemptor, spares=_may_lose_none)


def _place(job: JobInfo) -> int:
    """Gangs that hold places and lack their minimum come first, since what they hold is of no use; ready ones come last."""
    if job.ready >= job.min_member and is_ready(job):
        return _READY
    return _BROKEN if job.holding else _WITHOUT_PLACES


def why_invalid(job: JobInfo) -> Reason | None:
    """Why a job has too few pods to reach its minimum on any nodes."""
    if job.min_task and _counts_roles(job):
        lacking = {
            role: (has, minimum)
            for role, minimum in job.min_task.items()
            if (has := job.role_ready(role, *_VALID)) < minimum
        }
        if lacking:
            of_roles = dict(sorted(lacking.items()))
            return too_few("pods", "tasks", "tasks to be created: it has", of_roles)
    groups = job.sub_groups
    if groups is not None and (why := groups.why_invalid()) is not None:
        return why
    if job.valid < job.min_member:
        return Reason(
            "NotEnoughTasks",
            f"Not enough valid tasks for gang-scheduling, valid: {job.valid}, min: {job.min_member}",
            {"valid": job.valid, "min": job.min_member},
            plain=f"needs {pods_of(job.min_member)} and has {job.valid}; the others must be created first",
        )
    return None


def is_ready(job: JobInfo) -> bool:
    """Whether a job has its minimum of pods, of each task, and of sub-groups."""
    if job.ready < job.min_member or (job.min_task and not _has_roles(job)):
        return False
    groups = job.sub_groups
    return groups is None or groups.is_ready()


def is_pipelined(job: JobInfo) -> bool:
    """True if a job has its minimums, including pipelined pods."""
    if job.counts[PIPELINED] + job.ready < job.min_member:
        return False
    if job.min_task and not _has_roles(job, PIPELINED):
        return False
    groups = job.sub_groups
    return groups is None or groups.is_pipelined()


def vote(job: JobInfo) -> Vote:
    """Whether a job may keep its pipelined pods."""
    return Vote.PERMIT if is_pipelined(job) else Vote.REJECT


def is_starving(job: JobInfo) -> bool:
    """Whether a job has less than its minimum of pods, or of sub-groups, promised places included."""
    if job.counts[PIPELINED] + job.ready < job.min_member:
        return True
    groups = job.sub_groups
    return groups is not None and not groups.is_pipelined()


def may_lose(_: Preemptor, candidates: Candidates) -> Bools:
    """Candidates that their gang has beyond its minimum, beyond the minimum of their task, and beyond that of sub-groups."""
    surplus = candidates.of_jobs(lambda job: job.gang.ready - job.gang.min_member)
    gang = candidates.gang
    if (surplus >= np.bincount(gang)[gang]).all():
        may: Bools = np.ones(len(surplus), dtype=np.bool_)
    else:
        may = candidates.earlier(gang) < surplus
    if any(job.gang.min_task for job in candidates.jobs):
        may &= _role_may_lose(candidates)
    if any(job.gang.sub_groups is not None for job in candidates.jobs):
        may &= _sub_group_may_lose(candidates)
    return may


def _may_lose_none(_: Preemptor, gangs: Sequence[JobInfo]) -> bool:
    return all(job.gang.ready <= job.gang.min_member for job in gangs)


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


def _sub_group_may_lose(candidates: Candidates) -> Bools:
    """Candidates of sub-groups that stay complete, that are incomplete already, or of which the gang has more than it requires."""
    losses, found = SubGroupLosses(), []
    scopes = candidates.scope.tolist()
    for task, job, scope in zip(candidates.tasks, candidates.job.tolist(), scopes, strict=True):
        groups = candidates.jobs[job].gang.sub_groups
        found.append(groups is None or losses.takes(groups.of(task), scope))
    return np.array(found, dtype=np.bool_)


def _counts_roles(job: JobInfo) -> bool:
    """Minimums of roles that add up to more than the job's own are not looked at."""
    return bool(job.min_task) and job.min_member >= job.min_task_total


def _has_roles(job: JobInfo, *others: SchedulingStatus) -> bool:
    if not _counts_roles(job):
        return True
    for role, least in job.min_task.items():  # noqa: SIM110 - asked several times for each gang
        if job.role_ready(role, *others) < least:
            return False
    return True


SPEC = PluginSpec(
    name="gang",
    summary="A job gets the minimum of its pods, of each task and of its sub-groups, or nothing.",
    build=lambda _: Gang(),
)
