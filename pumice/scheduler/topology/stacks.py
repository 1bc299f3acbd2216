"""Stacks: what a node needs for one pod of a bucket, for it and one more, and so on.

Jobs of one kind have the same stacks again and again, so they are kept for a session.
"""

from collections.abc import Callable, Sequence

import numpy as np

from pumice.scheduler.model.axis import SCORED_CPU, SCORED_MEMORY, Ints
from pumice.scheduler.model.nodes import Rows
from pumice.scheduler.model.tasks import Task

__all__ = ["Stack", "Stacks", "balanced"]

Kind = tuple[str, int]
"""Task in the job and number of the shape: all that matters about a pod here."""


class Stack:
    """A pod and the others of its bucket, in the order in which they are kept.

    Attributes:
        height: Pods in it.
    """

    __slots__ = ("_columns", "height")

    def __init__(self, vectors: Sequence[Ints]) -> None:
        sums: Ints = np.cumsum(np.stack(vectors), axis=0)
        self.height = len(vectors)
        self._columns = [
            (column, np.ascontiguousarray(sums[:, column]))
            for column in np.flatnonzero(sums[-1]).tolist()
            if column not in (SCORED_CPU, SCORED_MEMORY)
        ]

    def fitting(self, rows: Rows) -> Ints:
        """How many pods of the stack each node has room for, terminating pods not counted."""
        fitting: Ints = np.full(len(rows), self.height, dtype=np.int64)
        for column, sums in self._columns:
            room = rows.idle(column) + rows.releasing[:, column]
            np.minimum(fitting, sums.searchsorted(room, side="right"), out=fitting)
        return fitting


class Stacks:
    """The stacks of a session."""

    __slots__ = ("_stacks",)

    def __init__(self) -> None:
        self._stacks: dict[tuple[Kind, tuple[Kind, ...]], Stack] = {}

    def of(self, task: Task, others: Sequence[Task], role_of: Callable[[Task], str]) -> Stack:
        """The stack of a pod.

        Args:
            task: The pod, which is kept in any case.
            others: The rest of its bucket, in the order of placing.
            role_of: Task of a pod.
        """
        kind = (role_of(task), task.shape.number)
        key = (kind, tuple([(role_of(other), other.shape.number) for other in others]))
        stack = self._stacks.get(key)
        if stack is None:
            kept = balanced(others, role_of, kind[0])
            vectors = [task.shape.vector, *(other.shape.vector for other in kept)]
            stack = self._stacks[key] = Stack(vectors)
        return stack


def balanced(tasks: Sequence[Task], role_of: Callable[[Task], str], kept_role: str) -> list[Task]:
    """Pods in the order in which they are kept when a bucket does not fit on a node.

    One is left out after the other, from the task that has most of them left, so that what remains is as mixed
    as the bucket. (Volcano leaves out any.)

    Args:
        tasks: Pods that may be left out.
        role_of: Task of a pod.
        kept_role: Task of the pod that is kept in any case.
    """
    left: dict[str, list[Task]] = {}
    for task in tasks:
        left.setdefault(role_of(task), []).append(task)
    places = {role: place for place, role in enumerate(left)}
    dropped: list[Task] = []
    while left:
        role = max(left, key=lambda role: (len(left[role]) + (role == kept_role), places[role]))
        dropped.append(left[role].pop())
        if not left[role]:
            del left[role]
    return dropped[::-1]
