"""The pods that an action may evict for a pod, and their order.

On a node, the last pod in the plugins' orders is evicted first: of the last queue (reclaim only), of its last gang, its
last pod. Age and name of gangs do not count, so that pods of equal gangs are ordered by themselves.
"""

from collections.abc import Callable, Hashable, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from pumice.api import keys
from pumice.api.meta import parse_bool
from pumice.api.queues import Queue
from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.candidates import Candidates, Preemptor, VictimCheck
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.points import Extension, Point, SortKey
from pumice.scheduler.session.session import Session

__all__ = [
    "HALF",
    "EvictionRules",
    "VictimOrder",
    "between_jobs",
    "between_queues",
    "gangs_of_queue",
    "gangs_of_queues",
    "importance",
    "inside_job",
    "is_protected",
]

_NO_QUEUE: Bools = np.zeros(0, dtype=np.bool_)
HALF = 1 << 31
"""Priorities of pods lie between -HALF and HALF - 1."""


class EvictionRules(msgspec.Struct, frozen=True):
    """What an action may evict for one pod.

    Attributes:
        name: Distinguishes rules of several kinds.
        checks: The plugins' checks; see `victims.allowed`.
        classes: What of a pod that asks decides about their answers.
        queues: Queues whose pods are candidates, by row; not asked where `inside` names a gang.
        only_running: Whether pods that are bound and do not run yet are no candidates.
        own_job: Whether the answer depends on which gang asks, besides what plugins say.
        without: Gang whose pods are no candidates though its queue is accepted; empty for none.
        inside: Gang that is the only one whose pods are candidates; empty where many are.
        queue_key: Place of a victim's queue among queues; None where all candidates have the same queue.
        breaks_gangs: Whether gangs may go as a whole. Plugin `gang` then protects nothing, a PodGroup may protect its pods, and
            all other plugins must agree, whatever their tiers are.
    """

    name: str
    checks: Sequence[Extension[VictimCheck]]
    classes: Sequence[Callable[[Preemptor], Hashable]]
    queues: Bools
    only_running: bool
    own_job: bool
    without: str = ""
    inside: str = ""
    queue_key: Callable[[Queue], SortKey] | None = None
    breaks_gangs: bool = False

    @property
    def reclaims(self) -> bool:
        """Whether pods of other queues go."""
        return self.queue_key is not None

    def accepts(self, other: JobInfo) -> bool:
        """Whether pods of a gang are candidates."""
        if self.inside:
            return other.key == self.inside
        return other.row >= 0 and bool(self.queues[other.row])

    def preemptor_class(self, session: Session, preemptor: Preemptor) -> Hashable:
        """Equal for pods for which the same pods may be evicted from the same nodes."""
        said = tuple([each(preemptor) for each in self.classes])
        is_alone = self.own_job or session.is_target(preemptor.job.key)
        job = preemptor.job.key if is_alone else ""
        return self.name, preemptor.queue.metadata.name, session.alike(preemptor.task), job, said

    def survey_class(self, preemptor: Preemptor) -> Hashable:
        """Equal for pods for which the same pods may be evicted, if they may use their nodes."""
        said = [each(preemptor) for each in self.classes]
        return self.name, preemptor.job.queue, self.inside, preemptor.task.shape.is_empty, *said


def between_jobs(session: Session, job: JobInfo) -> EvictionRules:
    """Pods of other gangs of the same queue."""
    own: Bools = np.zeros(len(session.view.shares.queues), dtype=np.bool_)
    own[job.row] = True
    return EvictionRules(
        "jobs",
        session.extensions.preemptable,
        session.extensions.preemptor_classes,
        own,
        only_running=False,
        own_job=job.holding > 0,
        without=job.key,
    )


def inside_job(session: Session, job: JobInfo) -> EvictionRules:
    """Other pods of the same gang."""
    return EvictionRules(
        "inside",
        session.extensions.preemptable,
        session.extensions.preemptor_classes,
        _NO_QUEUE,
        only_running=False,
        own_job=True,
        inside=job.key,
    )


def between_queues(session: Session, queue: Queue) -> EvictionRules:
    """Running pods of other queues that may be reclaimed from."""
    others = session.view.shares.limits.reclaimable.copy()
    others[session.view.shares.rows[queue.metadata.name]] = False
    return EvictionRules(
        "queues",
        session.extensions.reclaimable,
        session.extensions.reclaimer_classes,
        others,
        only_running=True,
        own_job=False,
        queue_key=lambda other: session.answers.victim_queue_key(other, queue),
    )


def gangs_of_queue(session: Session, job: JobInfo) -> EvictionRules:
    """Less important gangs of the same queue, each as a whole or some pods of it."""
    points = session.extensions.preemptable
    less = Extension[VictimCheck](-1, "priority", _of_less_important_gangs)
    return replace(
        between_jobs(session, job),
        name="gangs of its queue",
        checks=[less, *_without_minimums(points)] if points else (),
        classes=[*session.extensions.preemptor_classes, lambda each: each.job.order_priority],
        breaks_gangs=True,
    )


def gangs_of_queues(session: Session, queue: Queue) -> EvictionRules:
    """Running gangs of other queues that may be reclaimed from, each as a whole or some pods of it."""
    return replace(
        between_queues(session, queue),
        name="gangs of queues",
        checks=_without_minimums(session.extensions.reclaimable),
        breaks_gangs=True,
    )


def _without_minimums(points: Point[VictimCheck]) -> list[Extension[VictimCheck]]:
    """The plugins' checks, but for that of the minimum of gangs: what goes together is decided with it."""
    return [
        Extension(each.tier, each.plugin, _all_of_them) if each.plugin == "gang" else each
        for each in points
    ]


def _all_of_them(_: Preemptor, candidates: Candidates) -> Bools:
    return np.ones(len(candidates), dtype=np.bool_)


def _of_less_important_gangs(preemptor: Preemptor, candidates: Candidates) -> Bools:
    found: Bools = candidates.of_jobs(lambda job: job.order_priority) < preemptor.job.order_priority
    return found


def is_protected(job: JobInfo) -> bool:
    """Whether the PodGroup of a gang says that its pods may not be evicted."""
    if job.group is None:
        return False
    meta = job.group.metadata
    said = (parse_bool(meta.annotation(keys.PREEMPTABLE)), parse_bool(meta.label(keys.PREEMPTABLE)))
    return next((not each for each in said if each is not None), False)


def importance(job: JobInfo, task: TaskInfo) -> int:
    """Priority of a victim: that of its gang, then its own, as one number."""
    own = min(max(task.priority, -HALF), HALF - 1)
    return (job.order_priority << 32) + own


class VictimOrder:
    """Candidates of a node in the order in which they would go; keys of gangs are kept while nothing changes them."""

    __slots__ = ("_answers", "_jobs", "_queues", "_rules", "_state")

    def __init__(self, session: Session, rules: EvictionRules) -> None:
        self._state = session.state
        self._answers = session.answers
        self._rules = rules
        self._jobs: dict[str, SortKey] = {}
        self._queues: dict[str, SortKey] = {}

    def forget(self) -> None:
        """Ask for the keys of gangs and queues again; a decision has changed some."""
        self._jobs.clear()
        self._queues.clear()

    def sort(self, tasks: list[TaskInfo]) -> None:
        """Put the candidates of one node into order."""
        tasks.sort(key=self._key, reverse=True)
        if self._rules.queue_key is not None:
            tasks.sort(key=self._queue_key)

    def _key(self, task: TaskInfo) -> SortKey:
        holder = self._state.jobs[task.job].holder(task)
        key = self._jobs.get(holder.key)
        if key is None:
            key = self._jobs[holder.key] = self._answers.job_rank(holder)
        return key, self._answers.task_key(task), task.key

    def _queue_key(self, task: TaskInfo) -> SortKey:
        name = self._state.jobs[task.job].holder(task).queue
        key = self._queues.get(name)
        if key is None:
            assert self._rules.queue_key is not None
            key = self._queues[name] = self._rules.queue_key(self._state.queues[name])
        return key
