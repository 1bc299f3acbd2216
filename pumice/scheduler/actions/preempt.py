"""preempt and gangpreempt: evict pods for more important gangs of the same queue.

preempt looks for room pod by pod, first of other gangs, then of the same gang. A gang that needs ten places may then cost ten gangs
one pod each. With gangpreempt one of them goes as a whole, and the others run on.
"""

from functools import partial

from pumice.api.queues import Queue
from pumice.scheduler.actions.evicting import BUNDLE_ARGUMENTS, EvictionSetting, evict
from pumice.scheduler.arguments import ERROR_CACHE, SchedulerArgument
from pumice.scheduler.eviction.allowed import between_jobs, gangs_of_queue, inside_job
from pumice.scheduler.eviction.conclusions import finish
from pumice.scheduler.eviction.search import Search
from pumice.scheduler.eviction.starving_jobs import waiting_tasks
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.session.session import Session
from pumice.scheduler.specs import ActionSpec

__all__ = ["BY_GANG", "SPEC"]


def _inside_job(session: Session, search: Search, queue: Queue, job: JobInfo) -> None:
    """Evict less important pods of the same gang for its more important ones."""
    rules = inside_job(session, job)
    for task in waiting_tasks(session, job):
        session.time.check()
        if not session.answers.is_starving(job):
            return
        statement = session.statement()
        search.place(Preemptor(task, job, queue), rules, statement)
        if not finish(session, search, statement, job, "preempt"):
            return


_PODS = EvictionSetting(
    "preempt", lambda session, job, _: between_jobs(session, job), afterwards=_inside_job
)
_GANGS = EvictionSetting(
    "gangpreempt", lambda session, job, _: gangs_of_queue(session, job), breaks_gangs=True
)

SPEC = ActionSpec(
    name="preempt",
    summary="Evicts pods for more important gangs of the same queue, and for more important pods of the same gang.",
    run=partial(evict, _PODS),
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

BY_GANG = ActionSpec(
    name=_GANGS.name,
    summary="Evicts whole gangs, and what gangs have beyond their minimum, for more important gangs of the same queue; it takes the place of `preempt`.",
    run=partial(evict, _GANGS),
    arguments=(ERROR_CACHE, *BUNDLE_ARGUMENTS),
)
