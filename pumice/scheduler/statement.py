"""Tentative decisions: each one takes effect in the session at once, and leaves it only by `commit`.

`discard` undoes them in reverse order and restores every column and counter exactly; an evicted
pod gets back the status that it had, not always Running.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from pumice.scheduler.ledger import Ledger
from pumice.scheduler.model.jobs import Job
from pumice.scheduler.model.nodes import NodeRecord, NodeTable
from pumice.scheduler.model.tasks import Status, Task
from pumice.scheduler.points import Extension

__all__ = ["Decision", "Outbox", "Statement"]

Handlers = Sequence[Extension[Callable[[Task, NodeRecord], None]]]


class Decision(Enum):
    """What a statement can do to a pod."""

    ALLOCATE = "allocate"
    PIPELINE = "pipeline"
    EVICT = "evict"


class Outbox:
    """What leaves the session.

    Attributes:
        binds: Committed placements.
        evicted: Committed evictions.
        promises: Places promised for later; they end with the session.
    """

    __slots__ = ("binds", "evicted", "promises")

    def __init__(self) -> None:
        self.binds: dict[str, str] = {}
        self.evicted: list[str] = []
        self.promises: list[Task] = []


class Statement:
    """A list of decisions on the pods of one job, or for its sake."""

    __slots__ = (
        "_jobs",
        "_keys_taken",
        "_ledger",
        "_nodes",
        "_on_allocate",
        "_on_deallocate",
        "_outbox",
        "_steps",
    )

    def __init__(
        self,
        nodes: NodeTable,
        jobs: Mapping[str, Job],
        ledger: Ledger,
        outbox: Outbox,
        on_allocate: Handlers,
        on_deallocate: Handlers,
    ) -> None:
        self._nodes = nodes
        self._jobs = jobs
        self._ledger = ledger
        self._outbox = outbox
        self._on_allocate = on_allocate
        self._on_deallocate = on_deallocate
        self._steps: list[tuple[Decision, Task, NodeRecord, Status]] = []
        self._keys_taken = 0

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def placements(self) -> Mapping[str, str]:
        """Pods with a tentative place that is free, and the node."""
        return self._nodes_of(Decision.ALLOCATE)

    @property
    def promises(self) -> Mapping[str, str]:
        """Pods with a place that is about to become free, and the node."""
        return self._nodes_of(Decision.PIPELINE)

    @property
    def victims(self) -> list[Task]:
        """Pods that are to leave their node."""
        return [task for decision, task, _, _ in self._steps if decision is Decision.EVICT]

    def _nodes_of(self, wanted: Decision) -> Mapping[str, str]:
        return {
            task.key: record.name for decision, task, record, _ in self._steps if decision is wanted
        }

    def allocate(self, task: Task, record: NodeRecord) -> None:
        """Give a pending pod a place that is free."""
        if not self._steps:
            self._keys_taken = self._ledger.keys_taken
        self._steps.append((Decision.ALLOCATE, task, record, task.status))
        self._move(task, Status.ALLOCATED)
        self._nodes.add(task, record)
        self._ledger.log.append(record.row)
        for handler in self._on_allocate:
            handler.call(task, record)

    def pipeline(self, task: Task, record: NodeRecord) -> None:
        """Promise a pending pod a place that is about to become free."""
        if not self._steps:
            self._keys_taken = self._ledger.keys_taken
        self._steps.append((Decision.PIPELINE, task, record, task.status))
        self._ledger.promises += 1
        self._move(task, Status.PIPELINED)
        self._nodes.add(task, record)
        self._ledger.log.append(record.row)
        for handler in self._on_allocate:
            handler.call(task, record)

    def evict(self, task: Task) -> None:
        """Make a placed pod leave its node."""
        record = self._nodes.records[task.node]
        if not self._steps:
            self._keys_taken = self._ledger.keys_taken
        self._ledger.queue_epoch += 1
        self._ledger.job_epoch += bool(task.job and self._jobs[task.job].is_waiting)
        self._steps.append((Decision.EVICT, task, record, task.status))
        self._ledger.releases = True
        self._ledger.evictions += 1
        self._replace(task, record, Status.RELEASING)
        for handler in self._on_deallocate:
            handler.call(task, record)

    def commit(self) -> None:
        """Let the decisions leave the session."""
        for decision, task, record, _ in self._steps:
            if decision is Decision.ALLOCATE:
                self._move(task, Status.BINDING)
                self._outbox.binds[task.key] = record.name
            elif decision is Decision.PIPELINE:
                self._outbox.promises.append(task)
            else:
                self._outbox.evicted.append(task.key)
        self._steps.clear()

    def savepoint(self) -> int:
        """The decisions made so far, to return to with `roll_back`."""
        return len(self._steps)

    def discard(self) -> None:
        """Undo the decisions."""
        self.roll_back(0)

    def roll_back(self, savepoint: int) -> None:
        """Undo the decisions that were made after a savepoint."""
        self._check_keys(savepoint)
        while len(self._steps) > savepoint:
            decision, task, record = self._undo()
            told = self._on_allocate if decision is Decision.EVICT else self._on_deallocate
            for handler in told:
                handler.call(task, record)

    def abandon(self) -> None:
        """Undo the decisions without telling plugins, one of which has failed."""
        self._check_keys(0)
        while self._steps:
            self._undo()

    def _check_keys(self, savepoint: int) -> None:
        """Sort keys that were taken since the first decision may be too large once decisions are undone."""
        if len(self._steps) > savepoint and self._ledger.keys_taken != self._keys_taken:
            self._ledger.queue_epoch += 1
            self._ledger.job_epoch += 1

    def _undo(self) -> tuple[Decision, Task, NodeRecord]:
        decision, task, record, before = self._steps.pop()
        if decision is Decision.EVICT:
            self._replace(task, record, before)
        else:
            self._nodes.discard(task)
            self._move(task, before)
            self._ledger.log.append(record.row)
        return decision, task, record

    def _replace(self, task: Task, record: NodeRecord, status: Status) -> None:
        self._nodes.discard(task)
        self._move(task, status)
        self._nodes.add(task, record)
        self._ledger.log.append(record.row)

    def _move(self, task: Task, status: Status) -> None:
        if task.job:
            self._jobs[task.job].move(task, status)
        else:
            task.status = status
