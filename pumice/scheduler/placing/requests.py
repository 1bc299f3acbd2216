"""Pods that ask for one domain of the network together: a whole gang, a sub-group, or a single pod."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from enum import IntEnum

import numpy as np

from pumice.scheduler.model.axis import Floats, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.sub_groups import SubGroup
from pumice.scheduler.model.tasks import ALLOCATED_LIKE, TaskInfo
from pumice.scheduler.placing.pod_queue import group_parts
from pumice.scheduler.points import DomainFit, SortKey
from pumice.scheduler.session.node_ranking import GroupPart
from pumice.scheduler.session.node_values import NOWHERE
from pumice.scheduler.session.session import Session
from pumice.scheduler.topology.levels import SideBySide
from pumice.scheduler.topology.limits import Limit
from pumice.scheduler.topology.tree import Domain


class Placed(IntEnum):
    """What pods have got; the greater is the better."""

    NOTHING = 0
    PROMISES = 1
    PLACES = 2


class Members:
    """All pods of a gang or sub-group, and where those are that hold places; followed while a session places more of them.

    Attributes:
        count: How many pods they are.
    """

    def __init__(self, session: Session, tasks: Collection[TaskInfo]) -> None:
        self._session = session
        self.count = len(tasks)
        self._rows: dict[str, int] = {}
        self._around: Set[Domain] | None = None
        self._by_row: Ints | None = None
        self._in_order: list[tuple[SortKey, int]] | None = None
        self.note(tasks)

    def __bool__(self) -> bool:
        """Whether any of them holds a place."""
        return bool(self._rows)

    def note(self, tasks: Iterable[TaskInfo]) -> None:
        """Look again at pods which may have got places, or lost them."""
        row_of = self._session.state.nodes.row_of
        for task in tasks:
            row = row_of(task.node) if task.status in ALLOCATED_LIKE else NOWHERE
            before = self._rows.get(task.key, NOWHERE)
            if row == before:
                continue
            if before != NOWHERE:
                del self._rows[task.key]
                self._around = self._by_row = self._in_order = None
            if row != NOWHERE:
                self._rows[task.key] = row
                self._add(task, row)

    def _add(self, task: TaskInfo, row: int) -> None:
        if self._around is not None:
            around = self._session.levels.tree.around([row])
            self._around = self._around & around if len(self._rows) > 1 else around
        if self._by_row is not None:
            self._by_row[row] += 1
        if self._in_order is not None:
            insort(self._in_order, (self._session.answers.task_key(task), row))

    @property
    def around(self) -> Set[Domain]:
        """All domains that have all the nodes on which they hold places."""
        if self._around is None:
            self._around = self._session.levels.tree.around(self._rows.values())
        return self._around

    @property
    def anchor(self) -> Domain | None:
        """The narrowest of these domains; None if none of them holds a place."""
        return min(self.around, default=None)

    @property
    def by_row(self) -> Ints:
        """How many of them hold places on each node; to be read only."""
        if self._by_row is None:
            rows, count = list(self._rows.values()), len(self._session.view.rows)
            self._by_row = np.bincount(np.array(rows, dtype=np.int64), minlength=count)
        return self._by_row

    def beside(self, task: TaskInfo) -> int:
        """Row of the pod with a place that comes before one that waits, or else after it; `NOWHERE` if none has one."""
        if not self._rows:
            return NOWHERE
        key = self._session.answers.task_key
        if self._in_order is None or self._session.extensions.moving_task_order:
            tasks = self._session.state.tasks
            held = [(key(tasks[name]), row) for name, row in self._rows.items()]
            self._in_order = sorted(held)
        place = bisect_left(self._in_order, (key(task),))
        return self._in_order[max(place - 1, 0)][1]


class MembersOf(dict[SubGroup | None, Members]):
    """Members of a gang (None) and of its sub-groups, kept from turn to turn of the gang; cleared when decisions are undone."""

    def __init__(self, session: Session, job: JobInfo) -> None:
        super().__init__()
        self._session = session
        self._job = job

    def __missing__(self, group: SubGroup | None) -> Members:
        tasks = (self._job if group is None else group).tasks.values()
        found = self[group] = Members(self._session, tasks)
        return found

    def note(self, tasks: Iterable[TaskInfo]) -> None:
        """Look again at pods which may have got places, or lost them."""
        groups = self._job.sub_groups
        for task in tasks:
            group = groups.of(task) if groups is not None else None
            for each in {None, group} & self.keys():
                self[each].note([task])


class DomainRequest:
    """Pods that are to be in one domain.

    Attributes:
        pods: Those that wait, in order; none of them has a place when a search begins.
        members: All pods of their gang or sub-group; they say where it is.
        required: How many of those that wait must have a place.
        limit: How near to each other they must be.
        placed: What they have got so far.
        demands: Places that are required for each kind of pods; an upper bound says whether a domain has them.
        shapes: Shapes of the pods, each with the number of pods.
        asked: Column of each resource that the pods ask for, and the sum of what they ask for, by name.
    """

    def __init__(
        self,
        session: Session,
        queue: str,
        pods: Sequence[TaskInfo],
        members: Members,
        required: int,
        limit: Limit,
        placed: Callable[[], Placed],
    ) -> None:
        self._session = session
        self.pods = pods
        self.members = members
        self.required = min(required, len(pods))
        self.limit = limit
        self.placed = placed
        self.demands = group_parts(session, queue, pods, self.required)
        self.shapes: Mapping[PodShape, int] = Counter([task.shape for task in pods])
        self.asked: dict[str, tuple[int, int]] = {}
        for shape, count in self.shapes.items():
            for need in shape.needs:
                _, before = self.asked.get(need.name, (0, 0))
                self.asked[need.name] = need.column, before + need.amount * count

    def counts(self, demand: GroupPart, *, later: bool = False) -> Ints:
        """How many pods of a shape each node has room for, by what they request."""
        counts = self._session.places.counts(demand.needs, later=later)
        return counts * demand.nodes

    def nominated_rows(self) -> list[int]:
        """Rows of the nodes for which pods are nominated that wait."""
        row_of = self._session.nominations.row
        found = (row_of(task) for task in self.pods if task.nominated)
        return [row for row in found if row >= 0]


def scores(
    session: Session, request: DomainRequest, domains: SideBySide, gone: Ints | None = None
) -> Floats:
    """How good domains are for a request, as plugins say it; all the same without them.

    `gone` is what pods use of each domain that are to be evicted, by column.
    """
    found = np.zeros(len(domains))
    if not len(domains):
        return found
    members = request.members
    by_row = members.by_row if members else None
    fit = DomainFit(request.asked, members.count, by_row, session.view.rows, domains, gone)
    for each in session.extensions.domain_order:
        answer = each.call(fit)
        if answer is not None:
            found = found + answer
    return found
