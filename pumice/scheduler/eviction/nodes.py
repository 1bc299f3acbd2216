"""The nodes on which room can be made for a pod, those first on which it costs least.

Nodes are examined in the order of their bounds, in growing batches, until none can be better than the best result.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from pumice.scheduler.eviction.attempt import Cost, EvictionPlaces, FoundRoom
from pumice.scheduler.eviction.bounds import NodeBounds
from pumice.scheduler.eviction.bundles import VictimBundle, VictimOrder
from pumice.scheduler.eviction.settings import EvictionRules
from pumice.scheduler.eviction.survey import alone, may_go
from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.shapes import Need
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement

_GROWTH = 8


class _NodePlace:
    """A node on which room is made for one pod; see `attempt.EvictionPlace`."""

    is_costly = False

    def __init__(self, nodes: "NodePlaces", row: int, tasks: Sequence[TaskInfo]) -> None:
        self._nodes = nodes
        self._tasks = tasks
        self._needs: Sequence[Need] = nodes.bounds.ranking.pods.shape.needs
        self._lacks = nodes.bounds.missing(row)
        self.is_tried = nodes.are_tried
        self.row = row

    @property
    def is_enough(self) -> bool:
        return max(self._lacks) <= 0

    def bundles(self) -> Iterator[VictimBundle]:
        jobs = self._nodes.session.state.jobs
        return (VictimBundle(jobs[task.job], (task,), False) for task in self._tasks)

    def add(self, bundle: VictimBundle) -> None:
        self._change(bundle, -1)

    def put_back(self, bundle: VictimBundle) -> None:
        self._change(bundle, 1)

    def _change(self, bundle: VictimBundle, step: int) -> None:
        vector, lacks = bundle.tasks[0].shape.vector, self._lacks
        for place, need in enumerate(self._needs):
            lacks[place] += step * vector.item(need.column)

    def promise(self, statement: Statement) -> bool:
        nodes, row = self._nodes, self.row
        asked, session = nodes.preemptor, nodes.session
        if self.is_tried:
            if session.answers.why_not_allocatable(asked.queue, asked.task) is not None:
                return False
            if nodes.bounds.ranking.only(row, later=True) != row:
                return False
        statement.pipeline(asked.task, session.state.nodes.order[row])
        return True

    def cost(self, victims: Sequence[TaskInfo], broken: int, /) -> Cost:
        return self._nodes.bounds.cost(self.row, victims, broken)


class NodePlaces(EvictionPlaces):
    """The nodes in the order in which they are examined for one pod.

    Attributes:
        are_tried: Whether more than room decides, so that evictions must be tried.
    """

    def __init__(
        self, session: Session, rules: EvictionRules, preemptor: Preemptor, bounds: NodeBounds
    ) -> None:
        super().__init__()
        self.session = session
        self.preemptor = preemptor
        self.bounds = bounds
        self.are_tried = (
            not bounds.ranking.counts_room_only
            or session.answers.why_not_allocatable(preemptor.queue, preemptor.task) is not None
        )
        self._rules = rules
        self._order = VictimOrder(session, rules)

    def free(self) -> FoundRoom | None:
        """The best node with room from which no pod has to go, if only room decides."""
        row = None if self.are_tried else self.bounds.free()
        if row is None:
            return None
        place = _NodePlace(self, row, ())
        return FoundRoom(place.cost((), 0), place, (), (), None)

    def each(self) -> Iterator[_NodePlace]:
        """Those whose bound is lower than what the best one costs; then the costs of all take the place of their bounds."""
        examined: dict[int, Cost | None] = {}
        size, hopeless = 1, None
        while rows := self._next(size, examined):
            if hopeless is not None:
                rows = [row for row in rows if not hopeless[row]]
            for place in self._places(rows):
                yield place
                if self.last.found is not None:
                    examined[place.row] = self.last.found.cost
            if self.best is None and size <= _GROWTH:
                hopeless = self._hopeless(size)
                if hopeless is not None and not self.bounds.any_beside(hopeless):
                    break
            size *= _GROWTH
        for row, cost in examined.items():
            if self.are_tried:  # what it costs is so for this pod alone
                self.bounds.put_back(row)
            else:
                self.bounds.settle(row, cost)

    def _hopeless(self, size: int) -> Bools | None:
        """Nodes on which the pod cannot fit, whichever pods go from them; None if that was not looked at after so few nodes.

        First what the queue lacks counts, then also which pods plugins let go by now, each for itself.
        """
        queue = self.preemptor.queue
        room = self.session.answers.room(queue) if self.are_tried else None
        if size < _GROWTH:
            return None if room is None else self.bounds.lack(None, room)
        victims = self.bounds.victims()
        answers = alone(self.session, self._rules, self.preemptor, victims)
        return self.bounds.lack(self.bounds.given(victims[answers.may]), room)

    def _next(self, count: int, examined: dict[int, Cost | None]) -> Sequence[int]:
        """Take so many nodes, or as many as may be better than the best that was found."""
        rows: list[int] = []
        least = self.best.cost if self.best is not None else None
        while len(rows) < count and (row := self.bounds.take(examined, least)) is not None:
            examined[row] = None
            rows.append(row)
        return rows

    def _places(self, rows: Sequence[int]) -> Sequence[_NodePlace]:
        """Nodes with the pods that plugins let go, in order, where these give what is missing."""
        tasks: list[TaskInfo] = []
        places: list[int] = []
        for place, row in enumerate(rows):
            found = self._order.of(self.bounds.candidates(row))
            tasks += found
            places += [place] * len(found)
        may = may_go(self.session, self._rules, self.preemptor, tasks).tolist()
        allowed: list[list[TaskInfo]] = [[] for _ in rows]
        for place, task, yes in zip(places, tasks, may, strict=True):
            if yes:
                allowed[place].append(task)
        lack = None
        if len(rows) > 1:
            left = np.array([task.row for each in allowed for task in each], dtype=np.int64)
            lack = self.bounds.lack(self.bounds.given(left))
        return [
            _NodePlace(self, row, each)
            for row, each in zip(rows, allowed, strict=True)
            if (lack is None or not lack[row])
            and (each or not self.are_tried or self.bounds.ranking.fits_later()[row])
        ]
