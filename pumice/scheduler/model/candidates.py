"""Candidates for eviction, in columns.

Plugins return a mask for all candidates. Candidates are in the order in which they would be evicted from their node, so
that "only as many of a gang as it has above its minimum" is a comparison with `earlier`.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypedDict

import numpy as np

from pumice.api.queues import Queue
from pumice.scheduler.model.axis import Bools, Floats, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.running_pods import RunningTable
from pumice.scheduler.model.tasks import TaskInfo


class Preemptor(NamedTuple):
    """A pod for which others may be evicted.

    Attributes:
        together: What it and the other pods of the gang need that get places with it, by column; None if it is looked at alone.
    """

    task: TaskInfo
    job: JobInfo
    queue: Queue
    together: Ints | None = None

    @property
    def vector(self) -> Ints:
        """What is to be taken by column: by the pod, or by all that get places with it."""
        return self.task.shape.vector if self.together is None else self.together


def gang_of(preemptor: Preemptor) -> Hashable:
    """The gang for which others may have to go, and what its pod asks for."""
    return preemptor.job.key, preemptor.task.shape.number


def any_preemptor(_: Preemptor) -> Hashable:
    """A constant key: the answer does not depend on the preemptor."""
    return None


class Candidates:
    """Running pods that might have to go, in the order in which they would: node by node, or over all nodes.

    Attributes:
        are_alone: Whether each is judged as the only candidate on its node.
        jobs: Gangs of the candidates, and `ChargedPods` of those that are charged elsewhere.
        node: Row of the node; ascending if the pods go node by node.
        scope: Equal for candidates of which the earlier ones go before the later ones: those of a node, or all.
        job: Place of its gang in `jobs`.
    """

    def __init__(
        self,
        running: RunningTable,
        rows: Ints,
        jobs: Sequence[JobInfo],
        job: Ints,
        node: Ints | None = None,
        *,
        bundle: Ints | None = None,
    ) -> None:
        """Candidates in order, by their rows among the running pods, and the place of the gang of each in `jobs`.

        `node` is the row of the node of each, ascending; without it each candidate is judged as the only one on its node. `bundle`
        is given if they go in this order whatever their nodes are: the number of the pods that go with each, or not at all; these
        stand next to each other.
        """
        self._running = running
        self._rows = rows
        self._tasks: Sequence[TaskInfo] | None = None
        self.are_alone = node is None
        self.jobs = jobs
        self.node: Ints = np.arange(len(rows)) if node is None else node
        self.scope: Ints = self.node if bundle is None else np.zeros(len(rows), dtype=np.int64)
        self.job = job
        self._bundle = bundle
        self._vectors: Ints | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def tasks(self) -> Sequence[TaskInfo]:
        """The pods; where a column says it, that is faster for many."""
        if self._tasks is None:
            found = map(self._running.tasks.__getitem__, self._rows.tolist())
            self._tasks = [task for task in found if task is not None]
        return self._tasks

    @property
    def vectors(self) -> Ints:
        """What each takes, by candidate and column."""
        if self._vectors is None:
            self._vectors = self._running.vectors[self._rows]
        return self._vectors

    @property
    def queue(self) -> Ints:
        """Row of its queue in the table of queues."""
        return self.of_jobs(lambda job: job.row)

    @property
    def gang(self) -> Ints:
        """Number of the gang of each; pods of one gang may be charged to several queues, with a place in `jobs` for each."""
        numbers: dict[str, int] = {}
        return self.of_jobs(lambda job: numbers.setdefault(job.gang.key, len(numbers)))

    @property
    def critical(self) -> Bools:
        """Whether Kubernetes counts a pod as critical."""
        found: Bools = self._running.critical[self._rows]
        return found

    @property
    def cools_until(self) -> Floats:
        """Until when a pod asks to be spared, UNIX seconds; 0 if it does not, and NaN if that cannot be read."""
        found: Floats = self._running.cools_until[self._rows]
        return found

    def of_jobs(self, value: Callable[[JobInfo], int]) -> Ints:
        """A number for each candidate that follows from its gang."""
        numbers = np.array([value(job) for job in self.jobs], dtype=np.int64)
        found: Ints = numbers[self.job]
        return found

    def of_tasks(self, value: Callable[[TaskInfo], int]) -> Ints:
        """A number for each candidate."""
        return np.array([value(task) for task in self.tasks], dtype=np.int64)

    def earlier(self, group: Ints) -> Ints:
        """How many candidates of the same scope and group (a number each, such as `job` or `queue`) come before each."""
        if self.are_alone:
            return np.zeros(len(self), dtype=np.int64)
        order, starts = self._grouped(group)
        places = np.arange(len(order))
        counts = np.empty(len(order), dtype=np.int64)
        counts[order] = places - starts
        return counts

    def taken_before(self, group: Ints) -> Ints:
        """Amounts that earlier candidates of the same scope and group take, by candidate and column."""
        if self.are_alone:
            return np.zeros_like(self.vectors)
        order, starts = self._grouped(group)
        sums = np.zeros((len(order) + 1, self.vectors.shape[1]), dtype=np.int64)
        np.cumsum(self.vectors[order], axis=0, out=sums[1:])
        before = np.empty_like(self.vectors)
        before[order] = sums[:-1] - sums[starts]
        return before

    def taken_before_bundle(self, group: Ints) -> Ints:
        """The same without those that go together with a candidate: what is gone when it is decided about them."""
        before = self.taken_before(group)
        if self._bundle is None:
            return before
        groups, numbers = np.unique(group, return_inverse=True)
        return before - self.taken_before(self._bundle * len(groups) + numbers.ravel())

    @property
    def returning(self) -> Ints:
        """What asks for a place again at least once a candidate has gone, by candidate and column.

        That is the candidate; of a gang that goes as a whole, its minimum of pods.
        """
        if self._bundle is None:
            return self.vectors
        found = self.vectors.copy()
        starts = np.flatnonzero(np.diff(self._bundle, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(self)], strict=True):
            if end - start > 1:
                minimum = max(self.jobs[int(self.job[start])].gang.min_member, 1)
                found[start:end] = np.sort(found[start:end], axis=0)[:minimum].sum(axis=0)
        return found

    def _grouped(self, group: Ints) -> tuple[Ints, Ints]:
        """An order that keeps candidates of one scope and group together, and where the group of each begins."""
        order: Ints = np.lexsort(
            (group, self.scope)
        )  # stable: candidates of a group stay in their order
        if not len(order):
            return order, order
        scopes, groups = self.scope[order], group[order]
        begins = np.ones(len(order), dtype=np.bool_)
        begins[1:] = (scopes[1:] != scopes[:-1]) | (groups[1:] != groups[:-1])
        starts: Ints = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
        return order, starts


VictimCheck = Callable[[Preemptor, Candidates], Bools | None]
"""Which candidates may be evicted for a pod; None if there is no restriction."""

SparesGangs = Callable[[Preemptor, Sequence[JobInfo]], bool]
"""Whether no pod of any of these gangs (see `Candidates.jobs`) may be evicted for a pod; false where only a look at the pods shows it."""

MostTaken = Callable[[Preemptor, Candidates], Ints]
"""What those of some candidates take at most, by column, that may go one after the other for pods like one, whichever go first."""

WhySpared = Callable[[RunningTable, Ints], str]
"""Why a plugin spares the pods of these rows, for the reason of a gang that waits."""


class VictimPromises(TypedDict, total=False):
    """What a plugin says about the answers of its `VictimCheck`.

    Attributes:
        by: What of the pod that asks decides about them, besides its queue; `gang_of` unless told.
        lasts: Whether that follows from the PodGroup of its gang and the pods of it alone, so that it need not be asked again before
            one of these, a priority or the configuration changes.
        why: Says why it spares pods, for the reasons of gangs that wait.
        spares: Tells at once that it would let no pod of any of these gangs go.
        most: What those of some candidates take at most that may go one after the other.
    """

    by: Callable[[Preemptor], Hashable]
    lasts: bool
    why: WhySpared | None
    spares: SparesGangs
    most: MostTaken
