"""What is placed as a whole within a gang that has sub-groups, in the order in which action allocate serves it.

First come the sub-groups that the gang requires: of each policy one after the other, until it has its minimum. Then pods that
are in no sub-group, each for itself; then the other sub-groups; then, each for itself, pods that complete sub-groups have beyond
their size. A sub-group that finds no place is passed over, so that the next one of its policy is required.
"""

import heapq
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence

from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.sub_groups import SubGroup
from pumice.scheduler.model.tasks import PENDING, PIPELINED, TaskInfo
from pumice.scheduler.placing.pod_queue import PodQueue
from pumice.scheduler.session.session import Session

_HOPEFUL = (PENDING, PIPELINED)


class Unit:
    """Pods that are placed together, or one by one.

    Attributes:
        sub_group: Their sub-group; None for pods that are in none, each of which is placed for itself.
        tasks: Those that are still to be tried.
        kind: Equal for units of which the nodes take all or none; None if that is not known.
    """

    def __init__(self, sub_group: SubGroup | None, tasks: PodQueue) -> None:
        self.sub_group = sub_group
        self.tasks = tasks
        self.kind: Hashable = None

    @property
    def place(self) -> int:
        """Place of its policy in the list."""
        assert self.sub_group is not None
        return self.sub_group.of.place

    @property
    def is_whole(self) -> bool:
        """Whether its pods are placed together: those of a sub-group that is not promised its size."""
        return self.sub_group is not None and not self.sub_group.is_pipelined

    @property
    def may_be_whole(self) -> bool:
        """Whether the pods that are left are enough for the sub-group to have its size."""
        group = self.sub_group
        return group is None or group.ready + group.pipelined + len(self.tasks) >= group.size

    def __lt__(self, other: "Unit") -> bool:
        """Whether it comes before another sub-group that the gang requires as much; neither gets places meanwhile."""
        assert self.sub_group is not None
        assert other.sub_group is not None
        return self.sub_group.turn < other.sub_group.turn


class Units:
    """The units of a gang that are still to be tried, while room only becomes less."""

    def __init__(self, session: Session, job: JobInfo, tasks: Iterable[TaskInfo]) -> None:
        """Divide pods of a gang that wait; those of a sub-group of which too few wait are left out."""
        groups = job.sub_groups
        assert groups is not None
        self._session = session
        self._job = job
        self._policies = groups.policies
        self._all = tuple(tasks)
        self._lost: Counter[str] = Counter()
        self._lost_pods = 0
        self._lost_groups: Counter[int] = Counter()
        self._lacks_too_much = False
        self._hopeless: set[Hashable] = set()
        divided: dict[SubGroup | None, list[TaskInfo]] = {None: []}
        for task in self._all:
            divided.setdefault(groups.of(task), []).append(task)
        self._single = self._unit(None, divided.pop(None))
        units = sorted(self._unit(group, pods) for group, pods in divided.items())
        self._more = [unit for unit in units if not unit.is_whole]  # sorted, so that it is a heap
        self._line = deque(unit for unit in units if unit.is_whole and unit.may_be_whole)
        self._others: deque[Unit] = deque()
        self._deferred: list[Unit] = []
        self._placed = self._is_last_round = False
        self._is_first_round = True

    def _unit(self, group: SubGroup | None, tasks: Sequence[TaskInfo]) -> Unit:
        return Unit(group, PodQueue(self._session, self._job, tasks, among=self.waiting))

    def __bool__(self) -> bool:
        return bool(
            self._line or self._single.tasks or self._others or self._more or self._deferred
        )

    def waiting(self) -> Iterator[TaskInfo]:
        """The pods that have no place, also those that were tried."""
        return (task for task in self._all if task.status is PENDING)

    def pop(self) -> Unit:
        """The next unit to try."""
        while self._line:
            unit = self._line.popleft()
            of = self._policies[unit.place]
            if of.promised < of.minimum:
                return unit
            self._others.append(unit)
        if self._single.tasks:
            return self._single
        is_next = not (self._others or self._more)
        if self._deferred and (is_next or (self._placed and self._is_first_round)):
            # Pods that were placed meanwhile may help.
            self._is_last_round, self._placed = not self._placed, False
            self._is_first_round = False
            self._line = deque(sorted([*self._deferred, *self._others]))
            self._others.clear()
            self._deferred.clear()
            return self.pop()
        return self._others.popleft() if self._others else heapq.heappop(self._more)

    def tried(self, unit: Unit) -> None:
        """Keep what is left of a unit that was tried, to be tried one by one, if it has its size."""
        self._placed = True
        if unit.sub_group is not None and unit.tasks and not unit.is_whole:
            heapq.heappush(self._more, unit)

    def passes_over(self, unit: Unit) -> bool:
        """Pass over a unit if no place was found for one like it; whether it does."""
        unit.kind = self._kind(unit)
        if unit.kind not in self._hopeless:
            return False
        self.pass_over(unit, unit.tasks.left())
        return True

    def _kind(self, unit: Unit) -> Hashable:
        group = unit.sub_group
        if group is None or group.ready or not unit.is_whole:
            return None
        kinds: Counter[Hashable] = Counter()
        for task in unit.tasks.left():
            if task.nominated or task.shape.peers is not None:
                return None
            kinds[self._session.alike(task)] += 1
        return group.topology, group.size, frozenset(kinds.items())

    def pass_over(self, unit: Unit, tasks: Iterable[TaskInfo]) -> None:
        """Note that no place was found for a unit, or for pods of one whose pods are placed one by one.

        A sub-group that pods of other units may help, by pod affinity or topology spread, is tried again once some are placed.
        """
        tasks, job = tuple(tasks), self._job
        if unit.kind is not None:
            self._hopeless.add(unit.kind)
        if unit.sub_group is not None and unit.is_whole:
            rules = [task.shape.peers for task in tasks]
            if not self._is_last_round and any(each and each.may_be_helped for each in rules):
                self._deferred.append(self._unit(unit.sub_group, tasks))
                return
            of = self._policies[unit.place]
            self._lost_groups[unit.place] += 1
            self._lacks_too_much |= of.valid - self._lost_groups[unit.place] < of.minimum
        roles = [task.role for task in tasks]
        self._lost.update(roles)
        self._lost_pods += len(roles)
        if job.min_member >= job.min_task_total:
            for role in dict.fromkeys(roles):
                hopeful = job.role_ready(role, *_HOPEFUL) - self._lost[role]
                self._lacks_too_much |= hopeful < job.min_task.get(role, 0)

    def may_be_ready(self) -> bool:
        """Whether the gang has, or can still reach, its minimums."""
        return (
            not self._lacks_too_much and self._job.valid - self._lost_pods >= self._job.min_member
        )
