"""Attempts at a flow: its first Job, and those that are created after one has failed.

A failed Job is not removed. The next one has a name of its own, so what was tried and how it ended is known from the Jobs and from
the lists of the status alone. A controller that dies at any write neither loses nor repeats an attempt: the failure is noted in the
status before the next Job is created, and that Job's name can be taken only once.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pumice.api.jobflows import MAX_RETRIES, job_name
from pumice.controller.jobs.phases import COMPLETED, FAILED, TERMINATED

__all__ = ["Attempt", "latest", "next_of"]


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
