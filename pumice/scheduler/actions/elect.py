"""elect: choose the gang for which nodes are to be reserved.

One gang at a time is the target. It stays the target until it runs, cannot run any more, or its time is over
(`reserve`). Plugins choose among gangs without running pods that the cluster could hold: gangs that are not in their
queue yet, and gangs that are and are not ready. A target of an earlier process is kept, with its nodes and its time.
"""

from collections.abc import Collection, Sequence

from pumice.api.meta import parse_time
from pumice.scheduler.actions.reserve import behind_others, why_no_target
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.axis import SCORED_CPU, SCORED_MEMORY, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.reservation import Reservation, restored, timed_out
from pumice.scheduler.session import Session
from pumice.scheduler.specs import ActionSpec

__all__ = ["SPEC", "restore", "run"]

_TRIES = 8
"""Maximum number of gangs that are skipped in one cycle because the cluster cannot hold them; the next one skips others."""


def run(session: Session, _arguments: Arguments) -> None:
    """Choose a target if there is none."""
    state = session.state
    if state.reservation is not None or not session.extensions.target_job:
        return
    state.too_large &= set() if session.changes_reasons else state.waiting.keys()
    state.too_large -= state.dirty.keys()
    has = session.view.rows.allocatable.sum(axis=0)
    jobs = [job for job in state.waiting.values() if _may_fit(job, has, state.too_large)]
    left = _candidates(session, jobs)
    fresh = [job for job in left if timed_out(job) is None]
    late = sorted(
        (job for job in left if timed_out(job) is not None),
        key=lambda job: (parse_time(timed_out(job)) or 0.0, job.key),
    )
    target = _choose(session, fresh) or _first(session, late)
    if target is not None:
        state.too_large.clear()
        session.reserve(Reservation.of(target, session.now))
    elif len(left) > _TRIES:
        session.view.wake_at(session.now)


def restore(session: Session) -> None:
    """Go on with the reservation of an earlier process, by the conditions of PodGroups."""
    state = session.state
    if state.has_restored or not session.extensions.target_job:
        return
    state.has_restored = True
    told = {
        job.key: found
        for job in state.waiting.values()
        if (found := restored(job, state.nodes.names)) is not None
    }
    target = _choose(session, _candidates(session, [state.jobs[key] for key in told]))
    if target is not None:
        session.reserve(told[target.key].not_after(session.now))


def _may_fit(job: JobInfo, has: Ints, too_large: set[str]) -> bool:
    """Whether a gang is not known to be too large.

    Args:
        job: The gang.
        has: What all nodes have, by column; a bound that costs little for gangs that have no pods yet.
        too_large: Keys of gangs that are; more may be added.
    """
    if job.key not in too_large and not job.tasks:
        short = job.minimum > has
        short[[SCORED_CPU, SCORED_MEMORY]] = False
        if short.any():
            too_large.add(job.key)
    return job.key not in too_large


def _candidates(session: Session, jobs: Collection[JobInfo]) -> list[JobInfo]:
    """Gangs that lack nothing but room on nodes, in the order of their keys."""
    found = sorted((job for job in jobs if _waits(session, job)), key=lambda job: job.key)
    queues = session.state.queues
    behind = behind_others(session, {job.queue for job in found if queues[job.queue].is_fifo})
    return [job for job in found if job.key not in behind]


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


def _first(session: Session, jobs: Sequence[JobInfo]) -> JobInfo | None:
    return next((job for job in jobs[:_TRIES] if _fits(session, job)), None)


def _waits(session: Session, job: JobInfo) -> bool:
    waits = False
    with session.turn(job):
        waits = not why_no_target(session, job)
    return waits  # noqa: RET504 - `turn` ends with an exception of a plugin


def _fits(session: Session, job: JobInfo) -> bool:
    fits = False
    with session.turn(job):
        fits = session.could_hold(job)
    if not fits:
        session.state.too_large.add(job.key)
    return fits


SPEC = ActionSpec(
    name="elect",
    summary="Chooses the gang for which nodes are reserved.",
    run=run,
    asks="target_job",
)
