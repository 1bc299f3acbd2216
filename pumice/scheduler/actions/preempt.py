"""preempt: evict pods for more important ones of the same queue, first of other gangs, then of the same gang.

Only gangs below their minimum may preempt, and only if the whole minimum can be placed: otherwise the evictions for the
gang are undone. The pods are pipelined until the evicted ones have left.
"""

from pumice.api.queues import Queue
from pumice.scheduler.actions.fifo import leave
from pumice.scheduler.arguments import ERROR_CACHE, Arguments, SchedulerArgument
from pumice.scheduler.eviction.allowed import EvictionRules, between_jobs, inside_job
from pumice.scheduler.eviction.search import Search
from pumice.scheduler.eviction.starving_jobs import (
    explain,
    finish,
    seek,
    starving_jobs,
    waiting_tasks,
)
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.session.session import Session
from pumice.scheduler.specs import ActionSpec
from pumice.scheduler.waiting.priority_queue import PriorityQueue

__all__ = ["SPEC", "evict_for_gangs", "run"]


def run(session: Session, _arguments: Arguments) -> None:
    """Give every queue its turn, and every gang of it that lacks pods."""
    search = Search(session)
    lines = starving_jobs(session, search, "preempt", lambda job, _: between_jobs(session, job))
    queues = session.answers.ordered_queues(session.state.queues[name] for name in lines)
    while queues:
        queue = queues.pop()
        line = lines[queue.metadata.name]
        tried = evict_for_gangs(session, search, "preempt", queue, line)
        for job in [each for each in tried if each.holding]:
            with search.turn(job):
                _inside_job(session, search, queue, job)


def evict_for_gangs(
    session: Session,
    search: Search,
    action: str,
    queue: Queue,
    line: PriorityQueue[JobInfo],
    reclaimable: EvictionRules | None = None,
) -> list[JobInfo]:
    """Search for victims for the gangs of a queue that lack pods, one after the other; those that had their turn.

    Args:
        session: The session.
        search: Looks at running pods.
        action: `preempt` or `reclaim`.
        queue: The queue.
        line: The gangs.
        reclaimable: What action `reclaim` may evict; None for `preempt`.
    """
    tried: list[JobInfo] = []
    while line:
        job = line.pop()
        if not session.reaches(job):
            leave(session, queue, line)
            continue
        tried.append(job)
        with search.turn(job):
            rules = reclaimable or between_jobs(session, job)
            statement = seek(session, search, rules, queue, job, reclaims=bool(reclaimable))
            if not finish(session, search, statement, job, action):
                explain(session, search, rules, job, action)
            if queue.is_fifo and not session.answers.is_pipelined(job):
                break  # those behind it wait until it fits
    return tried


def _inside_job(session: Session, search: Search, queue: Queue, job: JobInfo) -> None:
    rules = inside_job(session, job)
    for task in waiting_tasks(session, job):
        session.time.check()
        if not session.answers.is_starving(job):
            return
        statement = session.statement()
        search.place(Preemptor(task, job, queue), rules, statement)
        if not finish(session, search, statement, job, "preempt"):
            return


SPEC = ActionSpec(
    name="preempt",
    summary="Evicts pods for more important gangs of the same queue, and for more important pods of the same gang.",
    run=run,
    arguments=(
        ERROR_CACHE,
        SchedulerArgument(
            "enableTopologyAwarePreemption",
            False,
            "Volcano's search that compares nodes; nodes are always compared here.",
        ),
        SchedulerArgument(
            "topologyAwarePreemptWorkerNum", 16, "Threads of that search.", is_absent=True
        ),
        SchedulerArgument(
            "minCandidateNodesPercentage",
            10,
            "Nodes that it looks at; all nodes are looked at here.",
            is_absent=True,
        ),
        SchedulerArgument("minCandidateNodesAbsolute", 1, "The same.", is_absent=True),
        SchedulerArgument("maxCandidateNodesAbsolute", 100, "The same.", is_absent=True),
    ),
)
