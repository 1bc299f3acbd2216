"""The ranking of a pod class: for every node how good it is, kept current while pods are placed.

What nodes are worth to the pods (`node_values`) is shared by classes that only rules about other pods set apart. Answers that a placement
changes for a whole domain of nodes, such as those of inter-pod affinity, are columns of their own, which follow the counts of pods by
domain. They are added when a node is chosen.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pumice.scheduler.explain.nearest import nearest
from pumice.scheduler.explain.sentences import FitFailure, Objections
from pumice.scheduler.model.axis import Bools, Floats, Ints
from pumice.scheduler.model.domains import Topology
from pumice.scheduler.model.free_room import FreeColumns, Needs, places
from pumice.scheduler.model.rows import Rows, TouchedRows
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.points import (
    DomainFilter,
    DomainScore,
    Extensions,
    PodClass,
    TaskScorePoint,
)
from pumice.scheduler.session.node_values import NOWHERE, WORST, NodeValues


class GroupPart(NamedTuple):
    """Pods that must be in one domain, and the places that they need there.

    Attributes:
        shape: Their shape; None for all pods of a group of several shapes.
        needs: What each of them takes at least.
        nodes: Which nodes suit them, by row.
        required: How many of them must have a place.
    """

    shape: PodShape | None
    needs: Needs
    nodes: Bools
    required: int


GroupOf = Callable[[TaskInfo], Sequence[GroupPart]]
"""Gives the pods that must be in the same domain as a pod."""


class NodeRanking:
    """Masks and scores of all nodes for one class of pods."""

    def __init__(
        self,
        pods: PodClass,
        values: NodeValues,
        extensions: Extensions,
        touched: TouchedRows,
        names: Sequence[str],
        room: FreeColumns,
    ) -> None:
        self.pods = pods
        self._shape: PodShape = pods.shape
        self._values = values
        self._rows = values.rows
        self._touched = touched
        self._log = touched.log
        self._names = names
        self._room = room
        self._failure: tuple[int, FitFailure] | None = None
        self._task_scores: list[TaskScorePoint] = [each.call for each in extensions.task_score]
        filters = [each.call(pods) for each in extensions.domain_filter]
        self._domain_filters: list[DomainFilter] = [each for each in filters if each is not None]
        self._domain_scores: list[DomainScore] = []
        self._even_scores: list[DomainScore] = []
        for scoring in extensions.domain_score:
            score = scoring.call.build(pods)
            if score is not None:
                (self._even_scores if scoring.call.is_even else self._domain_scores).append(score)

    @property
    def counts_room_only(self) -> bool:
        """True if only the free resources of a node decide how many pods of the class it can take."""
        return not self._values.row_filters and not self._domain_filters

    def likeness(self, rows: Ints) -> bytes:
        """Equal for rows of which the same are allowed, with equal scores as far as no placement changes these."""
        return self._values.likeness(rows)

    # -- choosing ----------------------------------------------------------------------------

    def best(
        self,
        task: TaskInfo,
        group: GroupOf | None = None,
        within: Ints | None = None,
    ) -> int:
        """Row of the best node that has room now; of equal ones the first by name.

        Args:
            task: The pod.
            group: The pods, this one included, that must be in the same domain; where the first of them is placed,
                domains with room for all of them are preferred.
            within: The rows that it may use, ascending; all if None.
        """
        values = self._values.now()
        if values is None:
            return NOWHERE
        if self._domain_scores or self._even_scores:
            values = self._with_domain_scores(values, within)
        for each in self._domain_filters:
            values = values + each.column()
        if group is not None:
            for filtering in self._domain_filters:
                for topology in filtering.starting():
                    values = values if within is None else _only(values, within)
                    if (values > WORST).any():
                        values = self._roomy(values, topology, group(task))
        return self._choose(task, values, within)

    def best_later(self, task: TaskInfo, within: Ints | None = None) -> int:
        """Row of the best node that has room after terminating pods are gone; arguments as for `best`."""
        if not self._touched.releases:
            return NOWHERE
        values = self._values.later()
        values = self._by_domain(self._with_domain_scores(values, within), later=True)
        return self._choose(task, values, within)

    def only(self, row: int, *, later: bool = False) -> int:
        """The row, if the node can be used now, or after terminating pods are gone; otherwise `NOWHERE`."""
        if row == NOWHERE:
            return NOWHERE
        rows = self._rows.take(np.array([row]))
        values = self._by_domain(self._values.evaluate(rows, later=later), rows, later=later)
        return row if values[0] > WORST else NOWHERE

    def fits_later(self) -> Bools:
        """Nodes that will do once terminating pods are gone; to be read only."""
        return self._values.fits_later()

    def scores(self) -> list[Floats]:
        """How good nodes would be if just enough pods had left them: ranked scores first, the sum of the others last."""
        *ranked, total = self._values.left()
        return [*ranked, self._with_domain_scores(total)]

    def _roomy(self, values: Floats, topology: Topology, group: Sequence[GroupPart]) -> Floats:
        """The values of nodes in domains with room for a whole group, by arithmetic; all of them if there is none."""
        free = self._rows.allocatable - self._rows.used
        has_room: Bools = np.ones(topology.size + 1, dtype=np.bool_)
        for part, counted in zip(group, places([part.needs for part in group], free), strict=True):
            counts = np.where(part.nodes, counted, 0)
            if part.shape is self._shape:
                counts[values == WORST] = 0
                self._leave_one_each(counts)
            sums = np.bincount(topology.codes, weights=counts, minlength=topology.size + 1)
            has_room &= sums >= part.required
        roomy = np.where(has_room.take(topology.codes), values, WORST)
        return roomy if (roomy > WORST).any() else values

    def _leave_one_each(self, counts: Ints) -> None:
        """Of the places for pods of the class, leave those that their anti-affinity to each other leaves."""
        for filtering in self._domain_filters:
            for other in filtering.alone():
                # One row of each of its domains, with one place.
                rows = np.flatnonzero((counts > 0) & (other.codes < other.size))
                _, firsts = np.unique(other.codes[rows], return_index=True)
                counts[rows] = 0
                counts[rows[firsts]] = 1

    def _with_domain_scores(self, values: Floats, within: Ints | None = None) -> Floats:
        for each in self._domain_scores:
            values = values + each.column()
        if within is None:
            for each in self._even_scores:
                values = values + each.column()
        return values

    def _by_domain(self, values: Floats, rows: Rows | None = None, *, later: bool) -> Floats:
        """The values of rows that filters by domain leave."""
        rows = rows or self._rows
        rows = rows.later() if later else rows
        for each in self._domain_filters:
            verdict = each.judge(rows)
            if verdict is not None:
                values = np.where(verdict.codes == 0, values, WORST)
        return values

    def _choose(self, task: TaskInfo, values: Floats, within: Ints | None = None) -> int:
        if not (self._values.ranked or self._task_scores):
            among = values if within is None else values[within]
            if not len(among):
                return NOWHERE
            place = int(among.argmax())
            row = place if within is None else int(within[place])
            return row if among.item(place) > WORST else NOWHERE
        values = values if within is None else _only(values, within)
        ranked = [column for _, column in self._values.ranked]
        for point in self._task_scores:
            column = point.score(task, self._rows)
            if column is None:
                continue
            if point.is_ranked:
                ranked.append(column)
            else:
                values = values + column
        for column in ranked:
            open_values = np.where(values > WORST, column, WORST)
            values = np.where(open_values == open_values.max(initial=WORST), values, WORST)
        if not len(values):
            return NOWHERE
        row = int(values.argmax())
        return row if values[row] > WORST else NOWHERE

    # -- explaining --------------------------------------------------------------------------

    def why_not(self) -> FitFailure:
        """Why no node can be used, by the first reason of each."""
        if self._failure is not None and self._failure[0] == len(self._log):
            return self._failure[1]
        own = self._values
        answers = [each.judge(own.pods, self._rows) for each in own.row_filters]
        answers += [each.judge(self._rows) for each in self._domain_filters]
        verdicts = [each for each in answers if each is not None]
        objections = own.fixed.objections
        if verdicts:
            objections = Objections([*own.fixed.verdicts, *verdicts], len(self._rows))
        needs, room, names = self._shape.needs, self._room, self._names
        near = nearest(room, needs, names, objections.excluded, objections.candidates)
        failure = FitFailure(objections.with_room(needs, room, names), near)
        self._failure = (len(self._log), failure)
        return failure


def _only(values: Floats, rows: Ints) -> Floats:
    """The values of some rows; the others are excluded."""
    found = np.full(len(values), WORST)
    found[rows] = values[rows]
    return found
