"""What is evicted together: pods that a gang has beyond its minimum, one by one, or the gang as a whole.

Bundles come in the order in which they would go, and are made only as far as they are asked for: of most gangs it is never
asked which of their pods come last.
"""

from collections.abc import Iterator, Sequence, Set

import msgspec
import numpy as np

from pumice.scheduler.eviction.settings import EvictionRules, EvictionSetting
from pumice.scheduler.eviction.survey import Survey
from pumice.scheduler.model.axis import PODS, SCORED_CPU, SCORED_MEMORY, Bools, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.sub_groups import SubGroupLosses
from pumice.scheduler.model.tasks import ALLOCATED_LIKE, TaskInfo
from pumice.scheduler.points import SortKey
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.victims import Reversed


class VictimBundle(msgspec.Struct, frozen=True, eq=False):
    """Pods that go together.

    Attributes:
        tasks: The pods, those first that come last in their gang.
        is_whole: Whether the gang goes below its minimum with them.
    """

    job: JobInfo
    tasks: tuple[TaskInfo, ...]
    is_whole: bool

    def has(self, keys: Set[str]) -> bool:
        """Whether any of the pods is among those with these keys."""
        return any(task.key in keys for task in self.tasks)


class VictimOrder:
    """The order in which pods of one node go, each for itself; keys of gangs and queues are taken once, so before a decision."""

    def __init__(self, session: Session, rules: EvictionRules) -> None:
        self._state = session.state
        self._answers = session.answers
        self._queue_key = rules.queue_key
        self._ranks: dict[str, SortKey] = {}
        self._queues: dict[str, SortKey] = {}

    def of(self, tasks: Sequence[TaskInfo]) -> list[TaskInfo]:
        """The pods of a node in order."""
        jobs, ranks, answers = self._state.jobs, self._ranks, self._answers
        entries: list[tuple[SortKey, SortKey, str, str, TaskInfo]] = []
        for task in tasks:
            holder = jobs[task.job].holder(task)
            rank = ranks.get(holder.key)
            if rank is None:
                rank = ranks[holder.key] = answers.job_rank(holder)
            entries.append((rank, answers.task_key(task), task.key, holder.queue, task))
        entries.sort(reverse=True)
        names = {entry[3] for entry in entries}
        if len(names) > 1:
            for name in names - self._queues.keys():
                self._queues[name] = self._queue_key(self._state.queues[name])
            entries.sort(key=lambda entry: self._queues[entry[3]])
        return [entry[4] for entry in entries]


class _Gang(msgspec.Struct, frozen=True, eq=False):
    """A gang of which pods may go.

    Attributes:
        queue: Name of the queue to which its pods are charged.
        allowed: Rows of all its pods that may go.
        local: Which of them are on nodes that count.
        inside: Which of them are in the domain.
        may_break: Whether everything may go that has to go with a whole gang.
    """

    job: JobInfo
    queue: str
    allowed: Ints
    local: Bools
    inside: Bools
    may_break: bool


def bundles(
    session: Session,
    rules: EvictionRules,
    seen: Survey,
    usable: Bools,
    domain: Bools,
    needs: Ints,
) -> Iterator[VictimBundle]:
    """Bundles in the order in which they go: of a domain, for room on usable nodes; `needs` is what is wanted, by column."""
    setting = rules.setting
    gangs = list(_gangs(session, rules, seen, usable, domain))
    columns = wanted_columns(needs)

    def place(entry: tuple[_Gang, bool]) -> SortKey:
        gang, is_whole = entry
        job = gang.job
        queue = rules.queue_key(session.state.queues[gang.queue])
        part = -_efficiency(seen, gang, columns, needs) if is_whole else 0.0
        last = Reversed((job.created, job.key))
        key: SortKey = (queue, Reversed(session.answers.job_rank(job)), part, last)
        return (job.order_priority, is_whole, *key) if setting.priority_first else key

    alone = [
        (gang, False)
        for gang in gangs
        if not setting.by_gang or gang.job.is_short or gang.job.ready > gang.job.min_member
    ]
    whole = [(gang, True) for gang in gangs if setting.breaks and gang.may_break]
    for entries in [alone + whole] if setting.priority_first else [alone, whole]:
        for gang, is_whole in sorted(entries, key=place):
            session.time.check()
            yield from _of_gang(session, seen, gang, setting, is_whole=is_whole)


def _of_gang(
    session: Session, seen: Survey, gang: _Gang, setting: EvictionSetting, *, is_whole: bool
) -> Iterator[VictimBundle]:
    """The pods that a gang can do without, or those that may go if each goes for itself; or the gang."""
    key = session.answers.task_key
    tasks = _tasks(seen, gang.allowed[gang.local])
    tasks.sort(key=key, reverse=True)
    safe = _safe(gang.job, tasks) if setting.by_gang else tasks
    if not is_whole:
        yield from (VictimBundle(gang.job, (task,), False) for task in safe)
    elif len(safe) < len(tasks):
        rest = _tasks(seen, gang.allowed if setting.everywhere else gang.allowed[gang.inside])
        rest.sort(key=key, reverse=True)
        yield VictimBundle(gang.job, tuple(rest), True)


def _gangs(
    session: Session,
    rules: EvictionRules,
    seen: Survey,
    usable: Bools,
    domain: Bools,
) -> Iterator[_Gang]:
    """Gangs with pods that may go from nodes that count."""
    running = seen.running
    keys: dict[str, int] = {}
    numbers = np.array(
        [keys.setdefault(each.gang.key, len(keys)) if each else -1 for each in running.gangs],
        dtype=np.int64,
    )
    there = np.flatnonzero(running.used[seen.rows])  # others have gone since
    numbers = numbers[running.gang[seen.rows[there]]]
    nodes = running.node[seen.rows[there]]
    has_local = np.zeros(len(keys), dtype=np.bool_)
    has_local[numbers[seen.may[there] & usable[nodes] & domain[nodes]]] = True
    there, numbers = there[has_local[numbers]], numbers[has_local[numbers]]
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    for places in np.split(there[order], starts[1:]) if len(order) else ():
        session.time.check()
        holder = running.gangs[int(running.gang[seen.rows[places[0]]])]
        if holder is None or holder.gang.key == rules.without:
            continue
        job = holder.gang
        rows = seen.rows[places]
        may = seen.may[places]
        allowed = rows[may]
        inside = domain[running.node[allowed]]
        local = inside & usable[running.node[allowed]]
        if not rules.setting.by_gang:
            may_break = False
        elif rules.setting.everywhere:
            holding = sum([job.counts[status] for status in ALLOCATED_LIKE])
            may_break = len(allowed) == holding
        else:
            may_break = bool(may[domain[running.node[rows]]].all())
        yield _Gang(job, holder.queue, allowed, local, inside, may_break)


def _tasks(seen: Survey, rows: Ints) -> list[TaskInfo]:
    return [task for task in map(seen.running.tasks.__getitem__, rows.tolist()) if task]


def _safe(job: JobInfo, tasks: Sequence[TaskInfo]) -> list[TaskInfo]:
    """Those of the pods, in order, that can go without breaking their gang."""
    if job.is_short:
        return list(tasks)
    left = job.ready - job.min_member
    roles: dict[str, int] = {}
    if job.min_member >= job.min_task_total:
        roles = {role: job.role_ready(role) - least for role, least in job.min_task.items()}
    groups, losses = job.sub_groups, SubGroupLosses()
    found: list[TaskInfo] = []
    for task in tasks:
        if len(found) == left:
            break
        if roles.get(task.role, 1) <= 0:
            continue
        if groups is not None and not losses.takes(groups.of(task)):
            continue
        found.append(task)
        if task.role in roles:
            roles[task.role] -= 1
    return found


def broken_gangs(session: Session, victims: Sequence[TaskInfo]) -> Sequence[JobInfo]:
    """Gangs that have their minimum and would not any more without pods that are still there."""
    jobs = session.state.jobs
    lost: dict[str, list[TaskInfo]] = {}
    for task in victims:
        lost.setdefault(task.job, []).append(task)
    return [jobs[key] for key, tasks in lost.items() if len(_safe(jobs[key], tasks)) < len(tasks)]


def wanted_columns(needs: Ints) -> Ints:
    """Columns of what is wanted, by which parts are compared: not of pods, nor of what is only scored."""
    columns: Ints = np.flatnonzero(needs)
    return columns[~np.isin(columns, (PODS, SCORED_CPU, SCORED_MEMORY))]


def _efficiency(seen: Survey, gang: _Gang, columns: Ints, needs: Ints) -> float:
    """How much of what is wanted lies on nodes that count, in parts of all that the gang holds of it."""
    vectors = seen.running.vectors[gang.allowed][:, columns]
    wanted = needs[columns]
    everywhere = float((vectors.sum(axis=0) / wanted).sum())
    here = np.minimum(vectors[gang.local].sum(axis=0), wanted)
    return float((here / wanted).sum()) / everywhere if everywhere else 0.0
