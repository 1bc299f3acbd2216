"""What all actions have in common that evict pods for gangs: preempt, reclaim, gangpreempt and gangreclaim are settings of it.

Queues and their gangs have their turns in order. A gang evicts only if it gets its whole minimum then; otherwise its evictions are
undone, and it is recorded why they do not help.
"""

from collections.abc import Callable

import msgspec

from pumice.api.queues import Queue
from pumice.scheduler.actions.fifo import leave
from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.eviction.allowed import EvictionRules
from pumice.scheduler.eviction.bundles import BundleChoice
from pumice.scheduler.eviction.conclusions import explain, finish, report_refusal
from pumice.scheduler.eviction.search import Search
from pumice.scheduler.eviction.seeking import BundleSeeker, PodSeeker, Seeker
from pumice.scheduler.eviction.starving_jobs import starving_jobs
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.points import RECLAIMING
from pumice.scheduler.session.session import Session
from pumice.scheduler.waiting.priority_queue import PriorityQueue

__all__ = ["BUNDLE_ARGUMENTS", "EvictionSetting", "evict"]

_MOST_DOMAINS = 8


class EvictionSetting(msgspec.Struct, frozen=True):
    """What an action evicts, and how it looks for it.

    Attributes:
        name: Name of the action.
        rules_for: What may be evicted for a gang.
        breaks_gangs: Whether whole gangs go for a whole gang; otherwise pods do for one pod after the other.
        afterwards: What is done for a gang that holds places once those of its queue have had their turn.
    """

    name: str
    rules_for: Callable[[Session, JobInfo, Queue], EvictionRules]
    breaks_gangs: bool = False
    afterwards: Callable[[Session, Search, Queue, JobInfo], None] | None = None


def evict(setting: EvictionSetting, session: Session, arguments: Arguments) -> None:
    """Give every queue its turn, and every gang of it that lacks pods."""
    search = Search(session)
    seeker: Seeker = PodSeeker(session, search)
    if setting.breaks_gangs:
        seeker = BundleSeeker(
            session, search, _choice(arguments), _most_domains(session, arguments)
        )
    reclaims = setting.name in RECLAIMING
    unaided: dict[str, list[JobInfo]] = {}
    lines = starving_jobs(
        session,
        search,
        setting.name,
        lambda job, queue: setting.rules_for(session, job, queue),
        unaided if reclaims else None,
        seeks_domains=setting.breaks_gangs,
    )
    names = dict.fromkeys([*lines, *unaided])
    queues = session.answers.ordered_queues(session.state.queues[name] for name in names)
    while queues:
        queue = queues.pop()
        if reclaims and session.answers.is_overused(queue):
            continue
        tried = []
        if (line := lines.get(queue.metadata.name)) is not None:
            tried = _for_gangs(setting, session, search, seeker, queue, line)
        for job in [each for each in tried if each.holding and setting.afterwards is not None]:
            with search.turn(job):
                assert setting.afterwards is not None
                setting.afterwards(session, search, queue, job)
        for job in unaided.get(queue.metadata.name, ()):
            with session.turn(job):
                report_refusal(session, queue, job, setting.name)


def _for_gangs(
    setting: EvictionSetting,
    session: Session,
    search: Search,
    seeker: Seeker,
    queue: Queue,
    line: PriorityQueue[JobInfo],
) -> list[JobInfo]:
    """Search for victims for the gangs of a queue that lack pods, one after the other; those that had their turn."""
    action, breaks_gangs = setting.name, setting.breaks_gangs
    tried: list[JobInfo] = []
    while line:
        job = line.pop()
        if not session.reaches(job):
            leave(session, queue, line)
            continue
        tried.append(job)
        with search.turn(job):
            rules = setting.rules_for(session, job, queue)
            session.preemptions += 1
            statement = session.statement()
            failure = seeker.seek(rules, queue, job, statement)
            if not finish(session, search, statement, job, action, names_broken=breaks_gangs):
                explain(session, search, rules, job, action, failure)
            if queue.is_fifo and not session.answers.is_pipelined(job):
                break  # those behind it wait until it fits
    return tried


def _most_domains(session: Session, arguments: Arguments) -> int:
    given = arguments.integer("maxDomains")
    most = given if given > 0 else _MOST_DOMAINS
    return min(most, session.extensions.most_domains or most)


def _choice(arguments: Arguments) -> BundleChoice:
    return BundleChoice(
        breaks=arguments.flag("allowWholeBundle"),
        priority_first=arguments.text("victimOrderPolicy") == "priority-first",
        everywhere=arguments.text("wholeGang") == "all",
    )


BUNDLE_ARGUMENTS = (
    SchedulerArgument(
        "maxDomains",
        _MOST_DOMAINS,
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
