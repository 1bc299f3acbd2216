"""reclaim: take back for a queue what it deserves from queues that have more, by evicting their pods.

Plugins decide which queue may reclaim and which pods may be evicted; without a plugin that shares the cluster nothing
is reclaimed. The queue must be able to take the pod once its victims are gone. If a gang cannot get its whole minimum,
its evictions are undone.
"""

from pumice.scheduler.actions.preempt import evict_for_gangs
from pumice.scheduler.arguments import ERROR_CACHE, Arguments
from pumice.scheduler.eviction.allowed import between_queues
from pumice.scheduler.eviction.search import Search
from pumice.scheduler.eviction.starving_jobs import report_refusal, starving_jobs
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.session.session import Session
from pumice.scheduler.specs import ActionSpec

__all__ = ["SPEC", "run"]


def run(session: Session, _arguments: Arguments) -> None:
    """Handle every queue that is below its share, with all its gangs that lack pods."""
    search = Search(session)
    unaided: dict[str, list[JobInfo]] = {}
    lines = starving_jobs(
        session, search, "reclaim", lambda _, queue: between_queues(session, queue), unaided
    )
    names = dict.fromkeys([*lines, *unaided])
    queues = session.answers.ordered_queues(session.state.queues[name] for name in names)
    while queues:
        queue = queues.pop()
        if session.answers.is_overused(queue):
            continue
        rules = between_queues(session, queue)
        if (line := lines.get(queue.metadata.name)) is not None:
            evict_for_gangs(session, search, "reclaim", queue, line, rules)
        for job in unaided.get(queue.metadata.name, ()):
            with session.turn(job):
                report_refusal(session, queue, job)


SPEC = ActionSpec(
    name="reclaim",
    summary="Evicts pods of queues that have more than they deserve for queues that have less.",
    run=run,
    arguments=(ERROR_CACHE,),
)
