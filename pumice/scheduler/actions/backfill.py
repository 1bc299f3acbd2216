"""backfill: place pods that ask for nothing but a slot on a node.

Where this action is configured, allocate leaves such pods to it, and a gang counts as ready there as if they had their
places. Here a gang that is not ready without those that found none gets none of them.
"""

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
    """Place what asks for nothing, in the order of queues, gangs and pods."""
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
    for task in sorted(_candidates(job), key=session.task_key):
        session.decided += 1
        _place(session, job, statement, task)
    if session.is_ready(job):
        session.commit(statement)
    else:
        outcome = session.outcome(job)
        outcome.schedulable = max(outcome.schedulable, len(statement.placements))
        statement.discard()


def _place(session: Session, job: JobInfo, statement: Statement, task: TaskInfo) -> None:
    outcome = session.outcome(job)
    impossible = session.why_impossible(task.shape)
    if impossible is not None:
        outcome.refused = impossible
        return
    ranking = session.ranking(task, job.queue)
    row = ranking.best(task)
    if row != NOWHERE:
        statement.allocate(task, session.state.nodes.order[row])
        ranking.taken(row)
    elif outcome.failed is None:
        outcome.failed = (task, ranking.why_not())


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
