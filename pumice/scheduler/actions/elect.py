"""elect: choose the gang for which nodes are to be reserved.

One gang at a time is the target. It stays until it runs, goes, or its time is over (`reserve`). Plugins choose among
the gangs that wait as a whole: those that were not let into their queue, and those that were and are not ready.
"""

from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.jobs import Job
from pumice.scheduler.reservation import CONDITION, Reservation, restored
from pumice.scheduler.session import Session
from pumice.scheduler.specs import ActionSpec

__all__ = ["SPEC", "run"]


def run(session: Session, _arguments: Arguments) -> None:
    """Choose a target if there is none."""
    state = session.state
    if state.cycles == 1 and state.reservation is None:
        session.reserve(restored(state.waiting.values(), state.nodes.names))
    if state.reservation is not None or not session.extensions.target_job:
        return
    waiting = sorted(
        (job for job in state.waiting.values() if _may_be_chosen(session, job)),
        key=lambda job: job.key,
    )
    fresh = [job for job in waiting if not _has_timed_out(job)]
    target = session.extensions.target_job[0].call(fresh or waiting) if waiting else None
    if target is not None:
        session.reserve(Reservation.of(target, session.now))


def _may_be_chosen(session: Session, job: Job) -> bool:
    queue = session.state.queues.get(job.queue)
    return (
        job.group is not None
        and job.key not in session.state.quarantined
        and queue is not None
        and queue.is_open
        and session.why_invalid(job) is None
        and (session.is_pending(job) or not session.is_ready(job))
    )


def _has_timed_out(job: Job) -> bool:
    """Whether it was the target for as long as it may; others come first then."""
    return any(
        (each.type, each.status, each.reason) == (CONDITION, "False", "TimedOut")
        for each in job.status.conditions or ()
    )


SPEC = ActionSpec(
    name="elect",
    summary="Chooses the gang for which nodes are reserved.",
    run=run,
)
