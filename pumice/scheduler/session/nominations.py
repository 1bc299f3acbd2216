"""Resources that are held for pods for which others were evicted in earlier cycles.

A session holds this room on the nominated node, so that other pods do not take it while the evicted ones terminate. When a
gang has its turn, what is held for its own pods is free for it. As long as it is below its minimum, so is what is held for
gangs of its queue that have a lower priority; what it is promised there is held for it from then on. What was taken back from
another queue is never free for that queue, or it would be taken back again and again.

A nomination ends when its pod gets a node, when its gang had its turn and the pod was neither placed nor promised a place
again, or when the node has no such room any more.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.nodes import NodeTable
from pumice.scheduler.model.rows import TouchedRows
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo

_NOTHING = nullcontext()


class Nominations:
    """Resources that are held in one session."""

    def __init__(
        self,
        nominees: Iterable[TaskInfo],
        jobs: Mapping[str, JobInfo],
        nodes: NodeTable,
        touched: TouchedRows,
    ) -> None:
        """Hold what pods were nominated for."""
        self._jobs = jobs
        self._nodes = nodes
        self._touched = touched
        self._tasks = sorted(nominees, key=lambda task: task.key)
        self._held: dict[str, dict[TaskInfo, int]] = {}
        self._had_turn: set[str] = set()
        self._takers: dict[str, None] = {}
        for task in self._tasks:
            self._hold(task)

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def row(self, task: TaskInfo) -> int:
        """Row of the node for which a pod is nominated; -1 for none."""
        return self._nodes.row_of(task.nominated)

    def lifted(self, job: JobInfo) -> AbstractContextManager[None]:
        """The turn of a gang, in which it may use resources that are held for it."""
        return self._lifted(job) if self._tasks else _NOTHING

    def close(self, promised: Mapping[str, str], added: Collection[str]) -> dict[str, str]:
        """Release everything; returns changed nominations, pod to node, empty for none.

        Args:
            promised: Pods that are promised a place at the end of the session, and the node.
            added: Those of them for which this session has evicted others.
        """
        if not (self._tasks or added):
            return {}
        held = {task.key for tasks in self._held.values() for task in tasks}
        for tasks in self._held.values():
            for task, row in tasks.items():
                self._nodes.promise(task.shape.vector, row, -1)
        self._held.clear()
        changed = {key: promised[key] for key in added}
        for gang in self._takers:
            for key, task in self._jobs[gang].tasks.items():
                if key in promised and promised[key] != task.nominated:
                    changed[key] = promised[key]
        for task in self._tasks:
            if task.status is not SchedulingStatus.PENDING and task.key not in promised:
                continue  # it has a node
            if task.key in promised:
                if promised[task.key] != task.nominated:
                    changed[task.key] = promised[task.key]
            elif task.job in self._had_turn or task.key not in held:
                changed[task.key] = ""
        self._tasks = []
        return changed

    @contextmanager
    def _lifted(self, job: JobInfo) -> Iterator[None]:
        self._had_turn.add(job.key)
        others = [key for key in self._held if key != job.key and self._may_take(job, key)]
        own = [job.key] if job.key in self._held else []
        lifted = [task for key in own + others for task in self._release(key)]
        if others:
            self._takers[job.key] = None
        try:
            yield
        finally:
            for task in lifted:
                if task.status is SchedulingStatus.PENDING:
                    self._hold(task)

    def _may_take(self, job: JobInfo, other: str) -> bool:
        held = self._jobs[other]
        return job.is_short and job.queue == held.queue and held.order_priority < job.order_priority

    def _hold(self, task: TaskInfo) -> None:
        row = self.row(task)
        if row < 0 or not self._has_room(task, row):
            return
        self._nodes.promise(task.shape.vector, row, 1)
        self._touched.promises += 1
        self._held.setdefault(task.job, {})[task] = row

    def _has_room(self, task: TaskInfo, row: int) -> bool:
        free = self._nodes.future_idle(row)
        return all(free[need.column] >= need.amount for need in task.shape.needs)

    def _release(self, key: str) -> list[TaskInfo]:
        tasks = self._held.pop(key)
        for task, row in tasks.items():
            self._nodes.promise(task.shape.vector, row, -1)
        return list(tasks)
