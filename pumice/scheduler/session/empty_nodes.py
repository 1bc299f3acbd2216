"""Gangs that the nodes could not hold even if they were empty.

Such a gang waits until the cluster grows, so the gate of queues keeps no room for it. What is said here is a bound by arithmetic:
a gang about which nothing is said may still fit nowhere.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence

import numpy as np

from pumice.api.messages import listed
from pumice.scheduler.explain.nearest import amount
from pumice.scheduler.model.axis import PODS, SCORED_CPU, SCORED_MEMORY, Bools, Floats, Ints
from pumice.scheduler.model.free_room import least, places
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.sub_groups import PolicyCount
from pumice.scheduler.model.tasks import ALLOCATED_LIKE, TaskInfo
from pumice.scheduler.state.reserved_nodes import WAITING, lack, waiting_shapes, wanted
from pumice.scheduler.state.watched_cluster import ClusterState
from pumice.scheduler.topology.levels import SideBySide
from pumice.scheduler.topology.limits import Limit, limit_of_part
from pumice.scheduler.view import SessionView

_FEW = 8
"""Shapes of a gang up to which filters are asked for each; for more, all ready nodes count."""

_NO_RESOURCES = (PODS, SCORED_CPU, SCORED_MEMORY)

_MASKS = 64
"""Maximum number of masks whose nodes are kept; one for each set of rules about nodes is enough."""


class ReadyNodes:
    """The ready nodes of a mask.

    Attributes:
        largest: The most that one of them has when empty, by column; empty if there is none.
        smallest: The least.
        are_all: Whether they are all ready nodes.
    """

    def __init__(self, mask: Bools, ready: Bools, allocatable: Ints) -> None:
        self._mask = mask & ready
        self.count = int(np.count_nonzero(self._mask))
        self.are_all = self.count == np.count_nonzero(ready)
        rows = allocatable[self._mask]
        self.largest: list[int] = rows.max(axis=0).tolist() if self.count else []
        self.smallest: list[int] = rows.min(axis=0).tolist() if self.count else []

    def places(self, shape: PodShape, allocatable: Ints, needed: int) -> int:
        """How many pods of a shape they hold when empty; if even the smallest nodes hold what is needed, at least that."""
        each = min([self.smallest[need.column] // need.amount for need in shape.needs])
        if each * self.count >= needed:
            return needed
        if any(need.amount > self.largest[need.column] for need in shape.needs):
            return 0
        return int(places([least([shape])], allocatable[self._mask]).sum())


class EmptyNodes:
    """What the ready nodes of a session hold without the pods on them."""

    def __init__(
        self,
        state: ClusterState,
        view: SessionView,
        suiting: Callable[[TaskInfo, str], Bools],
    ) -> None:
        """Begin a session with a settled state; filters leave suiting nodes to a pod of a queue."""
        facts = state.facts
        self._state = state
        self._axis = state.axis
        self._view = view
        self._allocatable = view.rows.allocatable
        self._facts = facts
        self._suiting = suiting
        # Otherwise filters exclude nodes only for some time, because they are cordoned or reserved.
        self._exclude_for_good = state.reservation is None and facts.are_all_open
        self._levels = state.levels
        self._said: dict[Hashable, str | None] = {}
        self._masks: dict[int, tuple[Bools, ReadyNodes]] = {}
        self._most: dict[Hashable, int] = {}

    def why_too_large(self, job: JobInfo, *, has_reserved: bool = False) -> str | None:
        """Why the nodes could not hold what a gang lacks, if they were empty; None if they may, or if no node is ready.

        Empty if its rules exclude all nodes, which the answers of the filters explain.

        Args:
            job: The gang.
            has_reserved: Whether it may use nodes that others may not.
        """
        lacking = job.lacking if job.tasks else job.min_member - job.ready
        if lacking <= 0 or not self._facts.are_any_ready:
            return None
        if not job.tasks:
            return self._of_minimum(job, lacking)
        firsts, counts = waiting_shapes(job)
        key: Hashable = (lacking, job.queue, job.key if has_reserved else "", *counts.items())
        if key not in self._said:
            self._said[key] = self._of_pods(job, lacking, firsts, counts)
        return self._said[key]

    def exceeds_all(self, job: JobInfo) -> bool:
        """Whether a gang gets nothing on the nodes as they are, whatever ends or is evicted, and whatever filters say.

        It holds nothing yet, may not begin with less than its minimum, and all ready nodes, if they were empty, could not hold that.
        """
        parked = self._state.parked.gangs.get(job.key)
        if parked is not None and parked.exceeds_all:
            return True
        if job.holding or not (job.tasks and self._facts.are_any_ready):
            return False
        if not self._view.extensions.needs_minimum:
            return False
        firsts, counts = waiting_shapes(job)
        key: Hashable = (job.lacking, *counts.items())
        if key not in self._said:
            self._said[key] = self._of_pods(job, job.lacking, firsts, counts, asks=False)
        found = self._said[key] is not None
        if found and parked is not None and parked.bounds:
            parked.exceeds_all = True  # so that it is not found again until nodes have changed
        return found

    def candidates(self, job: JobInfo) -> Bools:
        """Nodes that may hold a gang; of which its pods may use, `usable` decides once they are there."""
        return np.ones(len(self._allocatable), dtype=np.bool_) if job.tasks else self._facts.open

    def usable(self, task: TaskInfo) -> Bools:
        """Nodes that a pod may use, and that could hold it if nothing else were there."""
        usable = self._suiting(task, self._state.jobs[task.job].queue).copy()
        for need in task.shape.needs:
            usable &= self._allocatable[:, need.column] >= need.amount
        return usable

    def could_hold(self, job: JobInfo) -> bool:
        """Whether the nodes could hold a gang, by what `lack` says of them."""
        if not self._axis.has_all(job.min_resources.keys()):
            return False
        inside = self.domain(job)
        if inside is None:
            return False
        return lack(job, self._allocatable, self.candidates(job) & inside, self.usable) is None

    # -- domains of the network --------------------------------------------------------------

    def domain(self, job: JobInfo, held: Collection[int] = ()) -> Bools | None:
        """Nodes of the domain that a gang waits for which must be in one: all nodes for other gangs, None if no domain could hold it.

        It is of the lowest tier in which one could, if it were empty; of these the one that lacks least now, then the first by name.

        Args:
            job: The gang.
            held: Rows that must be in the domain.
        """
        limit = self._view.network_limit(job)
        if not limit.is_hard:
            return np.ones(len(self._allocatable), dtype=np.bool_)
        nodes = self.candidates(job)
        firsts, counts = waiting_shapes(job)
        asked = wanted(job, counts)
        columns = [each for each in np.flatnonzero(asked).tolist() if each not in _NO_RESOURCES]
        wants = [
            (self._places([shape], nodes & self.usable(firsts[shape])), count)
            for shape, count in counts.items()
        ]
        wants += [(self._allocatable[:, each] * nodes, int(asked[each])) for each in columns]
        if rows := [*held, *self._held(job)]:
            by_row: Ints = np.bincount(rows, minlength=len(nodes))
            wants.append((by_row, len(rows)))
        amounts = [(each, int(asked[each])) for each in columns]
        for domains in self._domains(limit):
            lacks = shortfalls(domains, self._view.rows, wants, amounts)
            if len(lacks) and lacks.min() < np.inf:
                return self._levels.tree.mask(domains.domains[int(lacks.argmin())])
        return None

    def fits_no_domain(self, job: JobInfo, *, has_reserved: bool = False) -> bool:
        """Whether a gang with pods, or a sub-group that it requires, must be in one domain, and none could hold what it lacks if all were empty.

        Arguments as for `why_too_large`.
        """
        whole, groups = self._view.network_limit(job), job.sub_groups
        if not (job.tasks and self._facts.are_any_ready and (groups is not None or whole.is_hard)):
            return False
        waiting = [task for task in job.tasks.values() if task.status in WAITING]
        together = [(waiting, job.lacking, whole)]
        if groups is not None:
            parts: dict[PolicyCount, list[TaskInfo]] = {}
            for task in waiting:
                of = group.of if (group := groups.of(task)) is not None else None
                if of is not None and of.ready < of.minimum and not of.partial:
                    parts.setdefault(of, []).append(task)
            together += [
                (tasks, of.size, limit_of_part(of.policy.network_topology, whole, self._levels))
                for of, tasks in parts.items()
            ]
        kind = (job.queue, job.key if has_reserved else "")
        return any(self._is_beyond(kind, tasks, count, limit) for tasks, count, limit in together)

    def _held(self, job: JobInfo) -> list[int]:
        """Rows of the nodes on which pods hold places."""
        row_of = self._state.nodes.row_of
        rows = [row_of(task.node) for task in job.tasks.values() if task.status in ALLOCATED_LIKE]
        return [row for row in rows if row >= 0]

    def _is_beyond(
        self, kind: tuple[str, str], tasks: Sequence[TaskInfo], needed: int, limit: Limit
    ) -> bool:
        """Whether so many of some pods must be in one domain, and none could hold them."""
        if not limit.is_hard or not tasks or needed <= 0:
            return False
        shapes = {task.shape: task for task in reversed(tasks)}
        key = (limit.tier, kind, frozenset(shape.number for shape in shapes))
        most = self._most.get(key)
        if most is None:
            nodes = self._facts.ready
            if len(shapes) <= _FEW:
                suiting = [self._suiting(task, kind[0]) for task in shapes.values()]
                nodes = nodes & np.logical_or.reduce(suiting)
            places = self._places(list(shapes), nodes)
            sums = [int(some.sums(places).max(initial=0)) for some in self._domains(limit)]
            most = self._most[key] = max(sums, default=0)
        return most < needed

    def _places(self, shapes: Sequence[PodShape], nodes: Bools) -> Ints:
        """How many pods, each of one of these shapes at least, nodes hold when empty, by row."""
        found: Ints = places([least(shapes)], self._allocatable)[0] * nodes
        return found

    def _domains(self, limit: Limit) -> Sequence[SideBySide]:
        return () if limit.tier is None else self._levels.below(self._levels.tree.root, limit.tier)

    def _of_pods(
        self,
        job: JobInfo,
        lacking: int,
        firsts: dict[PodShape, TaskInfo],
        counts: Counter[PodShape],
        *,
        asks: bool = True,
    ) -> str | None:
        """The same of a gang with pods, of which so many of each shape wait; the same of all such gangs of a queue. Filters need not be asked."""
        beyond = counts.total() - lacking
        for shape, task in reversed(firsts.items()):
            needed = min(counts[shape] - beyond, counts[shape])
            if needed <= 0:
                continue
            filtered = asks and len(firsts) <= _FEW
            suiting = self._suiting(task, job.queue) if filtered else self._facts.ready
            usable = self._ready_nodes(suiting)
            if not usable.count:
                if self._exclude_for_good:
                    return ""
                continue
            found = usable.places(shape, self._allocatable, needed)
            if found < needed:
                return _why(shape, needed, found, usable)
        return None

    def _of_minimum(self, job: JobInfo, members: int) -> str | None:
        """The same of a gang without pods, one of which asks for at least its part of the minimum."""
        largest, total = self._facts.largest(), self._facts.total()
        for limits, part, text in (
            (largest, members, "needs {} on one node; the largest has {}"),
            (total, 1, "needs {}; all nodes together have {}"),
        ):
            for column, minimum in job.required:
                needs = -(-minimum // part)
                if column in _NO_RESOURCES or column >= len(limits):
                    continue
                if needs > (has := limits.item(column)):
                    asked = f"{amount(column, needs)} {self._axis.names[column]}"
                    return text.format(asked, amount(column, has))
        return None

    def _ready_nodes(self, mask: Bools) -> ReadyNodes:
        """The ready nodes of a mask; it is kept with the answer, so that no other one has its identity meanwhile."""
        known = self._masks.get(id(mask))
        if known is None:
            if len(self._masks) >= _MASKS:
                self._masks.clear()
            known = self._masks[id(mask)] = (
                mask,
                ReadyNodes(mask, self._facts.ready, self._allocatable),
            )
        return known[1]


def shortfalls(
    domains: SideBySide,
    rows: Rows,
    wants: Sequence[tuple[Ints, int]],
    asked: Sequence[tuple[int, int]],
) -> Floats:
    """What each domain lacks now, in parts of what is asked for; infinite where it could not hold that if it were empty.

    Args:
        domains: The domains.
        rows: All nodes.
        wants: Of what the nodes of a domain must have so much at least when they are empty, by row.
        asked: Resources, by column, and how much of each.
    """
    could = np.ones(len(domains), dtype=np.bool_)
    for values, count in wants:
        could &= domains.sums(values) >= count
    lacks: Floats = np.where(could, 0.0, np.inf)
    if could.any():
        for column, amount in asked:
            free = domains.sums(np.maximum(rows.future_idle(column), 0))
            lacks += np.maximum(amount - free, 0) / amount
    return lacks


def _why(shape: PodShape, needed: int, found: int, nodes: ReadyNodes) -> str:
    """Why nodes do not hold so many pods of a shape, but only those found."""
    named = [need for need in shape.needs if need.name != "pods"]
    for need in named:
        has = nodes.largest[need.column]
        if need.amount > has:
            text = f"needs {amount(need.column, need.amount)} {need.name} on one node"
            which = "the largest" if nodes.are_all else "the largest that it may use"
            return f"{text}; {which} has {amount(need.column, has)}"
    if not found:
        asked = listed([f"{amount(need.column, need.amount)} {need.name}" for need in named])
        return f"needs {asked} on one node; no node has all of it, even when empty"
    return f"nodes have room for {found} of {needed} such pods, even when empty"
