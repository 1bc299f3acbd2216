"""Shared by preempt and reclaim: which gangs search for victims, and when victims are evicted.

A gang that a cycle tries searches for victims in it. Any change may make pods victims, so gangs that are not tried search, too,
at most once a second. Gangs for which no running pod may be
evicted when the action begins are skipped; one survey of running pods serves all gangs of the same class.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

from pumice.api.queues import Queue
from pumice.scheduler.eviction.allowed import EvictionRules
from pumice.scheduler.eviction.search import Search
from pumice.scheduler.eviction.survey import accepted_gangs
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.sub_groups import SubGroup, SubGroups
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo
from pumice.scheduler.placing.domain_queue import must_be_near
from pumice.scheduler.results import Event
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement
from pumice.scheduler.session.victims import EvictionFailure
from pumice.scheduler.waiting.priority_queue import PriorityQueue

__all__ = ["explain", "finish", "report_refusal", "seek", "starving_jobs", "waiting_tasks"]

INTERVAL = 1.0
"""Seconds between two searches for all gangs."""


def starving_jobs(
    session: Session,
    search: Search,
    action: str,
    rules_for: Callable[[JobInfo, Queue], EvictionRules],
    unaided: dict[str, list[JobInfo]] | None = None,
) -> dict[str, PriorityQueue[JobInfo]]:
    """Gangs below their minimum, by open queue.

    Args:
        session: The session.
        search: Looks at running pods.
        action: Name of the action.
        rules_for: What may be evicted for a gang; the same for gangs of a queue that hold nothing.
        unaided: Receives gangs of which only `report_refusal` is to be called, by queue: no running pod is a candidate for
            them, but their queue may refuse the action.
    """
    shared: dict[str, EvictionRules | None] = {}  # None where no running pod is a candidate
    queues = session.state.queues
    leaves_out = "allocate" in session.view.actions
    told = search.told

    def takes_part(job: JobInfo) -> bool:
        if not job.has_pending or job.group is None or session.is_pending(job):
            return False
        name = job.queue
        queue = queues.get(name)
        if queue is None or not queue.is_open:
            return False
        if leaves_out and not (job.holding or queue.is_fifo):
            if name not in shared:
                rules = rules_for(job, queue)
                has_candidates = accepted_gangs(session.view.running, rules).any()
                shared[name] = rules if has_candidates else None
            known = shared[name]
            if known is None:  # no running pod was spared, so that only a refusal is to be reported
                if (
                    unaided is not None
                    and job.key in told
                    and session.state.gangs.takes(queue, job)
                ):
                    unaided.setdefault(name, []).append(job)
                return False
            if job.key not in told and not _may_help(session, search, known, queue, job):
                return False
        if not (job.holding or session.state.gangs.takes(queue, job)) or must_be_near(session, job):
            return False
        return session.answers.is_starving(job) and session.answers.why_invalid(job) is None

    return session.answers.by_queue(_jobs(session, action), takes_part, session.fail)


def seek(
    session: Session,
    search: Search,
    rules: EvictionRules,
    queue: Queue,
    job: JobInfo,
    *,
    reclaims: bool,
) -> Statement:
    """Evict for one pod of a gang after the other, until it has what it needs or all pods were tried."""
    session.preemptions += 1
    statement = session.statement()
    if "allocate" in session.view.actions and not _may_help(session, search, rules, queue, job):
        return statement
    tasks = waiting_tasks(session, job)
    kinds = {session.alike(task) for task in tasks}
    counted = None
    if len(kinds) == 1 and not session.nominations and tasks[0].shape.peers is None:
        counted = rules.preemptor_class(session, Preemptor(tasks[0], job, queue))
        if search.lacks_places(counted, _needed(job)):
            return statement
    while tasks:
        placed = len(statement)
        left = _try(session, search, rules, queue, job, tasks, statement, reclaims=reclaims)
        if counted is not None and left:
            search.note_places(counted, len(statement.promises))
        # A pod that others of its gang may give a node, by pod affinity or topology spread, is tried again after them.
        tasks = [task for task in left if task.shape.peers and task.shape.peers.may_be_helped]
        if len(statement) == placed:
            break
    return statement


def _try(
    session: Session,
    search: Search,
    rules: EvictionRules,
    queue: Queue,
    job: JobInfo,
    tasks: Sequence[TaskInfo],
    statement: Statement,
    *,
    reclaims: bool,
) -> list[TaskInfo]:
    """Evict for one pod after the other; those that found no place."""
    failed: set[Hashable] = set()
    left: list[TaskInfo] = []
    for task in tasks:
        session.time.check()
        if not session.answers.is_starving(job):
            break
        kind = session.alike(task)
        if kind in failed:
            left.append(task)
            continue
        if reclaims and session.answers.why_not_preemptive(queue, task) is not None:
            continue
        if search.place(Preemptor(task, job, queue), rules, statement) is None:
            failed.add(kind)
            left.append(task)
    return left


def _needed(job: JobInfo) -> int:
    return job.lacking - job.counts[SchedulingStatus.PIPELINED]


def _jobs(session: Session, action: str) -> list[JobInfo]:
    state, now = session.state, session.now
    version, moment = state.sought.get(action, (-1, 0.0))
    if version == state.parked.version:
        return list(session.view.waiting)
    if 0.0 <= now - moment < INTERVAL:
        session.view.wake_at(moment + INTERVAL)
        return [job for job in session.view.waiting if job.key not in session.skipped]
    state.sought[action] = state.parked.version, now
    return [
        state.gangs.waiting[key]
        for key in sorted(state.gangs.waiting.keys() - state.gangs.quarantined.keys())
    ]


def waiting_tasks(session: Session, job: JobInfo) -> list[TaskInfo]:
    """Pods of a gang for which others may be evicted, in their order."""
    tasks = [task for task in _may_take(job) if session.answers.why_impossible(task.shape) is None]
    tasks.sort(key=session.answers.task_key)
    groups = job.sub_groups
    return tasks if groups is None else _by_sub_group(tasks, groups)


def _by_sub_group(tasks: Sequence[TaskInfo], groups: SubGroups) -> list[TaskInfo]:
    """Pods in the order in which sub-groups are served; those beyond the size of their sub-group come last."""
    turns = groups.turns()
    counted: Counter[SubGroup] = Counter()
    found: list[tuple[int, TaskInfo]] = []
    for task in tasks:
        group = groups.of(task)
        turn = turns[group]
        if group is not None:
            missing = group.size - group.ready - group.pipelined
            counted[group] += 1
            turn = turn if counted[group] <= missing else len(turns)
        found.append((turn, task))
    found.sort(key=lambda each: each[0])
    return [task for _, task in found]


def _may_take(job: JobInfo) -> Iterator[TaskInfo]:
    if job.never_preempts:
        return
    for task in job.tasks.values():
        if task.status is SchedulingStatus.PENDING and not task.gates and not task.never_preempts:
            yield task


def _kinds(session: Session, job: JobInfo) -> Sequence[TaskInfo]:
    """One waiting pod of each kind; for those of a kind, the same pods may be evicted."""
    if job.never_preempts:
        return ()
    parked = session.state.parked.gangs.get(job.key)
    if parked is not None and parked.kinds is not None:
        return parked.kinds
    kinds = {
        (task.shape.number, task.priority, task.role, task.is_preemptable): task
        for task in _may_take(job)
    }
    found = tuple(kinds.values())
    if parked is not None and len(job.tasks) == job.counts[SchedulingStatus.PENDING]:
        parked.kinds = found
    return found


def _may_help(
    session: Session, search: Search, rules: EvictionRules, queue: Queue, job: JobInfo
) -> bool:
    """True if any pod may be evicted for a gang; if not, `allocate` uses the free resources.

    Args:
        session: The session.
        search: Looks at running pods.
        rules: What may be evicted.
        queue: Queue of the gang.
        job: The gang.
    """
    for task in _kinds(session, job):
        helps = search.may_help(Preemptor(task, job, queue), rules)
        if helps and session.answers.why_impossible(task.shape) is None:
            return True
    return False


def explain(
    session: Session, search: Search, rules: EvictionRules, job: JobInfo, action: str
) -> None:
    """Record why evictions did not help a gang, for a pod like the one in its reason."""
    if job.key not in search.told:
        return
    first = _reported(session, job)
    if first is None:
        return
    queue = session.state.queues[job.queue]
    if action != "reclaim" or not _is_refused(session, queue, job, first):
        search.note_spared(action, Preemptor(first, job, queue), rules)


def report_refusal(session: Session, queue: Queue, job: JobInfo) -> None:
    """Record that its queue refuses to reclaim for a gang for which no running pod is a candidate."""
    if session.answers.is_starving(job) and session.answers.why_invalid(job) is None:
        first = _reported(session, job)
        if first is not None:
            _is_refused(session, queue, job, first)


def _reported(session: Session, job: JobInfo) -> TaskInfo | None:
    """The first pod like the one in the reason of a gang; one for which others may be evicted comes first."""
    tasks = [task for task in job.tasks.values() if task.status is SchedulingStatus.PENDING]
    outcome = session.outcomes.get(job.key)
    if outcome is not None and outcome.failed is not None:
        tasks = [task for task in tasks if task.shape is outcome.failed[0].shape]
    return min(tasks, key=lambda task: (task.never_preempts, task.order), default=None)


def _is_refused(session: Session, queue: Queue, job: JobInfo, first: TaskInfo) -> bool:
    """Whether a queue refuses to reclaim for a pod; this is recorded unless it is the reason of its gang already."""
    if job.never_preempts or first.never_preempts:
        return False
    refusal = session.answers.why_not_preemptive(queue, first)
    if refusal is None:
        return False
    outcome = session.outcomes.get(job.key)
    if outcome is None or outcome.refused != refusal:
        spared = EvictionFailure("reclaim", refused=refusal.message)
        session.spared.setdefault(job.key, {})["reclaim"] = spared
    return True


def finish(
    session: Session, search: Search, statement: Statement, job: JobInfo, reason: str
) -> bool:
    """Commit the evictions for a gang if they are enough for it; otherwise undo them.

    A gang that needs no victims is left to `allocate`, whether that comes before or after.
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
        message = f"evicted to make room for PodGroup {job.key} of queue {job.queue} ({reason})"
        event = Event("Pod", task.namespace, task.name, "Normal", "Preempted", message)
        session.events.append(event)
    session.outcome(job)
    search.commit(statement)
    return True
