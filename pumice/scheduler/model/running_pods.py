"""Running and bound pods of gangs, in columns, for the search for victims; those on nodes that are not ready; budgets for disruptions.

Each pod has a row, in no order; rows of removed pods are reused. Preemption and reclaim select rows by masks.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter

import msgspec
import numpy as np

from pumice.api.budgets import PodDisruptionBudget
from pumice.scheduler.model.affinity_terms import is_too_long
from pumice.scheduler.model.axis import Axis, Bools, Floats, Ints, read_only
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.queues import QueueTable
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo

VICTIMS = frozenset({SchedulingStatus.BOUND, SchedulingStatus.RUNNING})
"""Pods that can be evicted."""

_FIRST_CAPACITY = 64


class RunningTable:
    """Running and bound pods of gangs.

    Attributes:
        tasks: Pods by row; None where a row is free.
        gangs: Gangs by number; None where a number is free. Pods that are charged to another queue than that of their gang
            count as one of their own, see `ChargedPods`.
        used: Rows that hold a pod.
        node: Row of the node, -1 while the node is not there.
        gang: Number of the gang.
        preemptable: Whether the pod says that it may be evicted.
        critical: Whether Kubernetes counts it as critical.
        runs: Whether it runs; otherwise it is bound.
        cools_until: Until when it asks to be spared, UNIX seconds, if it runs; NaN if it says so in words that are not a duration.
        vectors: What it takes, by row and column.
        told: Called with each pod that comes (1) or goes (-1), and to what it is charged; None if nothing counts them.
    """

    def __init__(self, axis: Axis, jobs: Mapping[str, JobInfo]) -> None:
        self._axis = axis
        self._jobs = jobs
        self.told: Callable[[TaskInfo, JobInfo, int], None] | None = None
        self.tasks: list[TaskInfo | None] = []
        self.gangs: list[JobInfo | None] = []
        self._free: list[int] = []
        self._free_gangs: list[int] = []
        self._numbers: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self.used: Bools = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self.preemptable: Bools = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self.critical: Bools = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self.runs: Bools = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self.cools_until: Floats = np.zeros(_FIRST_CAPACITY)
        self.node: Ints = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self.gang: Ints = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self.priority: Ints = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self.vectors: Ints = np.zeros((_FIRST_CAPACITY, len(axis)), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.tasks) - len(self._free)

    def add(self, task: TaskInfo, node: int) -> None:
        """Take in a pod that runs or is bound on a node."""
        if self._free:
            row = self._free.pop()
            self.tasks[row] = task
        else:
            row = len(self.tasks)
            self.tasks.append(task)
            if row == len(self.used):
                self._grow()
        task.row = row
        self.used[row] = True
        self.node[row] = node
        holder = self._jobs[task.job].holder(task)
        self.gang[row] = self._join(holder.key)
        self.priority[row] = task.priority
        self.preemptable[row] = task.is_preemptable
        self.critical[row] = task.is_critical
        self.runs[row] = runs = task.status is SchedulingStatus.RUNNING
        self.cools_until[row] = task.cool_down.until if task.cool_down and runs else 0.0
        self.vectors[row] = task.shape.vector
        if self.told is not None:
            self.told(task, holder, 1)

    def discard(self, task: TaskInfo) -> None:
        """Take out a pod."""
        row = task.row
        task.row = -1
        self.tasks[row] = None
        self.used[row] = False
        self.cools_until[row] = 0.0
        self._free.append(row)
        holder = self._jobs[task.job].holder(task)
        self._leave(holder.key)
        if self.told is not None:
            self.told(task, holder, -1)

    def move(self, task: TaskInfo, node: int) -> None:
        """Note that the node of a pod has another row."""
        self.node[task.row] = node

    def reorder(self, rows: Ints) -> None:
        """Note that the rows of nodes have changed: new rows by old row, -1 for nodes that are gone."""
        if len(rows):
            self.node = np.append(rows, -1)[self.node]

    def number(self, gang: str) -> int:
        """Number of a gang; -1 if none of its pods runs."""
        return self._numbers.get(gang, -1)

    def widen(self) -> None:
        """Open the columns that the axis has gained."""
        missing = len(self._axis) - self.vectors.shape[1]
        if missing > 0:
            self.vectors = np.pad(self.vectors, ((0, 0), (0, missing)))

    # -- internals ------------------------------------------------------------------------------

    def _join(self, gang: str) -> int:
        number = self._numbers.get(gang)
        if number is None:
            if self._free_gangs:
                number = self._free_gangs.pop()
                self.gangs[number] = self._jobs[gang]
            else:
                number = len(self.gangs)
                self.gangs.append(self._jobs[gang])
            self._numbers[gang] = number
        self._sizes[gang] = self._sizes.get(gang, 0) + 1
        return number

    def _leave(self, gang: str) -> None:
        self._sizes[gang] -= 1
        if not self._sizes[gang]:
            del self._sizes[gang]
            number = self._numbers.pop(gang)
            self.gangs[number] = None
            self._free_gangs.append(number)

    def _grow(self) -> None:
        count = len(self.used)
        for name in (
            "used", "preemptable", "critical", "runs", "cools_until", "node", "gang", "priority"
        ):  # fmt: skip
            setattr(self, name, np.pad(getattr(self, name), (0, count)))
        self.vectors = np.pad(self.vectors, ((0, count), (0, 0)))


class Away(msgspec.Struct, frozen=True):
    """What pods of queues hold on nodes that are not ready, or not there, by row and column.

    The size of the cluster is that of its ready nodes. What a queue may have as a part of it is therefore compared with what its
    pods hold on these nodes. A limit that does not depend on the cluster counts all pods: those on other nodes may still run.
    Plugins share the columns, so they are read-only.

    Attributes:
        held: What pods on nodes that are not ready hold; part of `QueueTable.allocated`.
        needed: The part of it that is not beyond the `minResources` of its gangs.
        gangs: What pods of a gang hold there, by its key.
    """

    held: Ints
    needed: Ints
    gangs: Mapping[str, Ints]

    def __post_init__(self) -> None:
        """Have writing to the columns fail."""
        read_only(self.held, self.needed, *self.gangs.values())

    def is_equal(self, other: "Away") -> bool:
        """Whether queues hold the same amounts there."""
        return self is other or (
            np.array_equal(self.held, other.held) and np.array_equal(self.needed, other.needed)
        )

    @classmethod
    def of(cls, running: RunningTable, unready: Bools, queues: QueueTable) -> "Away":
        """Amounts of pods that run or are bound on nodes that are not ready, by queue."""
        held = np.zeros_like(queues.allocated)
        needed = held
        gangs: dict[str, Ints] = {}
        rows = np.flatnonzero(are_away(running, unready))
        if len(rows):
            needed = held.copy()
            numbers, places = np.unique(running.gang[rows], return_inverse=True)
            sums = np.zeros((len(numbers), running.vectors.shape[1]), dtype=np.int64)
            np.add.at(sums, places, running.vectors[rows])
            for number, away in zip(numbers.tolist(), sums, strict=True):
                job = running.gangs[number]
                if job is not None:
                    gangs[job.key] = away
                    if job.row >= 0:
                        held[job.row] += away
                        needed[job.row] += _needed(job.allocated, job.minimum, away)
        return cls(held, needed, gangs)


@lru_cache(maxsize=8)
def nothing_away(queues: int, columns: int) -> Away:
    """What so many queues have on nodes that are not ready, if there are none; to be read only."""
    nothing = np.zeros((queues, columns), dtype=np.int64)
    return Away(nothing, nothing, {})


def are_away(running: RunningTable, unready: Bools) -> Bools:
    """Pods of gangs that are on nodes that are not ready, or not there, by row of `running`."""
    node = running.node
    are_lost = node < 0
    if unready.any():
        are_lost |= unready[np.maximum(node, 0)]
    found: Bools = running.used & are_lost
    return found


def _needed(held: Ints, minimum: Ints, away: Ints) -> Ints:
    beyond = np.maximum(held - minimum, 0)
    found: Ints = away - (beyond - np.maximum(held - away - minimum, 0))
    return found


class BudgetTable:
    """All PodDisruptionBudgets, found by a label that they require, so that a pod is compared with few."""

    def __init__(self) -> None:
        self._budgets: dict[tuple[str, str], PodDisruptionBudget] = {}
        self._requiring: dict[tuple[str, ...], dict[str, PodDisruptionBudget]] = {}

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def set(self, budget: PodDisruptionBudget) -> bool:
        """Add or update a budget; True if a relevant field changed.

        One whose selector is too long is left out; the API server still enforces it when a pod is evicted.
        """
        meta = budget.metadata
        if is_too_long(budget.spec.selector):
            return self.remove(meta.namespace, meta.name)
        old = self._budgets.get((meta.namespace, meta.name))
        self.remove(meta.namespace, meta.name)
        self._budgets[meta.namespace, meta.name] = budget
        self._requiring.setdefault(_required(budget), {})[meta.name] = budget
        return old is None or (old.spec, old.status) != (budget.spec, budget.status)

    def remove(self, namespace: str, name: str) -> bool:
        """Remove a budget; True if it existed."""
        known = self._budgets.pop((namespace, name), None)
        if known is None:
            return False
        alike = self._requiring[_required(known)]
        del alike[name]
        if not alike:
            del self._requiring[_required(known)]
        return True

    def of(self, task: TaskInfo) -> list[PodDisruptionBudget]:
        """Budgets that protect a pod, by name."""
        if not self._budgets:
            return []
        labels = task.labels or {}
        ways = [(task.namespace,), *((task.namespace, *label) for label in labels.items())]
        near = [each for way in ways for each in self._requiring.get(way, {}).items()]
        return [
            budget
            for _, budget in sorted(near, key=itemgetter(0))
            if budget.spec.selector is not None and budget.spec.selector.matches(labels)
        ]


def _required(budget: PodDisruptionBudget) -> tuple[str, ...]:
    """The namespace of a budget, and the first label that its pods must have, if it names one with its value."""
    selector = budget.spec.selector
    first = min((selector.match_labels or {}).items(), default=()) if selector is not None else ()
    return (budget.metadata.namespace, *first)
