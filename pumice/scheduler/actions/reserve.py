"""reserve: reserve one more node for the target that `elect` has chosen, or end the reservation.

Pods that run on a reserved node stay there until they end. Other gangs get no new place on it, apart from those that have
pods there and cannot go on without the ones that they lack: the target waits for their end.

A target lacks nothing but room on nodes. When it cannot enter its queue for another reason, has to wait for another gang of
its queue, or becomes too large for the nodes, the reservation ends, so that no node is kept for a gang that cannot use it.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo
from pumice.scheduler.placing.domain_queue import knows_its_nodes
from pumice.scheduler.session.session import Session
from pumice.scheduler.specs import ActionSpec
from pumice.scheduler.state.reserved_nodes import MAX_NODES, WAITING, Reservation

_TIMEOUT = "timeoutSeconds"


def run(session: Session, arguments: Arguments) -> None:
    """Reserve a node if the target needs one, or release all of them."""
    if session.state.reservation is None:
        return
    why = "Released"
    job = session.view.target
    if job is not None:
        with session.turn(job):
            reservation = _brought_up_to_date(session, job, session.state.reservation)
            ends = reservation.since + max(arguments.integer(_TIMEOUT), 1)
            found = _why_ended(session, job, reservation, ends)
            if not found:
                session.view.wake_at(ends)
                _reserve_next(session, job, reservation)
            why = found  # not reached if anything fails
    if why:
        session.release(why)


def _brought_up_to_date(session: Session, job: JobInfo, before: Reservation) -> Reservation:
    """The reservation without nodes that are gone or out of its domain, and with whether the pods of the gang have been there."""
    nodes = tuple(name for name in before.nodes if session.view.row_of(name) >= 0)
    inside = _domain(session, job, nodes)
    if inside is not None:
        nodes = tuple(name for name in nodes if inside[session.view.row_of(name)])
    is_complete = before.is_complete or job.valid >= job.min_member
    if nodes == before.nodes and is_complete == before.is_complete:
        return before
    after = replace(before, nodes=nodes, is_complete=is_complete)
    session.reserve(after)
    return after


def _why_ended(session: Session, job: JobInfo, reservation: Reservation, ends: float) -> str:
    """Why a reservation ends: a key of `reservation.ENDED`, or empty."""
    entered = not session.is_pending(job)
    if entered and session.answers.is_ready(job):
        return "Ready"
    gets_pods = entered and not reservation.is_complete
    why = _why_barred(session, job) if gets_pods else why_no_target(session, job)
    queue = session.state.queues.get(job.queue)
    if not why and queue is not None and queue.is_fifo:
        why = "BehindInQueue" if job.key in behind_others(session, [job.queue]) else ""
    if not why and session.now >= ends:
        why = "TimedOut"
    if not why and not session.empty_nodes.could_hold(job):
        why = "TooLarge"
    return why


def _reserve_next(session: Session, job: JobInfo, reservation: Reservation) -> None:
    inside = _domain(session, job, reservation.nodes)
    if len(reservation.nodes) >= MAX_NODES or inside is None:
        return
    if not (job.tasks or inside.all()):
        return  # which nodes of the domain it may use, its pods will say

    def usable(task: TaskInfo) -> Bools:
        return session.empty_nodes.usable(task) & inside

    for each in session.extensions.reserved_nodes:
        node = each.call(job, usable)
        if node is not None and node not in {*reservation.nodes, *_emptied(session, job)}:
            session.reserve(replace(reservation, nodes=(*reservation.nodes, node)))
            return


def _domain(session: Session, job: JobInfo, nodes: Collection[str]) -> Bools | None:
    """Nodes of the domain in which those of a reservation are; if there is none any more, of another one."""
    empty = session.empty_nodes
    inside = empty.domain(job, [session.view.row_of(name) for name in nodes])
    return empty.domain(job) if inside is None else inside


def _emptied(session: Session, job: JobInfo) -> frozenset[str]:
    """Nodes on which pods had to go for another gang; they can be reserved once its pods are there."""
    held = {key: task.nominated for key, task in session.state.pods.nominees.items()}
    keys = [key for key in (*held, *session.nominated) if key in session.pipelined]
    held |= {key: session.pipelined[key] for key in keys}
    return frozenset(node for key, node in held.items() if session.state.tasks[key].job != job.key)


def why_no_target(session: Session, job: JobInfo) -> str:
    """Why nodes may not be reserved for a gang: a key of `reservation.ENDED`; empty if it lacks nothing but room on nodes."""
    barred = _why_barred(session, job)
    if barred or not knows_its_nodes(session, job):
        return barred or "Released"
    is_pending = session.is_pending(job)
    if not (is_pending and not job.tasks):  # its pods are created after it has entered its queue
        lacks_pods = session.answers.why_invalid(job) is not None or not _could_start(job)
        if lacks_pods or (not is_pending and session.answers.is_ready(job)):
            return "Released"
        least = job.least_asked(max(job.min_member - job.ready, 1))
        if least is not None and not session.answers.has_room(
            session.state.queues[job.queue], least
        ):
            return "Refused"
    return ""


def _why_barred(session: Session, job: JobInfo) -> str:
    """Why a gang cannot be in its queue, or may not enter it for another reason than room on nodes; empty if it can."""
    queue = session.state.queues.get(job.queue)
    if job.group is None or job.key in session.state.gangs.quarantined:
        return "Released"
    if queue is None or not session.state.gangs.takes(queue, job):
        return "Released"
    is_asked = session.is_pending(job) and job.min_resources and "enqueue" in session.view.actions
    if is_asked and session.answers.why_barred(job) is not None:
        return "Refused"
    return ""


def _could_start(job: JobInfo) -> bool:
    """Whether enough pods of a gang wait for a node alone."""
    free = sum(task.status in WAITING and not task.gates for task in job.tasks.values())
    return free > 0 and job.ready + free >= job.min_member


def behind_others(session: Session, queues: Collection[str]) -> frozenset[str]:
    """Gangs that wait behind another one of their queue, by key, in queues that take gangs in order."""
    lines: dict[str, list[JobInfo]] = {name: [] for name in queues}
    for job in session.state.gangs.waiting.values():
        if job.queue in lines and job.group is not None and _is_in_line(session, job):
            lines[job.queue].append(job)
    return frozenset(key for line in lines.values() for key in _all_but_first(session, line))


def _all_but_first(session: Session, line: list[JobInfo]) -> Iterable[str]:
    first = min(line, key=session.answers.job_key, default=None)
    return [job.key for job in line if job is not first]


def _is_in_line(session: Session, job: JobInfo) -> bool:
    """Whether a gang that does not fit holds back those behind it."""
    if job.key in session.state.gangs.quarantined or session.is_pending(job):
        return job.key not in session.state.gangs.quarantined
    is_tried = False
    with session.turn(job):
        waits = any(
            task.status is SchedulingStatus.PENDING and not task.gates
            for task in job.tasks.values()
        )
        is_tried = (
            waits and session.answers.why_invalid(job) is None and not session.answers.is_ready(job)
        )
    return is_tried  # noqa: RET504 - `turn` ends with an exception of a plugin


SPEC = ActionSpec(
    name="reserve",
    summary="Reserves nodes for the chosen gang, one in each cycle, until it can run.",
    run=run,
    needs="reserved_nodes",
    arguments=(
        SchedulerArgument(
            _TIMEOUT, 1800, "How long a gang may be the target without becoming ready."
        ),
    ),
)
