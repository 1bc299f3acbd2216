"""reserve: reserve one more node for the target that `elect` has chosen, or end the reservation.

Pods that run on a reserved node stay there until they end. Other gangs get no new place on it.
"""

from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.reservation import MAX_NODES, WAITING
from pumice.scheduler.session import Session
from pumice.scheduler.specs import ActionSpec

__all__ = ["SPEC", "may_be_target", "run"]

_TIMEOUT = "timeoutSeconds"


def run(session: Session, arguments: Arguments) -> None:
    """Reserve a node if the target needs one, or release all of them."""
    reservation = session.state.reservation
    if reservation is None:
        return
    job = session.state.jobs.get(reservation.gang)
    if job is None or not reservation.is_for(job):
        session.release("Released")
        return
    has_failed = True
    with session.turn(job):
        if not session.is_pending(job) and not _has_waiting(job):
            session.release("Ready" if session.is_ready(job) else "Released")
        elif not session.is_pending(job) and session.is_ready(job):
            session.release("Ready")
        elif not may_be_target(session, job):
            session.release("Released")
        else:
            _go_on(session, job, reservation.since + max(arguments.integer(_TIMEOUT), 1))
        has_failed = False
    if has_failed:
        session.release("Released")


def _go_on(session: Session, job: JobInfo, ends: float) -> None:
    reservation = session.state.reservation
    assert reservation is not None
    if session.now >= ends:
        session.release("TimedOut")
        return
    session.view.wake_at(ends)
    if len(reservation.nodes) >= MAX_NODES or not session.could_hold(job):
        return
    for each in session.extensions.reserved_nodes:
        node = each.call(job, session.usable)
        if node is not None and node not in {*reservation.nodes, *_emptied(session, job)}:
            session.reserve(reservation.with_node(node))
            return


def _emptied(session: Session, job: JobInfo) -> frozenset[str]:
    """Nodes on which pods had to go for another gang; they can be reserved once its pods are there."""
    held = {key: task.nominated for key, task in session.state.nominees.items()}
    held |= {key: session.pipelined[key] for key in session.nominated}
    return frozenset(node for key, node in held.items() if session.state.tasks[key].job != job.key)


def _has_waiting(job: JobInfo) -> bool:
    return any(job.counts[status] for status in WAITING)


def may_be_target(session: Session, job: JobInfo) -> bool:
    """True if nodes may be reserved for a gang: none of its pods runs, and it lacks only room on nodes."""
    queue = session.state.queues.get(job.queue)
    if job.group is None or job.key in session.state.quarantined:
        return False
    if queue is None or not queue.is_open:
        return False
    least = job.least_asked(max(job.min_member - job.ready, 1))
    if not session.has_room(queue, job.minimum if least is None else least):
        return False
    if session.is_pending(job) and not job.tasks:
        return True  # its pods are created after it has entered its queue
    return (
        _has_waiting(job)
        and session.why_invalid(job) is None
        and (session.is_pending(job) or not session.is_ready(job))
    )


SPEC = ActionSpec(
    name="reserve",
    summary="Reserves nodes for the chosen gang, one in each cycle, until it can run.",
    run=run,
    asks="reserved_nodes",
    arguments=(
        SchedulerArgument(
            _TIMEOUT, 1800, "How long a gang may be the target without becoming ready."
        ),
    ),
)
