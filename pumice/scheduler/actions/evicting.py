"""What all actions have in common that evict pods for gangs: preempt, reclaim, gangpreempt and gangreclaim are settings of it.

Queues and their gangs have their turns in order. A gang evicts only if it gets its whole minimum then; otherwise its evictions are
undone, and it is recorded why they do not help.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from pumice.api.queues import Queue
from pumice.scheduler.actions.fifo import leave
from pumice.scheduler.arguments import ERROR_CACHE, Arguments, SchedulerArgument
from pumice.scheduler.eviction.search import Search
from pumice.scheduler.eviction.settings import (
    MOST_DOMAINS,
    EvictionSetting,
    rules_for,
)
from pumice.scheduler.eviction.starving_jobs import (
    lacking_jobs,
    starving_jobs,
    waiting_tasks,
)
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.placing.domain_queue import seeks_domain
from pumice.scheduler.session.session import Session
from pumice.scheduler.specs import ActionSpec
from pumice.scheduler.waiting.priority_queue import PriorityQueue


def evicting(
    setting: EvictionSetting, summary: str, arguments: Sequence[SchedulerArgument] = ()
) -> ActionSpec:
    """The action with a setting."""
    of_bundles = _OF_BUNDLES if setting.by_gang else ()
    arguments = (ERROR_CACHE, *arguments, *of_bundles)
    return ActionSpec(setting.name, summary, partial(_evict, setting), arguments)


def _evict(setting: EvictionSetting, session: Session, arguments: Arguments) -> None:
    """Give every queue its turn, and every gang of it that lacks pods."""
    setting = setting.configured(arguments)
    if not (lacking := lacking_jobs(session, setting)):
        return
    search = Search(session, setting)
    unaided: dict[str, list[JobInfo]] = {}
    lines = starving_jobs(session, search.surveys, setting, lacking, unaided)
    names = dict.fromkeys([*lines, *unaided])
    if not names:
        return
    queues = session.answers.ordered_queues(session.state.queues[name] for name in names)
    while queues:
        queue = queues.pop()
        name = queue.metadata.name
        if setting.reclaims and session.answers.is_overused(queue):
            continue
        search.surveys.begin_queue()
        tried = list(_for_gangs(search, queue, lines[name])) if name in lines else []
        if not setting.reclaims and not setting.by_gang:
            _inside_gangs(search, queue, tried)
        for job in unaided.get(name, ()):
            with session.turn(job):
                search.report_refusal(queue, job)


def _for_gangs(search: Search, queue: Queue, line: PriorityQueue[JobInfo]) -> Iterator[JobInfo]:
    """Search for victims for the gangs of a queue that lack pods, one after the other; those that had their turn."""
    session = search.session
    while line:
        job = line.pop()
        if not session.reaches(job):
            leave(session, queue, line)
            continue
        yield job
        with search.turn(job):
            rules = rules_for(session, search.setting, job, queue)
            session.preemptions += 1
            failure = search.serve(rules, queue, job)
            if failure is not None:
                search.explain(rules, job, failure)
            if queue.is_fifo and not session.answers.is_pipelined(job):
                break  # those behind it wait until it fits


def _inside_gangs(search: Search, queue: Queue, jobs: Sequence[JobInfo]) -> None:
    """Evict less important pods of gangs for more important ones of the same gang, pod by pod."""
    session = search.session
    for job in jobs:
        if not job.holding or seeks_domain(session, job):
            continue
        with search.turn(job):
            rules = rules_for(session, search.setting, job, queue, inside=True)
            for task in waiting_tasks(session, job):
                session.time.check()
                is_starving = session.answers.is_starving(job)
                if not is_starving or search.serve(rules, queue, job, task) is not None:
                    break


_OF_BUNDLES = (
    SchedulerArgument(
        "maxDomains",
        MOST_DOMAINS,
        "Domains of the network that are looked at for one gang at most.",
    ),
    SchedulerArgument(
        "allowWholeBundle", True, "Whether gangs may be evicted below their minimum at all."
    ),
    SchedulerArgument(
        "victimOrderPolicy",
        "safe-first",
        "Whether what any gang has beyond its minimum goes before a whole gang (`safe-first`), or all of a less important gang before pods of a more important one (`priority-first`).",
        choices=("safe-first", "priority-first"),
    ),
    SchedulerArgument(
        "wholeGang",
        "all",
        "What goes with a gang that loses its minimum: `all` its pods, or as in Volcano only those in the `domain` in which room is made.",
        choices=("all", "domain"),
    ),
)
"""Arguments of actions that evict whole gangs."""
