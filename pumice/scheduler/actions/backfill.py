"""backfill: look again for places for pods without requests, with the code of action allocate.

Action allocate places these pods with their gangs. Left are those of overused queues, which get no pods with requests any
more, and those that a pod placed later in the cycle may help, by pod affinity. A gang that needs pods with requests, too,
is not tried again.
"""

from pumice.scheduler.actions.allocate import place_gangs
from pumice.scheduler.arguments import ERROR_CACHE, Arguments
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import PENDING
from pumice.scheduler.session.session import Session
from pumice.scheduler.specs import ActionSpec


def run(session: Session, _arguments: Arguments) -> None:
    """Place pods without requests of gangs that need no others."""
    jobs = {
        job.key: job
        for job in session.view.waiting
        if job.pending_empty and _may_be_ready(session, job) and _may_find_more(session, job)
    }
    pending = {key: job.counts[PENDING] for key, job in jobs.items()}
    before = {key: session.outcomes.pop(key, None) for key in jobs}
    place_gangs(session, jobs.values(), only_empty=True)
    for key, outcome in before.items():
        if outcome is not None and jobs[key].counts[PENDING] == pending[key]:
            session.outcomes[key] = outcome  # which is about all pods of the gang


def _may_be_ready(session: Session, job: JobInfo) -> bool:
    """Whether pods without requests alone may be enough for a gang."""
    return job.ready + job.pending_empty >= job.min_member or session.answers.is_ready(job)


def _may_find_more(session: Session, job: JobInfo) -> bool:
    """Whether a gang may find more than when it was last tried in this session, if it was."""
    outcome = session.outcomes.get(job.key)
    if outcome is None:
        return True
    if outcome.refusal is not None:
        queue = session.state.queues.get(job.queue)
        return queue is not None and not queue.is_fifo  # others of a fifo queue may be ahead of it
    if outcome.failed is None and outcome.refused is None:
        return True
    peers = [task.shape.peers for task in job.tasks.values() if task.shape.is_empty]
    return any(rules is not None and rules.may_be_helped for rules in peers)


SPEC = ActionSpec(
    name="backfill",
    summary="Looks again for places for pods without requests, also of queues that are overused.",
    run=run,
    arguments=(ERROR_CACHE,),
)
