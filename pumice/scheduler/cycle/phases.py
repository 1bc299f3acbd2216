"""Phases and conditions of PodGroups, from counts."""

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from pumice.api.meta import format_time
from pumice.api.podgroups import PodGroupCondition, PodGroupStatus
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import (
    FAILED,
    PENDING,
    PIPELINED,
    RELEASING,
    RUNNING,
    SUCCEEDED,
)
from pumice.scheduler.results import Reason

UNSCHEDULABLE_TYPE = "Unschedulable"
SCHEDULED_TYPE = "Scheduled"
SCHEDULED_REASON = "tasks in gang are ready to be scheduled"


def next_phase(job: JobInfo, phase: str, *, unschedulable: bool) -> str:
    """Phase of a PodGroup at the end of a session; the one before is Inqueue if this session let it into its queue.

    A gang without any scheduled pod is never Running or Completed, not even with a minimum of 0.
    """
    if unschedulable and job.counts[RUNNING]:
        return "Unknown"
    scheduled = job.scheduled + job.releasing_placed
    if scheduled and scheduled >= job.min_member:
        done = job.counts[SUCCEEDED] + job.counts[FAILED]
        return "Completed" if done == scheduled else "Running"
    return phase if phase == "Inqueue" else "Pending"


def is_releasing(job: JobInfo) -> bool:
    """Whether a gang is only short of pods because some are about to leave, so that nothing is wrong yet."""
    counts = job.counts
    if not counts[RELEASING] or counts[PENDING] or counts[PIPELINED]:
        return False
    placed = job.releasing_placed
    return placed > 0 and job.scheduled + placed >= job.min_member


def next_conditions(
    before: Sequence[PodGroupCondition],
    finding: Reason | None,
    *,
    cycle: str,
    now: float,
    where: str = "",
) -> list[PodGroupCondition]:
    """Conditions at the end of a session; unchanged ones keep their time.

    Args:
        before: Conditions so far.
        finding: Why the gang cannot be scheduled; None if it can.
        cycle: Identity of the session.
        now: The moment, UNIX seconds.
        where: In which HyperNode its pods are, as a sentence.
    """
    if finding is None and not before and not where:
        return [_newly_scheduled(cycle, now)]
    if finding is None:
        found = msgspec.structs.replace(_SCHEDULED, message=where) if where else _SCHEDULED
    else:
        found = PodGroupCondition(
            type=UNSCHEDULABLE_TYPE, status="True", reason=finding.reason, message=finding.message
        )
    after: list[PodGroupCondition] = []
    is_known = False
    for condition in before:
        wanted = condition
        if condition.type == found.type:
            is_known = True
            wanted = found
        elif condition.type in (SCHEDULED_TYPE, UNSCHEDULABLE_TYPE):
            wanted = msgspec.structs.replace(condition, status="False")
        after.append(condition if _same(condition, wanted) else _stamped(wanted, cycle, now))
    if not is_known:
        after.append(_stamped(found, cycle, now))
    return after


def standing_message(conditions: Sequence[PodGroupCondition]) -> tuple[str, str | None]:
    """Reason and message of the condition about why a gang cannot be scheduled; empty if there is none."""
    for condition in conditions:
        if condition.type == UNSCHEDULABLE_TYPE and condition.status == "True":
            return condition.reason, condition.message
    return "", None


def with_counters(
    job: JobInfo, phase: str, conditions: Sequence[PodGroupCondition]
) -> PodGroupStatus:
    """The whole status; no conditions are spelled as they were before."""
    return PodGroupStatus(
        phase=phase,
        conditions=list(conditions) if conditions else job.status.conditions,
        running=job.counts[RUNNING],
        succeeded=job.counts[SUCCEEDED],
        failed=job.counts[FAILED],
    )


def _same(one: PodGroupCondition, other: PodGroupCondition) -> bool:
    return (one.type, one.status, one.reason, one.message) == (
        other.type,
        other.status,
        other.reason,
        other.message,
    )


def _stamped(condition: PodGroupCondition, cycle: str, now: float) -> PodGroupCondition:
    return msgspec.structs.replace(
        condition, transition_id=cycle, last_transition_time=format_time(now)
    )


@lru_cache(maxsize=8)
def _newly_scheduled(cycle: str, now: float) -> PodGroupCondition:
    """The first condition of a gang that could be scheduled at once; one for all gangs of a cycle."""
    return _stamped(_SCHEDULED, cycle, now)


_SCHEDULED = PodGroupCondition(type=SCHEDULED_TYPE, status="True", reason=SCHEDULED_REASON)
