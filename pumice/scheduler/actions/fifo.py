"""Queues that take their gangs strictly in order: `spec.dequeueStrategy: fifo`.

The first gang that does not fit ends the turn of such a queue, so that small gangs do not overtake a large one forever.
"""

from pumice.api.queues import Queue
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.priority_queue import PriorityQueue
from pumice.scheduler.results import Reason
from pumice.scheduler.session import Session

__all__ = ["hold_back", "leave"]


def hold_back(session: Session, queue: Queue, first: JobInfo, line: PriorityQueue[JobInfo]) -> None:
    """Refuse the gangs behind one that does not fit, and empty the priority queue."""
    name = queue.metadata.name
    message = f"queue {name} takes gangs in order (spec.dequeueStrategy: fifo), and {first.key} ahead of this one does not fit"
    details = {"queue": name, "ahead": first.key}
    reason = Reason("BehindInQueue", message, details, (name, first.key))
    while line:
        outcome = session.outcome(line.pop())
        outcome.refusal = reason
        outcome.may_change = True


def leave(session: Session, queue: Queue, line: PriorityQueue[JobInfo]) -> None:
    """Leave the gangs behind one for which the cycle has no time to the next cycle, if the queue takes them in order."""
    while queue.is_fifo and line:
        session.leave(line.pop())
