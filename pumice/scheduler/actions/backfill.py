"""backfill: place pods without resource requests.

If this action is configured, allocate leaves such pods to it, and counts them as placed when it checks whether a gang
is ready. If a gang is not ready because some of them found no node, none of them is placed.
"""

from collections.abc import Hashable

from pumice.scheduler.actions.allocate import admitted
from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo
from pumice.scheduler.node_ranking import NOWHERE
from pumice.scheduler.priority_queue import PriorityQueue
from pumice.scheduler.session import Session
from pumice.scheduler.specs import ActionSpec
from pumice.scheduler.statement import Statement

__all__ = ["SPEC", "run"]


def run(session: Session, _arguments: Arguments) -> None:
    """Place pods without requests, in the order of queues, gangs and pods."""
    session.view.backfills = False
    queues = session.ordered_queues()
    lines: dict[str, PriorityQueue[JobInfo]] = {}
    for job in session.view.waiting:
        if not job.pending_empty:
            continue
        with session.turn(job):
            if _candidates(job) and admitted(session, job) is not None:
                lines.setdefault(job.queue, session.ordered_jobs()).push(job)
    for name in lines:
        queues.push(session.state.queues[name])
    while queues:
        line = lines[queues.pop().metadata.name]
        while line:
            job = line.pop()
            if not session.reaches(job):
                continue
            with session.turn(job):
                _turn(session, job)


def _candidates(job: JobInfo) -> list[TaskInfo]:
    return [
        task
        for task in job.tasks.values()
        if task.is_best_effort and task.status is SchedulingStatus.PENDING and not task.gates
    ]


def _turn(session: Session, job: JobInfo) -> None:
    statement = session.statement()
    failed: set[Hashable] = set()
    for task in sorted(_candidates(job), key=session.task_key):
        session.time.check()
        if failed and session.alike(task) in failed:
            continue
        session.decided += 1
        if not _place(session, job, statement, task) and not _may_gain(task):
            failed.add(session.alike(task))
    if session.is_ready(job):
        session.commit(statement)
    else:
        outcome = session.outcome(job)
        outcome.schedulable = max(outcome.schedulable, len(statement.placements))
        statement.discard()


def _may_gain(task: TaskInfo) -> bool:
    """Whether placements of other pods can give a pod like this one a node."""
    rules = task.shape.peers
    return rules is not None and rules.may_gain


def _place(session: Session, job: JobInfo, statement: Statement, task: TaskInfo) -> bool:
    """Place a pod; whether there was a node for it."""
    outcome = session.outcome(job)
    impossible = session.why_impossible(task.shape)
    if impossible is not None:
        outcome.refused = impossible
        return False
    ranking = session.ranking(task, job.queue)
    row = ranking.best(task)
    if row != NOWHERE:
        statement.allocate(task, session.state.nodes.order[row])
        ranking.taken(row)
        return True
    if outcome.failed is None:
        outcome.failed = (task, ranking.why_not())
    return False


SPEC = ActionSpec(
    name="backfill",
    summary="Places the pods that ask for nothing but a slot on a node.",
    run=run,
    arguments=(
        SchedulerArgument(
            "predicateErrorCacheEnable",
            True,
            "Volcano's cache of refusals by role; pods of one shape always share their refusals here.",
        ),
    ),
)
