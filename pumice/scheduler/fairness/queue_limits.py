"""Limits that keep a queue from taking a pod: its capability, that of a queue above it, or guarantees of other queues.

The check runs for every pod, so the limits of a queue are looked up once and compared as plain integers, and what is kept for
guarantees is updated with every decision. The size of the cluster is not checked here: messages about nodes are more precise.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pumice.scheduler.explain.deficits import Deficit, deficit_text, demand, refusal
from pumice.scheduler.fairness.entitlements import Entitlements
from pumice.scheduler.model.axis import SCORED_CPU, SCORED_MEMORY, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.queue_specs import UNLIMITED
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.results import Reason


class LimitReached(NamedTuple):
    """What keeps a queue from taking something.

    Attributes:
        at: Row of the queue whose limit it is, or whose children share what it may have; -1 for the cluster.
        column: Column of the resource.
        used: How much of it is used there.
        limit: How much of it there may be.
        reserve: How much of the rest is kept for others, to which it is guaranteed.
    """

    at: int
    column: int
    used: int
    limit: int
    reserve: int


class Guarantees:
    """Unused guarantees, updated by the decisions of a session."""

    def __init__(self, rights: Entitlements, held: Ints, total: Ints) -> None:
        """Guarantees at the beginning of a session; what queues hold, with those below them in a tree, follows every decision."""
        self._rights = rights
        self._held = held
        self._total = total
        self._unused: Ints = np.maximum(rights.guarantee - held, 0)
        above = np.array(rights.parents, dtype=np.int64)
        self._kept: Ints = np.zeros((len(held) + 1, held.shape[1]), dtype=np.int64)
        np.add.at(self._kept, above, self._unused)  # the last row is for queues at the top
        self._top: Ints = np.flatnonzero(above < 0)
        self._top_away: Ints = rights.away[self._top].sum(axis=0)
        named: dict[int, Ints] = {}
        for row in np.flatnonzero(rights.guarantee.any(axis=1)).tolist():
            parent = rights.parents[row]
            named[parent] = named.get(parent, 0) + rights.guarantee[row]
        self._columns = {
            parent: tuple(np.flatnonzero(amounts).tolist()) for parent, amounts in named.items()
        }

    def __bool__(self) -> bool:
        return bool(self._columns)

    def note(self, row: int) -> None:
        """Update the amounts that a queue holds."""
        guarantee, held = self._rights.guarantee, self._held
        for each in self._rights.paths[row]:
            parent = self._rights.parents[each]
            for column in self._columns.get(parent, ()):
                unused = max(guarantee.item(each, column) - held.item(each, column), 0)
                change = unused - self._unused.item(each, column)
                if change:
                    self._kept[parent, column] += change
                    self._unused[each, column] = unused

    def against(self, row: int, vector: Ints) -> LimitReached | None:
        """Amounts that are kept for others and keep a queue from taking an amount."""
        guarantee, held = self._rights.guarantee, self._held
        for each in self._rights.paths[row]:
            for column in self._columns.get(self._rights.parents[each], ()):
                asks = vector.item(column)
                if not asks or held.item(each, column) + asks <= guarantee.item(each, column):
                    continue
                kept = self._of(each, column)
                if kept.reserve and kept.used + kept.reserve + asks > kept.limit:
                    return kept
        return None

    def narrow(self, row: int, room: Ints) -> None:
        """Lower what a queue may still take, by column, to what is not kept for others."""
        for each in self._rights.paths[row]:
            for column in self._columns.get(self._rights.parents[each], ()):
                kept = self._of(each, column)
                if kept.reserve:
                    own = self._unused.item(each, column)
                    free = max(own, kept.limit - kept.used - kept.reserve)
                    room[column] = min(room.item(column), free)

    def _of(self, row: int, column: int) -> LimitReached:
        parent = self._rights.parents[row]
        reserve = self._kept.item(parent, column) - self._unused.item(row, column)
        if parent < 0:
            used = int(self._held[self._top, column].sum()) - self._top_away.item(column)
            limit = self._total.item(column)
        else:
            used, limit = self._held.item(parent, column), self._rights.real.item(parent, column)
            if limit < self._rights.capability.item(parent, column):
                away = self._rights.away.item(parent, column)
                used, limit = used - away, limit - away
        return LimitReached(parent, column, used, limit, reserve)


class QueueCapability(NamedTuple):
    """A capability on the path of a queue."""

    row: int
    column: int
    amount: int


class PathLimits:
    """Limits of queues and of the queues above, updated by the decisions of a session."""

    def __init__(
        self,
        names: Sequence[str],
        jobs: Mapping[str, JobInfo],
        rights: Entitlements,
        held: Ints,
        total: Ints,
    ) -> None:
        """Limits of a session; what queues hold, with those below them in a tree, follows every decision."""
        self.guarantees = Guarantees(rights, held, total)
        self._names = names
        self._jobs = jobs
        self._rights = rights
        self._held = held
        self._limits: dict[int, tuple[QueueCapability, ...]] = {}
        self._paths: dict[int, tuple[Ints, Ints]] = {}
        self._said: dict[tuple[str, int, int, int, int], Reason] = {}

    # -- queries ---------------------------------------------------------------------------

    def why_not(self, row: int, task: TaskInfo) -> Reason | None:
        """Why a queue cannot take a pod."""
        refused = self.why_over_capability(row, task)
        if refused is not None or not self.guarantees:
            return refused
        kept = self.guarantees.against(row, task.shape.vector)
        return self._refusal(row, task, kept) if kept is not None else None

    def why_over_capability(self, row: int, task: TaskInfo, *, own: bool = False) -> Reason | None:
        """Why a pod would take a queue over its capability, or unless only its `own` counts, a queue above it."""
        limit = self.exceeded(row, task)
        if limit is None or (own and limit.row != row):
            return None
        used = self._held.item(limit.row, limit.column)
        reached = LimitReached(limit.row, limit.column, used, limit.amount, reserve=0)
        return self._refusal(row, task, reached)

    def room(self, row: int) -> Ints:
        """What a queue may still take, by column."""
        found = self._paths.get(row)
        if found is None:
            path = np.array(self._rights.paths[row], dtype=np.int64)
            found = self._paths[row] = path, self._rights.capability[path]
        path, limits = found
        room: Ints = (limits - self._held[path]).min(axis=0)
        if self.guarantees:
            self.guarantees.narrow(row, room)
        return room

    def exceeded(
        self, row: int, task: TaskInfo, leaving: Ints | None = None
    ) -> QueueCapability | None:
        """The capability of the nearest queue, from this queue upwards, that a pod would exceed besides what the queue holds, and `leaving`."""
        limits = self._limits.get(row)
        if limits is None:
            limits = self._limits[row] = self._limits_of(row)
        vector, held = task.shape.vector, self._held
        for limit in limits:
            asks = vector.item(limit.column)
            if asks:
                if leaving is not None:
                    asks += leaving.item(limit.row, limit.column)
                if held.item(limit.row, limit.column) + asks > limit.amount:
                    return limit
        return None

    def _limits_of(self, row: int) -> tuple[QueueCapability, ...]:
        capability = self._rights.capability
        return tuple(
            QueueCapability(each, column, amount)
            for each in self._rights.paths[row]
            for column, amount in enumerate(capability[each].tolist())
            if amount < UNLIMITED and column not in (SCORED_CPU, SCORED_MEMORY)
        )

    # -- explaining --------------------------------------------------------------------------

    def _refusal(self, row: int, task: TaskInfo, reached: LimitReached) -> Reason:
        """The reason of a refusal; all pods of a gang that are refused in the same state share it."""
        at, column, used, limit, reserve = reached
        key = (task.job, at, column, used, reserve)
        found = self._said.get(key)
        if found is None:
            name = next(need.name for need in task.shape.needs if need.column == column)
            held, needs = demand(self._jobs[task.job], task)
            deficit = Deficit(name, used - held.item(column), limit, needs.item(column), reserve)
            found = self._said[key] = self.reason(row, at, [deficit])
        return found

    def reason(
        self,
        row: int,
        at: int,
        shortages: Sequence[Deficit],
        used: str = "used",
        start: str = "",
        end: str = "",
    ) -> Reason:
        """The reason why a queue cannot have what it needs, because of itself or the queue `at` above it.

        Args:
            row: Row of the queue.
            at: Row of the queue whose limit it is; -1 for the cluster.
            shortages: What is missing.
            used: How what counts against the limit is called.
            start: What the message begins with, in Volcano's wording.
            end: What more there is to say.
        """
        queue = self._names[row]
        limiting = self._names[at] if at >= 0 else ""
        where = f"queue {queue}:"
        if not limiting:
            where += " the cluster has"
        elif at != row:
            where += f" queue {limiting} above it has"
        plain = f"{where} {deficit_text(shortages, used)}" + (f"; {end}" if end else "")
        return refusal(f"{start}{plain}", shortages, plain, queue=queue, limitedBy=limiting)
