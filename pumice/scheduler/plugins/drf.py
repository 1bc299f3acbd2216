"""drf: jobs, and with `enableHierarchy` queues, in the order of their dominant shares.

The dominant share of a job is what its pods hold, as a part of the cluster, of the resource of which they hold most. It
follows every decision of the session.
"""

import numpy as np

from pumice.scheduler.fairness.fair_shares import DominantShare
from pumice.scheduler.fairness.hierarchy import ShareTree
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.candidates import Candidates, Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.points import QueueGroups
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import LastingPlugin, PluginSpec
from pumice.scheduler.view import SessionView

_EQUAL = 1e-6
"""Shares that differ by less count as equal where victims are looked for."""


class Drf(LastingPlugin):
    """Dominant resource fairness."""

    _total: Ints | None = None
    _share: DominantShare

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register orders and checks of victims."""
        self._in_tree = register.is_on("enableHierarchy")
        self.reopen(session)
        register.job_order(self._of_job)
        register.preemptable(self._may_go, by=self._starts_with)
        if not self._in_tree:
            return
        tree = ShareTree(session, self._share, self._held)

        def epoch() -> int:
            tree.settle()
            return tree.epoch

        register.queue_order(
            lambda queue: tree.key(queue.metadata.name),
            epoch=epoch,
            groups=QueueGroups(tree.groups, session.shares.names, tree.rounds),
        )
        register.reclaimable(lambda *asked: hierarchical_victims(tree, session, *asked))
        register.on_allocate(lambda task, _: tree.note(_holder(session, task)))
        register.on_deallocate(lambda task, _: tree.note(_holder(session, task)))

    @property
    def lasts(self) -> bool:
        """The tree of queues serves one session."""
        return not self._in_tree

    def reopen(self, session: SessionView) -> bool:
        """Begin a session, in which no gang was looked at."""
        total = session.facts.total()
        if self._total is not total:
            self._total, self._share = total, DominantShare(total)
        self._away = session.away.gangs
        self._first: dict[tuple[str, int], float] = {}
        return True

    def _held(self, job: JobInfo) -> Ints:
        """What a job holds, without its pods on nodes that are not ready, which are not in the total either."""
        if job.key not in self._away:
            return job.allocated
        held: Ints = np.maximum(job.allocated - self._away[job.key], 0)
        return held

    def _of_job(self, job: JobInfo) -> float:
        return self._share.of(self._held(job)) if job.counted else 0.0

    def _starts_with(self, preemptor: Preemptor) -> float:
        """Share with which the gang of a pod was first looked at for pods like this; gangs with equal ones are alike."""
        key = preemptor.job.key, preemptor.task.shape.number
        if key not in self._first:
            self._first[key] = self._share_with(preemptor)
        return self._first[key]

    def _share_with(self, preemptor: Preemptor) -> float:
        """Share that the gang of a pod would have with it."""
        return self._share.of(self._held(preemptor.job) + preemptor.vector)

    def _may_go(self, preemptor: Preemptor, candidates: Candidates) -> Bools:
        """A pod may be evicted if its job keeps at least the share that the job of the preemptor would have."""
        ours = self._share_with(preemptor)
        if not len(candidates):
            return np.zeros(0, dtype=np.bool_)
        held = np.array([self._held(job) for job in candidates.jobs])[candidates.job]
        rest = held - candidates.taken_before(candidates.job) - candidates.vectors
        may_go: Bools = self._share.of_rows(rest) >= ours - _EQUAL
        return may_go


def _holder(session: SessionView, task: TaskInfo) -> str:
    """Key of what the amounts of a pod are charged to; empty for pods of other schedulers."""
    return session.jobs[task.job].holder(task).key if task.job else ""


def hierarchical_victims(
    tree: ShareTree, session: SessionView, preemptor: Preemptor, candidates: Candidates
) -> Bools:
    """Pods that may be evicted because the preemptor's queue would still have the smaller share; each is looked at alone."""
    names = session.shares.names
    kinds: dict[tuple[int, bytes], int] = {}
    others: list[tuple[str, JobInfo, Ints]] = []
    places = np.zeros(len(candidates), dtype=np.int64)
    for place, (number, vector) in enumerate(
        zip(candidates.job.tolist(), candidates.vectors, strict=True)
    ):
        kind = kinds.setdefault((number, vector.tobytes()), len(kinds))
        if kind == len(others):
            job = candidates.jobs[number]
            others.append((names[job.row], job, vector))
        places[place] = kind
    answers = tree.has_less(preemptor.queue.metadata.name, preemptor.job, preemptor.vector, others)
    return np.array(answers, dtype=np.bool_)[places]


SPEC = PluginSpec(
    name="drf",
    summary="Jobs with a smaller dominant share of the cluster come first; with `enableHierarchy` queues, too.",
    build=lambda _: Drf(),
)
