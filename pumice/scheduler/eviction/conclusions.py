"""What becomes of a search: its evictions are decided together, or it is recorded why they do not help."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from pumice.api.queues import Queue
from pumice.scheduler.eviction.allowed import EvictionRules
from pumice.scheduler.eviction.gang_search import lost_minimum
from pumice.scheduler.eviction.search import Search
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import ALLOCATED_LIKE, PENDING, TaskInfo
from pumice.scheduler.results import Event
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement
from pumice.scheduler.session.victims import EvictionFailure

__all__ = ["explain", "finish", "report_refusal"]


def finish(
    session: Session,
    search: Search,
    statement: Statement,
    job: JobInfo,
    action: str,
    *,
    names_broken: bool = False,
) -> bool:
    """Commit the evictions for a gang if they are enough for it; otherwise undo them.

    A gang that needs no victims is left to `allocate`, whether that comes before or after.

    Args:
        session: The session.
        search: Looks at running pods.
        statement: The evictions and promises.
        job: The gang.
        action: Name of the action.
        names_broken: Whether gangs that lose their minimum get an event of their own.
    """
    if not len(statement) or not session.answers.is_pipelined(job):
        search.discard(statement)
        return False
    victims = statement.victims
    if not victims and "allocate" in session.view.actions:
        search.discard(
            statement
        )  # there are free resources already, and pipelined pods are not bound
        return False
    if victims:
        session.nominated.update(statement.promises)
    for task in victims:
        message = f"evicted to make room for PodGroup {job.key} of queue {job.queue} ({action})"
        event = Event("Pod", task.namespace, task.name, "Normal", "Preempted", message)
        session.events.append(event)
    if names_broken:
        session.events.extend(_of_broken_gangs(session, victims, job))
    if victims:
        session.transactions[action] = session.transactions.get(action, 0) + 1
    session.outcome(job)
    search.commit(statement)
    return True


def _of_broken_gangs(
    session: Session, victims: Sequence[TaskInfo], job: JobInfo
) -> Iterator[Event]:
    """What the owners of gangs are told that lose their minimum by evictions that have been decided."""
    for other, count in lost_minimum(session, victims).items():
        broken = session.state.jobs[other]
        left = sum([broken.counts[status] for status in ALLOCATED_LIKE])
        pods = f"{count} pod{'' if count == 1 else 's'}"
        what = (
            f"evicted below its minimum ({pods}; {left} left)"
            if left
            else f"evicted as a whole ({pods})"
        )
        message = f"{what} for {job.key} (priority {job.order_priority})"
        yield Event("PodGroup", broken.namespace, broken.name, "Normal", "GangPreempted", message)


def explain(
    session: Session,
    search: Search,
    rules: EvictionRules,
    job: JobInfo,
    action: str,
    failure: EvictionFailure | None = None,
) -> None:
    """Record why evictions did not help a gang, for a pod like the one in its reason; `failure` is what its search shows."""
    if job.key not in search.told:
        return
    first = _reported(session, job)
    if first is None:
        return
    queue = session.state.queues[job.queue]
    if failure is not None and failure.refused:
        session.spared.setdefault(job.key, {})[action] = replace(failure, action=action)
    elif not rules.reclaims or not _is_refused(session, queue, job, first, action):
        lacks = failure.lacks if failure is not None else ""
        search.note_spared(action, Preemptor(first, job, queue), rules, lacks)


def report_refusal(session: Session, queue: Queue, job: JobInfo, action: str) -> None:
    """Record that its queue refuses to reclaim for a gang for which no running pod is a candidate."""
    if session.answers.is_starving(job) and session.answers.why_invalid(job) is None:
        first = _reported(session, job)
        if first is not None:
            _is_refused(session, queue, job, first, action)


def _reported(session: Session, job: JobInfo) -> TaskInfo | None:
    """The first pod like the one in the reason of a gang; one for which others may be evicted comes first."""
    tasks = [task for task in job.tasks.values() if task.status is PENDING]
    outcome = session.outcomes.get(job.key)
    if outcome is not None and outcome.failed is not None:
        tasks = [task for task in tasks if task.shape is outcome.failed[0].shape]
    return min(tasks, key=lambda task: (task.never_preempts, task.order), default=None)


def _is_refused(session: Session, queue: Queue, job: JobInfo, first: TaskInfo, action: str) -> bool:
    """Whether a queue refuses to reclaim for a pod; this is recorded unless it is the reason of its gang already."""
    if job.never_preempts or first.never_preempts:
        return False
    refusal = session.answers.why_not_preemptive(queue, first)
    if refusal is None:
        return False
    outcome = session.outcomes.get(job.key)
    if outcome is None or outcome.refused != refusal:
        spared = EvictionFailure(action, refused=refusal.message)
        session.spared.setdefault(job.key, {})[action] = spared
    return True
