"""reserve: reserve one more node for the target that `elect` has chosen, or end the reservation.

Pods that run on a reserved node stay there until they end. Other gangs get no new place on it.
"""

from pumice.scheduler.arguments import Argument, Arguments
from pumice.scheduler.session import Session
from pumice.scheduler.specs import ActionSpec

__all__ = ["SPEC", "run"]

_TIMEOUT = "timeoutSeconds"


def run(session: Session, arguments: Arguments) -> None:
    """Reserve a node if the target needs one, or release all of them."""
    reservation = session.state.reservation
    if reservation is None:
        return
    job = session.state.jobs.get(reservation.gang)
    if job is None or not reservation.is_for(job) or job.queue not in session.state.queues:
        session.release("Released")
        return
    if not session.is_pending(job) and session.is_ready(job):
        session.release("Ready")
        return
    ends = reservation.since + max(arguments.integer(_TIMEOUT), 1)
    if session.now >= ends:
        session.release("TimedOut")
        return
    session.view.wake_at(ends)
    for each in session.extensions.reserved_nodes:
        node = each.call(job, session.usable)
        if node is not None and node not in reservation.nodes:
            session.reserve(reservation.with_node(node))
            return


SPEC = ActionSpec(
    name="reserve",
    summary="Reserves nodes for the chosen gang, one in each cycle, until it can run.",
    run=run,
    arguments=(
        Argument(_TIMEOUT, 1800, "How long a gang may be the target without becoming ready."),
    ),
)
