"""Queues that take their gangs strictly in order: `spec.dequeueStrategy: fifo`.

The first gang that does not fit ends the turn of such a queue, so that small gangs do not overtake a large one forever. A gang
that has pods on nodes and lacks others has had its turn: it is not held back, because the first one may wait for its end.
"""

from pumice.api.queues import Queue
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.results import Reason
from pumice.scheduler.session.session import Session
from pumice.scheduler.waiting.parked import Cause
from pumice.scheduler.waiting.priority_queue import PriorityQueue


def hold_back(session: Session, queue: Queue, first: JobInfo, line: PriorityQueue[JobInfo]) -> None:
    """Refuse the gangs behind one that does not fit; those that have begun stay in the priority queue."""
    if session.outcome(first).stays_in_line:
        return  # the others were refused before it had its turn
    name = queue.metadata.name
    message = f"queue {name} takes gangs in order (spec.dequeueStrategy: fifo), and {first.key} ahead of this one does not fit"
    details = {"queue": name, "ahead": first.key}
    reason = Reason("BehindInQueue", message, details, (name, first.key))
    begun = []
    while line:
        job = line.pop()
        outcome = session.outcome(job)
        if job.is_broken:
            outcome.stays_in_line = True
            begun.append(job)
            continue
        outcome.refusal = reason
        outcome.causes = int(Cause.ANY)
    for job in begun:
        line.push(job)


def leave(session: Session, queue: Queue, line: PriorityQueue[JobInfo]) -> None:
    """Leave the gangs behind one for which the cycle has no time to the next cycle, if the queue takes them in order."""
    while queue.is_fifo and line:
        session.leave(line.pop())
