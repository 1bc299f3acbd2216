"""Buckets: groups of pods for one node (`docs/design/task-topology-plugin.md` of Volcano).

A pod goes into the bucket that attracts it most, of equals into the lighter one, and into a new one if all of
them repel it. Pods that are placed already make a bucket of their node.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from pumice.api.quantities import MILLI
from pumice.scheduler.buckets.task_rules import NONE, TopologyRules
from pumice.scheduler.model.axis import CPU, MEMORY, PODS
from pumice.scheduler.model.tasks import ALLOCATED_LIKE, Natural, SchedulingStatus, TaskInfo

_MEBIBYTE = 1024 * 1024


class Bucket(msgspec.Struct):
    """Pods that are meant for one node.

    Attributes:
        index: Number in the order of opening, from 0.
        roles: How many pods of each task are in it.
        members: Those that had no place when the session opened, in the order of placing.
        pending: Those of them that still have none.
        placed: How many pods of each task have a place, by node.
        weight: Size of the waiting ones, for balance between buckets.
        size: Pods that were in it when the session opened.
    """

    index: int
    roles: Counter[str] = msgspec.field(default_factory=Counter)
    members: list[TaskInfo] = msgspec.field(default_factory=list)
    pending: dict[str, TaskInfo] = msgspec.field(default_factory=dict)
    placed: dict[str, Counter[str]] = msgspec.field(default_factory=dict)
    weight: float = 0.0
    size: int = 0


Mix = tuple[tuple[str, int], ...]
"""Tasks in a bucket, each with the number of its pods."""


class Buckets:
    """The buckets of a job for one session.

    Attributes:
        attraction: Which tasks should be with, or not with, which others.
        all: Buckets in the order of opening.
        largest: Pods in the largest one.
        placed: How many pods of each task the job has on each node.
    """

    def __init__(
        self,
        rules: TopologyRules,
        tasks: Iterable[TaskInfo],
        role_of: Callable[[TaskInfo], str],
        *,
        outside: Iterable[str] = (),
        as_volcano: bool = False,
    ) -> None:
        """Build the buckets of pods, without the tasks `outside`.

        With `as_volcano`, `w-10` comes before `w-2`, and pods that were placed before this session do not count as repelling others.
        """
        self.role_of = role_of
        self.attraction = rules.attraction()
        self._wary = {role for role, _ in self.attraction.apart}
        left_out = set(outside)
        self._types = {role: kind for role, kind in rules.types().items() if role not in left_out}
        self._ranks = {role: rank for rank, role in reversed(list(enumerate(rules.order)))}
        self._unranked = len(rules.order)
        self._bucket_of: dict[str, Bucket] = {}
        self._mixes: dict[Mix, list[tuple[float, int]]] = {}
        self._draws: dict[tuple[str, Mix], int] = {}
        self.all: list[Bucket] = []
        self.placed: dict[str, Counter[str]] = {}
        self._build(tasks, as_volcano=as_volcano)
        self.largest = max((bucket.size for bucket in self.all), default=0)

    def _build(self, tasks: Iterable[TaskInfo], *, as_volcano: bool) -> None:
        def by_name(task: TaskInfo) -> Natural:
            return (task.name,) if as_volcano else task.order[2]

        counted = [task for task in tasks if task.status in _COUNTED]
        for task in counted:
            if task.node and not as_volcano:
                _note(self.placed, task.node, self.role_of(task), 1)
        members = sorted(
            (task for task in counted if self.role_of(task) in self._types),
            key=lambda task: (
                not task.node,
                task.node,
                self.rank(task),
                -self.type(task),
                by_name(task),
            ),
        )
        of_node: dict[str, Bucket] = {}
        for task in members:
            if task.node:
                bucket = of_node.get(task.node) or self._open()
                of_node[task.node] = bucket
                _note(bucket.placed, task.node, self.role_of(task), 1)
            else:
                if not self._mixes:
                    for each in self.all:
                        self._line_up(each)
                bucket = self._choose(self.role_of(task))
                bucket.members.append(task)
                bucket.pending[task.key] = task
                bucket.weight += weight_of(task)
            bucket.roles[self.role_of(task)] += 1
            if not task.node:
                self._line_up(bucket)
            bucket.size += 1
            self._bucket_of[task.key] = bucket

    def _open(self) -> Bucket:
        bucket = Bucket(len(self.all))
        self.all.append(bucket)
        return bucket

    def _line_up(self, bucket: Bucket) -> None:
        """Put a bucket among those with the same tasks, the lightest first."""
        mix = tuple(sorted(bucket.roles.items()))
        heapq.heappush(self._mixes.setdefault(mix, []), (bucket.weight, bucket.index))

    def _choose(self, role: str) -> Bucket:
        """Take the bucket for a pod of a task out of its line.

        Buckets with the same tasks are equally attractive, so only the lightest of them is looked at.
        """
        best: tuple[int, float, int] | None = None
        chosen: Mix = ()
        for mix, line in self._mixes.items():
            draw = self._draws.get((role, mix))
            if draw is None:
                draw = self._draws[role, mix] = self.attraction.of(role, dict(mix))
            rank = (-draw, *line[0])
            if best is None or rank < best:
                best, chosen = rank, mix
        if best is None or best[0] > 0:
            return self._open()
        line = self._mixes[chosen]
        _, index = heapq.heappop(line)
        if not line:
            del self._mixes[chosen]
        return self.all[index]

    # -- queries ---------------------------------------------------------------------------

    def of(self, task: TaskInfo) -> Bucket | None:
        """The bucket of a pod; None for one that is in none."""
        return self._bucket_of.get(task.key)

    def rank(self, task: TaskInfo) -> int:
        """Place of a pod's task in the order that the user gave; unlisted ones come last."""
        return self._ranks.get(self.role_of(task), self._unranked)

    def type(self, task: TaskInfo) -> int:
        """Type of a pod's task, the stronger the higher."""
        return self._types.get(self.role_of(task), NONE)

    def is_repelled(self, role: str) -> bool:
        """Whether pods of a task should not be with those of any other."""
        return role in self._wary

    def repels(self, role: str, other: str) -> bool:
        """Whether pods of a task should not be with those of another one."""
        return (role, other) in self.attraction.apart

    def others(self, task: TaskInfo, bucket: Bucket) -> list[TaskInfo]:
        """Pods of a bucket that wait beside a pod, in the order of placing."""
        pending = bucket.pending
        return [each for each in bucket.members if each.key in pending and each is not task]

    # -- placements --------------------------------------------------------------------------

    def place(self, task: TaskInfo, node: str) -> None:
        """Count a pod as placed on a node."""
        role = self.role_of(task)
        _note(self.placed, node, role, 1)
        bucket = self.of(task)
        if bucket is None:
            return
        if bucket.pending.pop(task.key, None) is not None:
            bucket.weight -= weight_of(task)
        _note(bucket.placed, node, role, 1)

    def take_back(self, task: TaskInfo, node: str) -> None:
        """Undo `place`; also for a pod that leaves its node for good."""
        role = self.role_of(task)
        _note(self.placed, node, role, -1)
        bucket = self.of(task)
        if bucket is None:
            return
        _note(bucket.placed, node, role, -1)
        if task.status is SchedulingStatus.PENDING:
            bucket.pending[task.key] = task
            bucket.weight += weight_of(task)


def _note(placed: dict[str, Counter[str]], node: str, role: str, step: int) -> None:
    roles = placed.get(node)
    if roles is None:
        roles = placed[node] = Counter()
    roles[role] += step


_COUNTED = ALLOCATED_LIKE | {SchedulingStatus.PENDING, SchedulingStatus.PIPELINED}
"""Pods that are, or will be, on a node; the terminating and the finished are not waited for."""


def weight_of(task: TaskInfo) -> float:
    """Size of a pod: milli-CPU, memory in MiB, one for the pod, and milli-units of everything else."""
    total = 0.0
    for need in task.shape.needs:
        if need.column == MEMORY:
            total += need.amount / _MEBIBYTE
        elif need.column in (CPU, PODS):
            total += need.amount
        else:
            total += need.amount * MILLI
    return total
