"""Stacks: what a node needs for one pod of a bucket, for it and one more, and so on.

Jobs of one kind have the same stacks again and again, so they are kept for a session, and how much of the last ones
fits on which node is kept current.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np

from pumice.scheduler.model.axis import SCORED_CPU, SCORED_MEMORY, Floats, Ints
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.tasks import TaskInfo

Kind = tuple[str, int]
"""Task in the job and number of the shape: all that matters about a pod here."""


_COLUMNS = 64
"""Stacks whose column is kept."""

_FEW = 4
"""Touched rows up to which they are looked at one by one."""

_MANY = 64
"""Touched rows from which on the whole column is computed again."""


class Stack:
    """A pod and the others of its bucket, in the order in which they are kept.

    Attributes:
        height: Pods in it.
        column: How many of its pods each node had room for when `seen` rows had been touched; None where that is not kept.
        seen: See `column`.
    """

    def __init__(self, vectors: Sequence[Ints]) -> None:
        sums: Ints = np.cumsum(np.stack(vectors), axis=0)
        self.height = len(vectors)
        self.column: Floats | None = None
        self.seen = 0
        self._columns = [
            (column, np.ascontiguousarray(sums[:, column]))
            for column in np.flatnonzero(sums[-1]).tolist()
            if column not in (SCORED_CPU, SCORED_MEMORY)
        ]
        self._lists = [(column, sums.tolist()) for column, sums in self._columns]

    def fitting(self, rows: Rows) -> Ints:
        """How many pods of the stack each node has room for, terminating pods not counted."""
        fitting: Ints = np.full(len(rows), self.height, dtype=np.int64)
        for column, sums in self._columns:
            room = rows.idle(column) + rows.releasing[:, column]
            np.minimum(fitting, sums.searchsorted(room, side="right"), out=fitting)
        return fitting

    def follow(self, rows: Rows, touched: Sequence[int]) -> Floats:
        """`fitting` for all rows, of which some have been touched since it was last asked for; to be read only."""
        seen, self.seen = self.seen, len(touched)
        if self.column is None or self.seen - seen > _MANY:
            self.column = self.fitting(rows).astype(np.float64)
            return self.column
        several = dict.fromkeys(touched[seen:])
        if len(several) > _FEW:
            index = np.array(list(several), dtype=np.int64)
            self.column[index] = self.fitting(rows.take(index))
        else:
            for row in several:
                self.column[row] = self._fitting_on(rows, row)
        return self.column

    def _fitting_on(self, rows: Rows, row: int) -> int:
        """`fitting` for one row, without the price of columns."""
        has, used, releasing = (
            amounts[row].tolist() for amounts in (rows.allocatable, rows.used, rows.releasing)
        )
        return min(
            [
                bisect_right(sums, has[column] - used[column] + releasing[column])
                for column, sums in self._lists
            ],
            default=self.height,
        )


class Stacks:
    """The stacks of a session."""

    def __init__(self) -> None:
        self._stacks: dict[tuple[Kind, tuple[Kind, ...]], Stack] = {}
        self._kept: dict[Stack, None] = {}

    def column(self, stack: Stack, rows: Rows, touched: Sequence[int]) -> Floats:
        """How many pods of a stack each node has room for, after `touched` rows have changed; to be read only."""
        self._kept.pop(stack, None)
        self._kept[stack] = None
        if len(self._kept) > _COLUMNS:
            oldest = next(iter(self._kept))
            oldest.column = None
            del self._kept[oldest]
        return stack.follow(rows, touched)

    def of(
        self, task: TaskInfo, others: Sequence[TaskInfo], role_of: Callable[[TaskInfo], str]
    ) -> Stack:
        """The stack of a pod, which is kept in any case, and the rest of its bucket in the order of placing."""
        kind = (role_of(task), task.shape.number)
        key = (kind, tuple([(role_of(other), other.shape.number) for other in others]))
        stack = self._stacks.get(key)
        if stack is None:
            kept = balanced(others, role_of, kind[0])
            vectors = [task.shape.vector, *(other.shape.vector for other in kept)]
            stack = self._stacks[key] = Stack(vectors)
        return stack


def balanced(
    tasks: Sequence[TaskInfo], role_of: Callable[[TaskInfo], str], kept_role: str
) -> list[TaskInfo]:
    """Pods in the order in which they are kept beside one of a task when a bucket does not fit on a node.

    One is left out after the other, from the task that has most of them left, so that what remains is as mixed
    as the bucket. (Volcano leaves out any.)
    """
    left: dict[str, list[TaskInfo]] = {}
    for task in tasks:
        left.setdefault(role_of(task), []).append(task)
    places = {role: place for place, role in enumerate(left)}
    dropped: list[TaskInfo] = []
    while left:
        role = max(left, key=lambda role: (len(left[role]) + (role == kept_role), places[role]))
        dropped.append(left[role].pop())
        if not left[role]:
            del left[role]
    return dropped[::-1]
