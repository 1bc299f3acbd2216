"""enqueue: let waiting gangs into their queue, so that their pods are created and placed.

Every queue lets in one gang at a time, in turn; a gang that is turned away does not hold up those behind it,
unless the queue says `dequeueStrategy: fifo`. Gangs that were turned away before are asked about first, without those that need too much
by one comparison, and one of those that are alike: what enters only takes room, so that those that are refused again have no turn.
"""

from collections.abc import Hashable, Sequence

from pumice.api.queues import users_of
from pumice.scheduler.actions.fifo import hold_back, leave
from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.results import Reason
from pumice.scheduler.session.session import Session
from pumice.scheduler.specs import ActionSpec
from pumice.scheduler.waiting.parked import Cause, Parked

_ANY = int(Cause.ANY)


def run(session: Session, _arguments: Arguments) -> None:
    """Let in the gangs to which the plugins agree."""
    pending = [job for job in session.view.waiting if job.is_pending]
    _find_too_large(session, pending)
    _let_target_in(session)
    if not pending:
        return
    refused: dict[Hashable, bool] = {}  # whether gangs are refused again, by what they are like

    def takes_part(job: JobInfo) -> bool:
        if job.group is None or job.key in session.entered:
            return False
        parked = session.refused.parked(job) if job.min_resources else None
        is_refused = refused.get(parked.likeness) if parked is not None else None
        if is_refused is None:
            if session.queue_of(job) is None:
                return False
            if parked is None or not _may_be_refused_again(session, job, parked):
                return True
            is_refused = session.answers.is_kept_out(job)
            if parked.likeness is not None:
                refused[parked.likeness] = is_refused
        if is_refused:
            session.skipped.add(job.key)
        return not is_refused

    left = _without_too_large(session, pending)
    lines = session.answers.by_queue(left, takes_part, session.fail)
    if not lines:
        return
    queues = session.answers.ordered_queues(session.state.queues[name] for name in lines)
    while queues:
        queue = queues.first()
        line = lines[queue.metadata.name]
        if not line:
            queues.pop()
            continue
        job = line.pop()
        if not session.reaches(job):
            leave(session, queue, line)
            continue
        try:
            too_large, refusal, alike = "", None, None
            if job.min_resources:  # no room is kept for others, and they always may enter
                too_large = session.why_too_large(job)
                alike = session.answers.gate_class(job)
                refusal = _why_not(session, job, alike)
            if refusal is None:
                session.enter(job)
            else:
                outcome = session.outcome(job)
                outcome.refusal = refusal.after(too_large)
                outcome.likeness = alike
                outcome.is_over_share = True
                outcome.causes |= session.extensions.causes["gate"]
                if queue.is_fifo:
                    hold_back(session, queue, job, line)
        except Exception as error:
            session.fail(job.key, error)
        session.time.end_turn(job.namespace)


def _find_too_large(session: Session, pending: Sequence[JobInfo]) -> None:
    """Look at gangs whose pods have just been created, so that no room is kept for those that no nodes could hold."""
    if not any(job.min_resources for job in pending):
        return
    dirty = session.state.gangs.dirty
    for job in [job for job in session.view.waiting if job.key in dirty]:
        is_new = job.tasks and not session.is_pending(job)
        if is_new and job.min_resources and job.group is not None:
            with session.turn(job):
                session.why_too_large(job)


def _let_target_in(session: Session) -> None:
    """Ask first about the gang for which nodes are reserved, before others take what its queue has left."""
    job = session.view.target
    if job is None or not session.is_pending(job) or job.key in session.state.gangs.quarantined:
        return
    queue = session.queue_of(job)
    if queue is None or queue.is_fifo:
        return
    with session.turn(job):
        if _why_not(session, job, None) is None:
            session.enter(job)


def _without_too_large(session: Session, pending: Sequence[JobInfo]) -> list[JobInfo]:
    """The gangs, without those that were turned away before and need more than any that plugins let in now."""
    before: dict[tuple[str, int], list[JobInfo]] = {}
    for job, parked in session.refused.before(pending):
        if parked.causes != _ANY and job.min_resources and not (job.counted and job.holding):
            before.setdefault((job.queue, job.order_priority), []).append(job)
    for (name, _), jobs in before.items():
        queue = session.state.queues.get(name)
        if queue is not None and queue.is_open and users_of(queue) is None:
            with session.turn(jobs[0]):
                session.skipped.update([job.key for job in session.answers.kept_out(jobs)])
    return [job for job in pending if job.key not in session.skipped]


def _may_be_refused_again(session: Session, job: JobInfo, parked: Parked) -> bool:
    """Whether a gang that was refused before may be asked about while nothing has entered; if it is refused again, it keeps its reason.

    Not where plugins name no cause: they may answer otherwise once others have entered. The gang for which nodes are reserved is never parked.
    """
    is_known = parked.causes != _ANY and not job.holding
    return is_known and session.time.may_begin(job.namespace)


def _why_not(session: Session, job: JobInfo, alike: Hashable) -> Reason | None:
    """Why a gang may not enter; one without `minResources` always may, and one that holds places has entered before."""
    if not job.min_resources or job.holding:
        return None
    if session.is_target(job.key):
        return session.answers.why_barred(job)
    return session.answers.why_not_enqueueable(job, alike)


SPEC = ActionSpec(
    name="enqueue",
    summary="Lets waiting gangs into their queue when the plugins agree.",
    run=run,
    arguments=(
        SchedulerArgument(
            "overcommit-factor",
            1.2,
            "How far the cluster may be overbooked; Volcano 1.1, since then the overcommit plugin's.",
            is_absent=True,
        ),
    ),
)
