"""elect: choose the gang for which nodes are to be reserved.

One gang at a time is the target. It stays the target until it runs, cannot run any more, or its time is over
(`reserve`). Plugins choose among gangs without running pods that the cluster could hold: gangs that are not in their
queue yet, and gangs that are and are not ready. A target of an earlier process is kept, with its nodes and its time.

Gangs are looked at by priority and age while the budget of the cycle lasts. Plugins then choose among those that were looked at;
if none of them can be chosen, the next cycle looks at the others.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from pumice.api.meta import parse_time
from pumice.scheduler.actions.reserve import behind_others, why_no_target
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.axis import SCORED_CPU, SCORED_MEMORY, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.session.session import Session
from pumice.scheduler.specs import ActionSpec
from pumice.scheduler.state.reserved_nodes import Reservation, restored, timed_out
from pumice.scheduler.waiting.parked import Cause

_TRIES = 8
"""Maximum number of gangs that are skipped in one cycle because the cluster cannot hold them; the next one skips others."""


def run(session: Session, _arguments: Arguments) -> None:
    """Choose a target if there is none."""
    state = session.state
    if state.reservation is not None or not session.extensions.target_job:
        return
    resized = state.parked.events & (Cause.SIZES | Cause.RULES)
    state.too_large &= set() if resized else state.gangs.waiting.keys()
    state.too_large -= state.gangs.dirty.keys()
    has = session.view.rows.allocatable.sum(axis=0)
    jobs = [job for job in state.gangs.waiting.values() if _may_fit(job, has, state.too_large)]
    found, is_late = _looked_at(session, jobs)
    left = _candidates(session, found)
    fresh = [job for job in left if timed_out(job) is None]
    late = sorted(
        (job for job in left if timed_out(job) is not None),
        key=lambda job: (parse_time(timed_out(job)) or 0.0, job.key),
    )
    target = _choose(session, fresh) or _first(session, late)
    if target is not None or not is_late:
        state.passed_over.clear()
    if target is not None:
        state.too_large.clear()
        session.reserve(Reservation.of(target, session.now))
    elif is_late or len(left) > _TRIES:
        state.passed_over |= {job.key for job in found if job not in left} if is_late else set()
        session.view.wake_at(session.now)


def restore(session: Session) -> None:
    """Go on with the reservation of an earlier process, by the conditions of PodGroups."""
    state = session.state
    if state.has_restored or not session.extensions.target_job:
        return
    state.has_restored = True
    told = {
        job.key: found
        for job in state.gangs.waiting.values()
        if (found := restored(job, state.nodes.names)) is not None
    }
    waits = [job for key in told if _waits(session, job := state.jobs[key])]
    target = _choose(session, _candidates(session, waits))
    if target is not None:
        found = told[target.key]
        session.reserve(replace(found, since=min(found.since, session.now)))


def _may_fit(job: JobInfo, has: Ints, too_large: set[str]) -> bool:
    """Whether a gang is not known to be too large; `too_large` gets its key if it has no pods and asks for more than all nodes have."""
    if job.key not in too_large and not job.tasks:
        short = job.minimum > has
        short[[SCORED_CPU, SCORED_MEMORY]] = False
        if short.any():
            too_large.add(job.key)
    return job.key not in too_large


def _looked_at(session: Session, jobs: Collection[JobInfo]) -> tuple[list[JobInfo], bool]:
    """Gangs that lack nothing but room on nodes, and whether there was no time to look at all gangs."""
    passed_over, found = session.state.passed_over, []
    passed_over &= session.state.gangs.waiting.keys()
    is_late = False
    for job in sorted(jobs, key=lambda job: (-job.order_priority, job.created, job.key)):
        if job.key in passed_over:
            continue
        if not session.time.may_begin(job.namespace):
            is_late = True
        elif _waits(session, job):
            found.append(job)
        else:
            passed_over.add(job.key)
    return found, is_late


def _candidates(session: Session, jobs: Collection[JobInfo]) -> list[JobInfo]:
    """Those gangs that wait behind no other one of their queue, in the order of their keys."""
    found = sorted(jobs, key=lambda job: job.key)
    queues = session.state.queues
    behind = behind_others(session, {job.queue for job in found if queues[job.queue].is_fifo})
    return [job for job in found if job.key not in behind]


def _choose(session: Session, jobs: list[JobInfo]) -> JobInfo | None:
    """The job that the first plugin that names one chooses among those that the cluster could hold."""
    left = list(jobs)
    for _ in range(min(_TRIES, len(jobs))):
        chosen = (each.call(left) for each in session.extensions.target_job)
        job = next((each for each in chosen if each is not None), None)
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
        fits = session.empty_nodes.could_hold(job)
    if not fits:
        session.state.too_large.add(job.key)
    return fits


SPEC = ActionSpec(
    name="elect",
    summary="Chooses the gang for which nodes are reserved.",
    run=run,
    needs="target_job",
)
