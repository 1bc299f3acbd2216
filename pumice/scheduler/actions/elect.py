"""elect: choose the gang for which nodes are to be reserved.

One gang at a time is the target. It stays the target until it runs, cannot run any more, or its time is over
(`reserve`). Plugins choose among gangs without running pods that the cluster could hold: gangs that are not in their
queue yet, and gangs that are and are not ready. A target of an earlier process is kept, with its nodes and its time.
"""

from pumice.api.meta import parse_time
from pumice.scheduler.actions.reserve import may_be_target
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.reservation import Reservation, restored, timed_out
from pumice.scheduler.session import Session
from pumice.scheduler.specs import ActionSpec

__all__ = ["SPEC", "run"]

_TRIES = 8
"""Maximum number of gangs that are skipped in one cycle because the cluster cannot hold them."""


def run(session: Session, _arguments: Arguments) -> None:
    """Choose a target if there is none."""
    state = session.state
    if state.reservation is not None or not session.extensions.target_job:
        return
    waiting = sorted(
        (job for job in state.waiting.values() if _waits(session, job)), key=lambda job: job.key
    )
    told = {}
    if not state.has_restored:
        told = {job.key: found for job in waiting if (found := restored(job, state.nodes.names))}
        state.has_restored = True
    fresh = [job for job in waiting if timed_out(job) is None]
    late = sorted(
        (job for job in waiting if timed_out(job) is not None),
        key=lambda job: (parse_time(timed_out(job)) or 0.0, job.key),
    )
    target = _choose(session, [job for job in waiting if job.key in told])
    target = target or _choose(session, fresh)
    target = target or next((job for job in late[:_TRIES] if _fits(session, job)), None)
    if target is None:
        return
    found = told.get(target.key) or Reservation.of(target, session.now)
    session.reserve(found.not_after(session.now))


def _choose(session: Session, jobs: list[JobInfo]) -> JobInfo | None:
    """The job that the plugin chooses among those that the cluster could hold."""
    choose = session.extensions.target_job[0].call
    left = list(jobs)
    for _ in range(min(_TRIES, len(jobs))):
        job = choose(left)
        if job is None or _fits(session, job):
            return job
        left.remove(job)
    return None


def _waits(session: Session, job: JobInfo) -> bool:
    waits = False
    with session.turn(job):
        waits = may_be_target(session, job)
    return waits  # noqa: RET504 - `turn` ends with an exception of a plugin


def _fits(session: Session, job: JobInfo) -> bool:
    fits = False
    with session.turn(job):
        fits = session.could_hold(job)
    return fits  # noqa: RET504


SPEC = ActionSpec(
    name="elect",
    summary="Chooses the gang for which nodes are reserved.",
    run=run,
    asks="target_job",
)
