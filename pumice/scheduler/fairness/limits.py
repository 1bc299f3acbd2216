"""What keeps a queue from taking a pod: its capability, that of a queue above it, or what other queues are guaranteed.

The question is asked for every pod, so the limits of a queue are looked up once and compared as plain integers. A queue
is not limited by the size of the cluster: the nodes say better what they lack.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pumice.api.quantities import format_milli
from pumice.scheduler.fairness.entitlements import Entitlements
from pumice.scheduler.model.axis import CPU, SCORED_CPU, SCORED_MEMORY, Ints
from pumice.scheduler.model.jobs import Job
from pumice.scheduler.model.limits import UNLIMITED
from pumice.scheduler.model.tasks import Status, Task
from pumice.scheduler.results import Reason

__all__ = ["QueueLimits", "Use", "shown", "use_sentence"]

_TENTATIVE = (Status.ALLOCATED, Status.PIPELINED)


class _Limit(NamedTuple):
    """A capability on the path of a queue."""

    row: int
    column: int
    amount: int


class _Kept(NamedTuple):
    """What is guaranteed to siblings of a queue on the path.

    Attributes:
        row: The queue on the path.
        parent: The queue above it and the siblings; -1 at the top.
        siblings: Rows of the siblings with a guarantee.
        columns: Resources that they are guaranteed.
    """

    row: int
    parent: int
    siblings: Ints
    columns: tuple[int, ...]


class Use(NamedTuple):
    """How much of a limit is used.

    Attributes:
        resource: The resource.
        used: What is used, in the unit of its column.
        limit: What may be used.
        kept: What of the rest is kept for the guarantees of others.
        needs: What is needed.
        column: Column of the resource.
    """

    resource: str
    used: int
    limit: int
    kept: int
    needs: int
    column: int

    @property
    def left(self) -> int:
        """What may still be used."""
        return max(self.limit - self.used - self.kept, 0)


class QueueLimits:
    """Limits of queues, as they are used up by every decision of a session."""

    def __init__(
        self,
        names: Sequence[str],
        jobs: Mapping[str, Job],
        rights: Entitlements,
        held: Ints,
        total: Ints,
    ) -> None:
        """Limits of a session.

        Args:
            names: Names of queues by row.
            jobs: Jobs by key.
            rights: What the queues may have.
            held: What each queue holds, with those below it where queues are in a tree; follows every decision.
            total: What the cluster has, by column.
        """
        self._names = names
        self._jobs = jobs
        self._rights = rights
        self._held = held
        self._total = total
        self._limits: dict[int, tuple[_Limit, ...]] = {}
        self._kept: dict[int, tuple[_Kept, ...]] = {}
        self._guaranteed: dict[int, list[int]] = {}
        for row in np.flatnonzero(rights.guarantee.any(axis=1)).tolist():
            self._guaranteed.setdefault(rights.parents[row], []).append(row)
        self._top = [row for row, parent in enumerate(rights.parents) if parent < 0]
        self._said: dict[tuple[str, int, int, int, int], Reason] = {}

    # -- questions ---------------------------------------------------------------------------

    def why_not(self, row: int, task: Task) -> Reason | None:
        """Why a queue cannot take a pod."""
        refusal = self.why_over_capability(row, task)
        if refusal is not None or not self._guaranteed:
            return refusal
        vector, held, rights = task.shape.vector, self._held, self._rights
        for kept in self._kept_of(row):
            for column in kept.columns:
                asks = int(vector[column])
                if not asks or held[kept.row, column] + asks <= rights.guarantee[kept.row, column]:
                    continue
                unused = rights.guarantee[kept.siblings, column] - held[kept.siblings, column]
                reserve = int(np.maximum(unused, 0).sum())
                used, limit = self._above(kept.parent, column)
                if used + reserve + asks > limit:
                    return self._refusal(row, task, kept.parent, column, used, limit, reserve)
        return None

    def why_over_capability(self, row: int, task: Task, *, own: bool = False) -> Reason | None:
        """Why a pod would take a queue, or one above it, over its capability.

        Args:
            row: Row of the queue.
            task: The pod.
            own: Whether to look at the capability of the queue alone.
        """
        limit = self._exceeded(row, task)
        if limit is None or (own and limit.row != row):
            return None
        used = self._held.item(limit.row, limit.column)
        return self._refusal(row, task, limit.row, limit.column, used, limit.amount, reserve=0)

    def full_queue(self, row: int, task: Task) -> int | None:
        """Row of the first queue, from a queue upwards, that a pod would take over its capability."""
        limit = self._exceeded(row, task)
        return limit.row if limit is not None else None

    def _exceeded(self, row: int, task: Task) -> _Limit | None:
        limits = self._limits.get(row)
        if limits is None:
            limits = self._limits[row] = self._limits_of(row)
        vector, held = task.shape.vector, self._held
        for limit in limits:
            asks = vector.item(limit.column)
            if asks and held.item(limit.row, limit.column) + asks > limit.amount:
                return limit
        return None

    def _above(self, parent: int, column: int) -> tuple[int, int]:
        """What is used of what the children of a queue share, and what that is."""
        if parent < 0:
            return int(self._held[self._top, column].sum()), int(self._total[column])
        return int(self._held[parent, column]), int(self._rights.real[parent, column])

    # -- looking up --------------------------------------------------------------------------

    def _limits_of(self, row: int) -> tuple[_Limit, ...]:
        capability = self._rights.capability
        return tuple(
            _Limit(each, column, amount)
            for each in self._rights.paths[row]
            for column, amount in enumerate(capability[each].tolist())
            if amount < UNLIMITED and column not in (SCORED_CPU, SCORED_MEMORY)
        )

    def _kept_of(self, row: int) -> tuple[_Kept, ...]:
        found = self._kept.get(row)
        if found is None:
            found = self._kept[row] = tuple(self._siblings(self._rights.paths[row]))
        return found

    def _siblings(self, path: Sequence[int]) -> list[_Kept]:
        found = []
        for row in path:
            parent = self._rights.parents[row]
            siblings = [each for each in self._guaranteed.get(parent, ()) if each != row]
            if siblings:
                guarantee = self._rights.guarantee[siblings]
                columns = tuple(np.flatnonzero(guarantee.any(axis=0)).tolist())
                found.append(_Kept(row, parent, np.array(siblings), columns))
        return found

    # -- explaining --------------------------------------------------------------------------

    def _refusal(
        self, row: int, task: Task, at: int, column: int, used: int, limit: int, reserve: int
    ) -> Reason:
        """The reason of a refusal; the same for all pods of a gang that are refused in the same state."""
        key = (task.job, at, column, used, reserve)
        found = self._said.get(key)
        if found is None:
            name = next(need.name for need in task.shape.needs if need.column == column)
            tentative, needs = _of_gang(self._jobs.get(task.job), task, column)
            use = Use(name, used - tentative, limit, reserve, needs, column)
            found = self._said[key] = self.reason(row, at, use)
        return found

    def reason(self, row: int, at: int, use: Use) -> Reason:
        """The reason why a queue cannot have what it needs, because of itself or the queue `at` above it."""
        queue = self._names[row]
        limiting = self._names[at] if at >= 0 else ""
        where = f"queue {queue}"
        if not limiting:
            where += ": the cluster has"
        elif at != row:
            where += f": queue {limiting} above it has"
        else:
            where += ":"
        details = {
            "queue": queue,
            "limit": {
                "queue": limiting,
                "resource": use.resource,
                "used": shown(use.used, use.column),
                "limit": shown(use.limit, use.column),
                "guaranteedToOthers": shown(use.kept, use.column),
                "left": shown(use.left, use.column),
                "needs": shown(use.needs, use.column),
            },
        }
        causes = (queue, limiting, use.resource)
        return Reason("QueueLimit", f"{where} {use_sentence(use)}", details, causes)


def use_sentence(use: Use) -> str:
    """What is used, allowed and needed: `6 of 8 cpu used, 2 more allowed, needs 12`."""
    used, limit = shown(use.used, use.column), shown(use.limit, use.column)
    kept = (
        f", {shown(use.kept, use.column)} kept for guarantees of other queues" if use.kept else ""
    )
    left, needs = shown(use.left, use.column), shown(use.needs, use.column)
    return f"{used} of {limit} {use.resource} used{kept}, {left} more allowed, needs {needs}"


def shown(amount: int, column: int) -> str:
    """An amount of a column as the shortest quantity that is exact."""
    if column == CPU:
        return format_milli(amount)
    units = [
        f"{amount // size}{unit}"
        for base, prefixes in ((1024, ("", "Ki", "Mi", "Gi", "Ti")), (1000, ("k", "M", "G", "T")))
        for power, unit in enumerate(prefixes, int(base == 1000))
        if amount % (size := base**power) == 0 and amount >= size
    ]
    return min(units, key=len, default="0")


def _of_gang(job: Job | None, task: Task, column: int) -> tuple[int, int]:
    """What the gang of a pod has been given in this turn, and what it needs with that to become ready."""
    asks = int(task.shape.vector[column])
    if job is None:
        return 0, asks
    placed = sum(
        int(each.shape.vector[column]) for each in job.tasks.values() if each.status in _TENTATIVE
    )
    missing = job.min_member - job.ready - job.counts[Status.PIPELINED]
    waiting = sorted(
        (each for each in job.tasks.values() if each.status is Status.PENDING),
        key=lambda each: each.order,
    )
    needs = sum(int(each.shape.vector[column]) for each in waiting[: max(missing, 1)])
    return placed, placed + max(needs, asks)
