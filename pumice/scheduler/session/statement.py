"""Tentative decisions: each takes effect in the session immediately, and is sent only after `commit`.

`discard` undoes them in reverse order and restores every column and counter exactly; an evicted
pod gets back the status that it had, not always Running.
"""

from collections.abc import Callable, Container, Mapping, Sequence

from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.nodes import NodeRecord, NodeTable
from pumice.scheduler.model.rows import TouchedRows
from pumice.scheduler.model.tasks import (
    ALLOCATED,
    BINDING,
    PIPELINED,
    RELEASING,
    SchedulingStatus,
    TaskInfo,
)
from pumice.scheduler.points import Extension

Handlers = Sequence[Extension[Callable[[TaskInfo, NodeRecord], None]]]


Steps = Sequence[tuple[SchedulingStatus, TaskInfo, NodeRecord]]
"""Decisions in the order in which they were made: the status that a pod got, the pod and its node."""


class CommittedDecisions:
    """The decisions that were committed: they take effect when the session ends.

    Attributes:
        binds: Committed placements.
        evicted: Committed evictions.
        promises: Places promised for later; they end with the session.
    """

    def __init__(self) -> None:
        self.binds: dict[str, str] = {}
        self.evicted: list[str] = []
        self.promises: list[TaskInfo] = []


class Statement:
    """A list of decisions on the pods of one job, or for its sake."""

    def __init__(
        self,
        nodes: NodeTable,
        jobs: Mapping[str, JobInfo],
        touched: TouchedRows,
        committed: CommittedDecisions,
        on_allocate: Handlers,
        on_deallocate: Handlers,
    ) -> None:
        self._nodes = nodes
        self._jobs = jobs
        self._touched = touched
        self._committed = committed
        self._on_allocate = on_allocate
        self._on_deallocate = on_deallocate
        self._steps: list[tuple[SchedulingStatus, TaskInfo, NodeRecord, SchedulingStatus]] = []
        self._keys_taken = touched.keys_taken
        self._untold: set[str] = set()

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def placements(self) -> Mapping[str, str]:
        """Pods with a tentative place that is free, and the node."""
        return self._nodes_of(ALLOCATED)

    @property
    def promises(self) -> Mapping[str, str]:
        """Pods that are assigned to resources which a terminating pod releases, each with its node."""
        return self._nodes_of(PIPELINED)

    @property
    def victims(self) -> list[TaskInfo]:
        """Pods that are to leave their node."""
        return [task for status, task, _, _ in self._steps if status is RELEASING]

    def _nodes_of(self, wanted: SchedulingStatus) -> Mapping[str, str]:
        return {
            task.key: record.name for status, task, record, _ in self._steps if status is wanted
        }

    def allocate(self, task: TaskInfo, record: NodeRecord) -> None:
        """Assign a pending pod to free resources."""
        self._place(task, record, ALLOCATED)

    def pipeline(self, task: TaskInfo, record: NodeRecord) -> None:
        """Assign a pending pod to resources that terminating pods release."""
        self._touched.promises += 1
        self._place(task, record, PIPELINED)

    def evict(self, task: TaskInfo) -> None:
        """Mark a placed pod as evicted."""
        record = self._nodes.records[task.node]
        self._steps.append((RELEASING, task, record, task.status))
        self._touched.queue_epoch += 1
        self._touched.job_epoch += bool(task.job and self._jobs[task.job].is_waiting)
        self._touched.releases = True
        self._replace(task, record, RELEASING)
        self._tell(self._on_deallocate, task, record)

    def commit(self) -> None:
        """Commit the decisions."""
        for status, task, record, _ in self._steps:
            if status is ALLOCATED:
                # What its queue holds stays as it is.
                self._jobs[task.job].move(task, BINDING)
                self._committed.binds[task.key] = record.name
            elif status is PIPELINED:
                self._committed.promises.append(task)
            else:
                self._committed.evicted.append(task.key)
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
            if failures := self._undo_and_tell():
                raise failures[0]

    def promise_only(self, pods: Container[str]) -> None:
        """Promise some pods the places to which they are assigned, so that they are not bound; nothing has been evicted."""
        first = next(
            place
            for place, (status, task, _, _) in enumerate(self._steps)
            if status is ALLOCATED and task.key in pods
        )
        self.repeat(
            [
                (
                    PIPELINED if status is ALLOCATED and task.key in pods else status,
                    task,
                    record,
                )
                for status, task, record in self.cut(first)
            ]
        )

    def cut(self, savepoint: int) -> Steps:
        """Undo the decisions that were made after a savepoint; these, to be made again with `repeat`."""
        steps = [(status, task, record) for status, task, record, _ in self._steps[savepoint:]]
        self.roll_back(savepoint)
        return steps

    def repeat(self, steps: Steps) -> None:
        """Make decisions again that were undone, while nothing else has changed."""
        for status, task, record in steps:
            if status is ALLOCATED:
                self.allocate(task, record)
            elif status is PIPELINED:
                self.pipeline(task, record)
            else:
                self.evict(task)

    def give_up(self) -> None:
        """Undo the decisions after a plugin has failed; the others are told, so that nothing of them counts for other gangs."""
        self._check_keys(0)
        while self._steps:
            self._undo_and_tell()

    def abandon(self) -> None:
        """Undo the decisions at the end of the session, without calling plugins."""
        self._check_keys(0)
        while self._steps:
            self._undo()

    def _place(self, task: TaskInfo, record: NodeRecord, status: SchedulingStatus) -> None:
        self._steps.append((status, task, record, task.status))
        self._move(task, status)
        self._nodes.add(task, record)
        self._tell(self._on_allocate, task, record)

    def _tell(self, handlers: Handlers, task: TaskInfo, record: NodeRecord) -> None:
        """Tell plugins of the last decision; those that were not told because one failed are not told either that it is undone."""
        place = 0
        try:
            for place, handler in enumerate(handlers):  # noqa: B007 - read where one fails
                handler.call(task, record)
        except Exception:
            self._untold = {each.plugin for each in handlers[place:]}
            raise

    def _undo_and_tell(self) -> list[Exception]:
        """Undo the last decision, tell the plugins that know of it, and return what they raised."""
        status, task, record = self._undo()
        untold, self._untold = self._untold, set()
        failures = []
        for handler in self._on_allocate if status is RELEASING else self._on_deallocate:
            if handler.plugin not in untold:
                try:
                    handler.call(task, record)
                except Exception as error:
                    failures.append(error)
        return failures

    def _check_keys(self, savepoint: int) -> None:
        """Sort keys that were taken since the statement was begun may be too large once decisions are undone."""
        if len(self._steps) > savepoint and self._touched.keys_taken != self._keys_taken:
            self._keys_taken = self._touched.keys_taken
            self._touched.queue_epoch += 1
            self._touched.job_epoch += 1

    def _undo(self) -> tuple[SchedulingStatus, TaskInfo, NodeRecord]:
        status, task, record, before = self._steps.pop()
        if status is RELEASING:
            self._replace(task, record, before)
        else:
            self._nodes.discard(task)
            self._move(task, before)
        return status, task, record

    def _replace(self, task: TaskInfo, record: NodeRecord, status: SchedulingStatus) -> None:
        self._nodes.discard(task)
        self._move(task, status)
        self._nodes.add(task, record)

    def _move(self, task: TaskInfo, status: SchedulingStatus) -> None:
        if task.job:
            job = self._jobs[task.job]
            job.move(task, status)
            holder = job.holder(task) if job.elsewhere else job
            self._touched.queues.append(holder.queue)
        else:
            task.status = status
