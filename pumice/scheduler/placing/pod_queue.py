"""The pods of one gang in the order in which action allocate tries them, and what they need of one domain together."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from pumice.scheduler.model.free_room import least
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import PENDING, TaskInfo
from pumice.scheduler.session.node_ranking import GroupPart
from pumice.scheduler.session.session import Session

_SHAPES = 8
"""Shapes of which places are counted apart; of more, only those for the smallest of them are."""


class PodQueue:
    """The pods of a job that are still to be tried, in order.

    If an order changes while pods are placed, its plugins are called again for each pod. If placements of other pods
    may help a pod, by pod affinity or topology spread, it is tried again after them, and pods like it not before.
    """

    def __init__(
        self,
        session: Session,
        job: JobInfo,
        tasks: Iterable[TaskInfo],
        first: Callable[[TaskInfo], float] | None = None,
        among: Callable[[], Iterable[TaskInfo]] | None = None,
    ) -> None:
        """Put pods in the order of plugins, after a key that comes first; `among` are the pods of the job that wait, if these are not all."""
        self._session = session
        self._job = job
        self._among = among
        own = session.answers.task_key
        self._key = own if first is None else lambda task: (first(task), *own(task))
        self._is_moving = session.extensions.moving_task_order and first is None
        self._tasks = sorted(tasks, key=self._key, reverse=True)
        self._all = tuple(self._tasks)
        self._deferred: list[TaskInfo] = []
        self._without_node: set[Hashable] = set()
        self._is_last_round = False
        self._placed = False

    def __len__(self) -> int:
        return len(self._tasks) + len(self._deferred)

    def __bool__(self) -> bool:
        return bool(self._tasks or self._deferred)

    def waiting(self) -> Iterator[TaskInfo]:
        """The pods that have no place, also those that were tried."""
        return (task for task in self._all if task.status is PENDING)

    def left(self) -> Iterator[TaskInfo]:
        """The pods that are still to be tried, in no order."""
        return chain(self._tasks, self._deferred)

    def pop(self) -> TaskInfo:
        """The next pod to try."""
        if not self._tasks:
            self._tasks = self._deferred[::-1]
            self._deferred = []
            self._without_node.clear()
            self._is_last_round = not self._placed
            self._placed = False
        if self._is_moving:
            self._tasks.sort(key=self._key, reverse=True)
        return self._tasks.pop()

    def defer(self, task: TaskInfo) -> bool:
        """Queue a pod without a node to be tried again after the others; False if their placements cannot help it."""
        rules = task.shape.peers
        if rules is None or not rules.may_be_helped or self._is_last_round:
            return False
        self._deferred.append(task)
        self._without_node.add(self._session.alike(task))
        return True

    def defer_with_others(self, task: TaskInfo) -> bool:
        """Queue a pod too if one like it was queued and nothing has been placed since; False otherwise."""
        if not self._without_node or self._session.alike(task) not in self._without_node:
            return False
        self._deferred.append(task)
        return True

    def group(self, task: TaskInfo) -> list[GroupPart]:
        """Pods that the job still needs and that have the same required pod affinity as this one, including it, by shape."""
        near = task.shape.peers
        alike = [task]
        alike += [
            other
            for other in (self._among or self.left)()
            if other is not task
            and (
                other.shape is task.shape
                or ((rules := other.shape.peers) and near and rules.affinity == near.affinity)
            )
        ]
        needed = max(min(len(alike), self._job.lacking), 1)
        return group_parts(self._session, self._job.queue, alike, needed)

    def placed(self) -> None:
        """Note that a pod was placed."""
        self._placed = True
        self._is_last_round = False
        self._without_node.clear()


def group_parts(
    session: Session, queue: str, pods: Sequence[TaskInfo], required: int
) -> list[GroupPart]:
    """Places that so many of some pods need in one domain: first for any of them, then for those of each shape."""
    firsts = {task.shape: task for task in reversed(pods)}
    if len(firsts) < 2:
        return [
            GroupPart(shape, least((shape,)), session.suiting(task, queue), required)
            for shape, task in firsts.items()
        ]
    counts = Counter([task.shape for task in pods])
    shapes = tuple(counts)
    masks = [session.suiting(firsts[shape], queue) for shape in shapes[:_SHAPES]]
    either = np.logical_or.reduce(masks) if len(shapes) <= _SHAPES else np.ones_like(masks[0])
    others = len(pods) - required
    alone = [
        GroupPart(shape, least((shape,)), mask, counts[shape] - others)
        for shape, mask in zip(shapes, masks, strict=False)
        if counts[shape] > others
    ]
    return [GroupPart(None, least(shapes), either, required), *alone]
