"""Which gangs search for victims.

A gang that a cycle tries searches for victims in it. Any change may make pods victims, so gangs that are not tried search, too,
at most once a second. Gangs that exceed all nodes, and those for which no running pod may be
evicted when the action begins, are skipped; one survey of running pods serves all gangs of the same class.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from pumice.api.queues import Queue
from pumice.scheduler.eviction.settings import EvictionRules, EvictionSetting, rules_for
from pumice.scheduler.eviction.survey import Surveys
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.sub_groups import SubGroup, SubGroups
from pumice.scheduler.model.tasks import PENDING, PIPELINED, TaskInfo
from pumice.scheduler.session.session import Session
from pumice.scheduler.waiting.parked import Parked
from pumice.scheduler.waiting.priority_queue import PriorityQueue

INTERVAL = 1.0
"""Seconds between two searches for all gangs."""


def lacking_jobs(session: Session, setting: EvictionSetting) -> list[JobInfo]:
    """Gangs in their queues with pods that wait, without those that exceed all nodes; in a fifo queue others wait behind these."""
    waiting = [job for job in _jobs(session, setting.name) if job.counts[PENDING]]
    return [job for job in session.in_queue(waiting) if not _is_vain(session, job)]


def _is_vain(session: Session, job: JobInfo) -> bool:
    if not (job.is_too_large or job.key in session.outcomes):
        return False
    queue = session.state.queues.get(job.queue)
    return queue is not None and not queue.is_fifo and session.empty_nodes.exceeds_all(job)


def starving_jobs(
    session: Session,
    surveys: Surveys,
    setting: EvictionSetting,
    lacking: Sequence[JobInfo],
    unaided: dict[str, list[JobInfo]],
) -> dict[str, PriorityQueue[JobInfo]]:
    """Those of some gangs that are below their minimum, by open queue.

    Those for which no running pod is a candidate, but whose queue may refuse to reclaim, are put into `unaided`.
    """
    starving = _Starving(session, surveys, setting, unaided)
    lines = session.answers.by_queue(starving.asked(lacking), starving.takes_part, session.fail)
    return lines if starving.evicts else {}


class _Starving:
    """Which gangs take part in an action; what is known of one that holds nothing serves all of its queue.

    Attributes:
        evicts: Whether any of them may evict if it is the first; otherwise none may in its turn either.
    """

    def __init__(
        self,
        session: Session,
        surveys: Surveys,
        setting: EvictionSetting,
        unaided: dict[str, list[JobInfo]],
    ) -> None:
        self._session = session
        self._surveys = surveys
        self._setting = setting
        self._unaided = unaided
        self._leaves_out = "allocate" in session.view.actions
        self._losing = {session.state.tasks[key].job for key in session.committed.evicted}
        self._rules: dict[str, EvictionRules] = {}
        self.evicts = False
        self._later: set[str] = set()
        self._unhelped: set[str] = set()  # queues for whose gangs no running pod is a candidate

    def asked(self, jobs: Sequence[JobInfo]) -> Iterator[JobInfo]:
        """Those about whom the answers so far do not tell that no pod may go for them; ever more are looked at together."""
        told, blind, unhelped = self._surveys.told, self._surveys.blind, self._unhelped
        parked, action = self._session.state.parked.gangs, self._setting.name
        first, end = 0, 1
        while first < len(jobs):
            some = jobs[first:end]
            if unhelped:
                some = [
                    job
                    for job in some
                    if job.queue not in unhelped or job.key in told or (job.counted and job.holding)
                ]
            if blind:
                some = [
                    job
                    for job in some
                    if job.key in told
                    or (why := parked.get(job.key)) is None
                    or why.seeks.get(action) not in blind
                ]
            yield from some
            first, end = end, 2 * end

    def takes_part(self, job: JobInfo) -> bool:
        """Whether a gang is below its minimum, and others may go for it as far as is known."""
        session, surveys = self._session, self._surveys
        queue = session.state.queues.get(job.queue)
        if job.key in self._losing or job.group is None:
            return False  # in the first case its pods went for another gang a moment ago
        if queue is None or not queue.is_open:
            return False
        is_holding = job.counted > 0 and job.holding > 0
        if self._leaves_out and not (is_holding or queue.is_fifo):
            rules = self._rules_for(job, queue)
            if job.queue in self._unhelped:
                # No running pod was spared, so that only a refusal is to be reported.
                is_reported = self._setting.reclaims and job.key in surveys.told
                if is_reported and session.state.gangs.takes(queue, job):
                    self._unaided.setdefault(job.queue, []).append(job)
                return False
            if job.key not in surveys.told and not may_help(
                session, surveys, rules, queue, job, self._later
            ):
                return False
        if not (is_holding or session.state.gangs.takes(queue, job)):
            return False
        if not session.answers.is_starving(job) or session.answers.why_invalid(job) is not None:
            return False
        self.evicts |= job.key not in self._later
        return True

    def _rules_for(self, job: JobInfo, queue: Queue) -> EvictionRules:
        rules = self._rules.get(job.queue)
        if rules is None:
            rules = self._rules[job.queue] = rules_for(self._session, self._setting, job, queue)
            if not self._surveys.accepted(rules)[1]:
                self._unhelped.add(job.queue)
        return rules


def _jobs(session: Session, action: str) -> list[JobInfo]:
    state, now = session.state, session.now
    version, moment = state.sought.get(action, (-1, 0.0))
    if version == state.parked.version:
        return list(session.view.waiting)
    if 0.0 <= now - moment < INTERVAL:
        if any(job.counts[PENDING] for job in state.gangs.waiting.values()):
            session.view.wake_at(moment + INTERVAL)
        return [job for job in session.view.waiting if job.key not in session.skipped]
    state.sought[action] = state.parked.version, now
    gangs = state.gangs
    found = session.in_queue([gangs.waiting[key] for key in gangs.waiting_keys])
    held = gangs.quarantined
    return [job for job in found if job.key not in held] if held else found


def waits(task: TaskInfo) -> bool:
    """Whether a pod waits for a node and for nothing else."""
    return task.status is PENDING and not task.gates


def lacking(job: JobInfo) -> int:
    """Pods that a gang has too few, those that are promised a place included."""
    return job.lacking - job.counts[PIPELINED]


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
        if waits(task) and not task.never_preempts:
            yield task


def kinds(job: JobInfo, parked: Parked | None = None) -> Sequence[TaskInfo]:
    """One waiting pod of each kind, kept while the gang is parked; for those of a kind, the same pods may be evicted."""
    by_kind = {
        (task.shape.number, task.priority, task.role, task.is_preemptable): task
        for task in _may_take(job)
    }
    found = tuple(by_kind.values())
    if parked is not None and len(job.tasks) == job.counts[PENDING]:
        parked.kinds = found
    return found


def may_help(
    session: Session,
    surveys: Surveys,
    rules: EvictionRules,
    queue: Queue,
    job: JobInfo,
    later: set[str] | None = None,
) -> bool:
    """Whether any pod may be evicted for a gang, and its queue may take back what it needs; if not, `allocate`, if it is there, uses the free resources.

    Its queue may be able to take that back once others have evicted pods of it: `later` gets the keys of gangs of which only their turn will tell.
    """
    if "allocate" not in session.view.actions:
        return True
    if job.never_preempts:
        return False
    parked = session.state.parked.gangs.get(job.key)
    known = parked.kinds if parked is not None else None
    asking = [
        Preemptor(task, job, queue) for task in (kinds(job, parked) if known is None else known)
    ]
    helped = [each for each in asking if not surveys.are_spared(each, rules)]
    if helped and not _may_take_back(session, rules, queue, job):
        if later is not None:
            later.add(job.key)
        return later is not None
    for each in helped:
        helps = surveys.may_help(each, rules)
        if helps and session.answers.why_impossible(each.task.shape) is None:
            return True
    if rules.lasts and parked is not None and parked.kinds is not None:
        parked.seeks[rules.setting.name] = surveys.note(asking, helped, rules)
    return False


def _may_take_back(session: Session, rules: EvictionRules, queue: Queue, job: JobInfo) -> bool:
    """False if the queue of a gang may not reclaim what it needs at least for its minimum, without which it could not keep its places."""
    found, lacks = session.extensions, lacking(job)
    if not (rules.setting.reclaims and found.preemptive_room and found.promises_need_minimum):
        return True
    vectors = [task.shape.vector for task in _may_take(job)]
    needs = np.sort(vectors, axis=0)[: max(lacks, 0)].sum(axis=0)
    return session.answers.may_take_back(queue, needs)
