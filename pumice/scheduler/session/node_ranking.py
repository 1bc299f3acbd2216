"""The ranking of a pod class: for every node how good it is, kept current while pods are placed.

Results that no placement changes (`FixedPart`) are shared by classes that differ only in their requests. The rest is
computed once as a whole column. After a placement only the touched row is computed again; because nodes tend to be
filled in the same way, the values of a row are kept by the amounts on it, and because the pods of a gang tend to follow
each other onto a node, the values for the next few of the same shape are computed with it: sixteen rows cost hardly
more than one.

Answers that a placement changes for a whole domain of nodes, such as those of inter-pod affinity, are columns of their own,
which follow the counts of pods by domain. They are added when a node is chosen.

The file is long because all code that reads or updates the columns depends on their content.
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
    FilterPoint,
    FilterResult,
    PodClass,
    ScorePoint,
    TaskScorePoint,
)

__all__ = ["NOWHERE", "FixedPart", "GroupPart", "NodeRanking"]

NOWHERE = -1
"""Row of a pod that fits nowhere."""

_AHEAD = 16
"""Rows computed at once for a node that has just taken a pod of the class."""

_MANY = 64
"""Touched rows from which on the whole column is computed again."""

_KEPT = 1024
"""Values of rows that are kept by the amounts on them."""

_WORST = -np.inf


class GroupPart(NamedTuple):
    """Pods of a group that must be in one domain.

    Attributes:
        shape: Their shape; None for all pods of a group of several shapes.
        needs: What each of them takes at least.
        nodes: Which nodes suit them, by row.
        required: How many of them the group needs at least; 0 or less for none.
    """

    shape: PodShape | None
    needs: Needs
    nodes: Bools
    required: int


class FixedPart:
    """Results about nodes for a class of pods that no placement changes.

    Attributes:
        verdicts: Objections of filters.
        allowed: Nodes that pass the filters.
        score: Sum of the scores; None when they are all the same.
        ranked: Values of ranked scorers, by their place among the scorers.
    """

    def __init__(self, pods: PodClass, rows: Rows, extensions: Extensions) -> None:
        self.allowed = pods.allowed
        self.verdicts: list[FilterResult] = []
        self.score: Floats | None = None
        self.ranked: dict[int, Floats] = {}
        self._objections: Objections | None = None
        for filtering in extensions.node_filter:
            if filtering.call.scope == "fixed":
                verdict = filtering.call.judge(pods, rows)
                if verdict is not None:
                    self.verdicts.append(verdict)
                    self.allowed &= verdict.codes == 0
        for place, scoring in enumerate(extensions.node_score):
            if scoring.call.scope != "fixed":
                continue
            values = scoring.call.score(pods, rows)
            if values is None:
                continue
            if scoring.call.is_ranked:
                self.ranked[place] = values
            else:
                self.score = values if self.score is None else self.score + values

    @property
    def objections(self) -> Objections:
        """Why the filters exclude nodes."""
        if self._objections is None:
            self._objections = Objections(self.verdicts, len(self.allowed))
        return self._objections


class NodeRanking:
    """Masks and scores of all nodes for one class of pods."""

    def __init__(
        self,
        pods: PodClass,
        fixed: FixedPart,
        rows: Rows,
        extensions: Extensions,
        touched: TouchedRows,
        names: Sequence[str],
        room: FreeColumns,
    ) -> None:
        self.pods = pods
        self._shape: PodShape = pods.shape
        self._fixed = fixed
        self._rows = rows
        self._touched = touched
        self._log = touched.log
        self._names = names
        self._room = room
        self._seen = len(self._log)
        self._own = NOWHERE
        self._known: dict[bytes, float] = {}
        self._failure: tuple[int, FitFailure] | None = None
        self._later: tuple[int, Bools] | None = None
        self._row_filters: list[FilterPoint] = []
        self._row_scores: list[ScorePoint] = []
        self._ranked: list[tuple[ScorePoint, Floats]] = []
        self._task_scores: list[TaskScorePoint] = [each.call for each in extensions.task_score]
        self._is_wide = False
        self._tells_rows_apart = False
        still = rows.still()
        is_full = room.are_too_full(pods.shape.needs)
        allowed = pods.allowed if is_full else self._fitting(pods.allowed.copy(), still)
        for filtering in extensions.node_filter:
            if filtering.call.scope != "fixed":
                allowed = self._add_filter(filtering.call, still, allowed)
        self._unscored: Extensions | None = extensions
        self._total: Floats | None = None  # as long as no node has room
        if not is_full and allowed.any():
            total = self._add_scores(still)
            self._total = np.where(allowed, 0.0 if total is None else total, _WORST)
        filters = [each.call(pods) for each in extensions.domain_filter]
        self._domain_filters: list[DomainFilter] = [each for each in filters if each is not None]
        self._domain_scores: list[DomainScore] = []
        self._even_scores: list[DomainScore] = []
        for scoring in extensions.domain_score:
            score = scoring.call.build(pods)
            if score is not None:
                (self._even_scores if scoring.call.is_even else self._domain_scores).append(score)

    def _add_filter(self, point: FilterPoint, rows: Rows, allowed: Bools) -> Bools:
        """Those of the allowed rows that a filter leaves."""
        verdict = point.judge(self.pods, rows)
        if verdict is None:
            return allowed
        self._row_filters.append(point)
        self._is_wide |= point.scope == "all"
        left: Bools = allowed & (verdict.codes == 0)
        return left

    def _add_scores(self, rows: Rows) -> Floats | None:
        """Ask the scorers; this waits until a node has room, which for many pods of a full cluster none has."""
        extensions, self._unscored = self._unscored, None
        total = self._fixed.score
        for place, scoring in enumerate(extensions.node_score if extensions is not None else ()):
            if scoring.call.scope != "fixed":
                total = self._add_score(scoring.call, rows, total)
            elif place in self._fixed.ranked:
                self._ranked.append((scoring.call, self._fixed.ranked[place]))
        return total

    def _score(self) -> None:
        if self._unscored is not None:
            self._add_scores(self._rows.still())

    def _add_score(self, point: ScorePoint, rows: Rows, total: Floats | None) -> Floats | None:
        score = point.score(self.pods, rows)
        if score is None:
            return total
        if point.is_ranked:
            self._ranked.append((point, score))
            self._is_wide = True
            return total
        self._is_wide |= point.scope == "all"
        self._tells_rows_apart |= not point.amounts_only
        self._row_scores.append(point)
        return score if total is None else total + score

    @property
    def counts_room_only(self) -> bool:
        """True if only the free resources of a node decide how many pods of the class it can take."""
        return not self._row_filters and not self._domain_filters

    def likeness(self, rows: Ints) -> bytes:
        """Equal for rows of which the same are allowed, with equal scores as far as no placement changes these."""
        fixed = self._fixed.score
        return self.pods.allowed[rows].tobytes() + (b"" if fixed is None else fixed[rows].tobytes())

    # -- choosing ----------------------------------------------------------------------------

    def best(
        self,
        task: TaskInfo,
        group: Callable[[TaskInfo], Sequence[GroupPart]] | None = None,
        within: Ints | None = None,
    ) -> int:
        """Row of the best node that has room now; of equal ones the first by name.

        Args:
            task: The pod.
            group: The pods, this one included, that must be in the same domain; where the first of them is placed,
                domains with room for all of them are preferred.
            within: The rows that it may use, ascending; all if None.
        """
        self._sync()
        if self._total is None:
            return NOWHERE
        values = self._with_domain_scores(self._total, within)
        for each in self._domain_filters:
            values = values + each.column()
        if group is not None:
            for filtering in self._domain_filters:
                for topology in filtering.starting():
                    values = values if within is None else _only(values, within)
                    if (values > _WORST).any():
                        values = self._roomy(values, topology, group(task))
        return self._choose(task, values, within)

    def best_later(self, task: TaskInfo, within: Ints | None = None) -> int:
        """Row of the best node that has room after terminating pods are gone; arguments as for `best`."""
        if not self._touched.releases:
            return NOWHERE
        values = self._values_later()
        values = self._by_domain(self._with_domain_scores(values, within), later=True)
        return self._choose(task, values, within)

    def only(self, row: int, *, later: bool = False) -> int:
        """The row, if the node can be used now, or after terminating pods are gone; otherwise `NOWHERE`."""
        if row == NOWHERE:
            return NOWHERE
        rows = self._rows.take(np.array([row]))
        values = self._by_domain(self._evaluate(rows, later=later), rows, later=later)
        return row if values[0] > _WORST else NOWHERE

    def fits_later(self) -> Bools:
        """Nodes that will do once terminating pods are gone; to be read only."""
        moment = len(self._log)
        if self._later is None or self._later[0] != moment:
            rows = self._rows.later()
            fits = self._fitting(self.pods.allowed.copy(), rows, later=True)
            for each in self._row_filters:
                verdict = each.judge(self.pods, rows) if fits.any() else None
                fits &= True if verdict is None else verdict.codes == 0
            self._later = moment, fits
        return self._later[1]

    def scores(self) -> list[Floats]:
        """How good nodes would be if just enough pods had left them: ranked scores first, the sum of the others last."""
        self._score()
        rows = self._rows
        limit = np.maximum(rows.allocatable - self._shape.vector, 0)
        used = np.minimum(rows.used - rows.releasing, limit)
        left = Rows(rows.index, rows.allocatable, used, np.zeros_like(used), rows.pipelined)
        fixed = self._fixed.score
        total: Floats = np.zeros(len(rows)) if fixed is None else fixed
        for scoring in self._row_scores:
            score = scoring.score(self.pods, left)
            if score is not None:
                total = total + score
        total = self._with_domain_scores(total)
        return [*(self._scored(point, left) for point, _ in self._ranked), total]

    def taken(self, row: int) -> None:
        """Record that the last entry of the log is a pod of this class on this row."""
        self._own = row

    def _roomy(self, values: Floats, topology: Topology, group: Sequence[GroupPart]) -> Floats:
        """The values of nodes in domains with room for a whole group, by arithmetic; all of them if there is none."""
        free = self._rows.allocatable - self._rows.used
        has_room: Bools = np.ones(topology.size + 1, dtype=np.bool_)
        for part, counted in zip(group, places([part.needs for part in group], free), strict=True):
            counts = np.where(part.nodes, counted, 0)
            if part.shape is self._shape:
                counts[values == _WORST] = 0
                self._leave_one_each(counts)
            sums = np.bincount(topology.codes, weights=counts, minlength=topology.size + 1)
            has_room &= sums >= part.required
        roomy = np.where(has_room.take(topology.codes), values, _WORST)
        return roomy if (roomy > _WORST).any() else values

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
            values = _left(values, each.judge(rows))
        return values

    def _choose(self, task: TaskInfo, values: Floats, within: Ints | None = None) -> int:
        if not (self._ranked or self._task_scores):
            among = values if within is None else values[within]
            if not len(among):
                return NOWHERE
            place = int(among.argmax())
            row = place if within is None else int(within[place])
            return row if among.item(place) > _WORST else NOWHERE
        values = values if within is None else _only(values, within)
        ranked = [column for _, column in self._ranked]
        for point in self._task_scores:
            column = point.score(task, self._rows)
            if column is None:
                continue
            if point.is_ranked:
                ranked.append(column)
            else:
                values = values + column
        for column in ranked:
            open_values = np.where(values > _WORST, column, _WORST)
            values = np.where(open_values == open_values.max(initial=_WORST), values, _WORST)
        if not len(values):
            return NOWHERE
        row = int(values.argmax())
        return row if values[row] > _WORST else NOWHERE

    # -- keeping current ---------------------------------------------------------------------

    def _sync(self) -> None:
        seen, count = self._seen, len(self._log)
        if seen == count:
            return
        self._seen = count
        own, self._own = self._own, NOWHERE
        if self._unscored is not None:
            self._score()
        if self._is_wide:
            self._ranked = [
                (point, column if point.scope == "fixed" else self._scored(point, self._rows))
                for point, column in self._ranked
            ]
            self._total = self._evaluate(self._rows)
            return
        if self._total is None or count - seen > _MANY:
            self._total = self._evaluate(self._rows)
        elif count - seen == 1:
            self._follow(self._total, self._log[seen], ahead=own == self._log[seen])
        else:
            for row in dict.fromkeys(self._log[seen:count]):
                self._follow(self._total, row, ahead=own == row)

    def _scored(self, point: ScorePoint, rows: Rows) -> Floats:
        score = point.score(self.pods, rows)
        return np.zeros(len(rows)) if score is None else score

    def _follow(self, total: Floats, row: int, *, ahead: bool) -> None:
        """Look up the value of a touched row, or compute it; with `ahead` those after further pods of the class as well."""
        if not self.pods.allowed.item(row):
            return
        here, later = self._context(row)
        amounts = self._rows.used[row]
        value = self._known.get(here + amounts.tobytes() + later)
        if value is None:
            count = min(_AHEAD, self._shape.users) if ahead else 1
            rows = self._rows.take(np.full(count, row, dtype=np.int64))
            rows.used += np.arange(count)[:, None] * self._shape.vector
            values = self._worth(rows.still()).tolist()
            if len(self._known) >= _KEPT:
                self._known.clear()
            for used, each in zip(rows.used, values, strict=True):
                self._known[here + used.tobytes() + later] = each
            value = values[0]
        if self._row_filters and value > _WORST and not self._passes(self._rows.one(row)):
            value = _WORST
        total[row] = value

    def _passes(self, row: Rows) -> bool:
        """Whether filters whose answers a placement changes leave a row."""
        verdicts = [filtering.judge(self.pods, row) for filtering in self._row_filters]
        return not any(verdict is not None and verdict.codes[0] for verdict in verdicts)

    def _context(self, row: int) -> tuple[bytes, bytes]:
        """What the value of a row depends on besides its use."""
        rows, fixed = self._rows, self._fixed.score
        here = rows.allocatable[row].tobytes()
        if fixed is not None:
            here += fixed[row].tobytes()
        if self._tells_rows_apart:
            here += row.to_bytes(8, "big")
        later = b""
        if self._touched.promises or self._touched.releases:
            later = rows.releasing[row].tobytes() + rows.pipelined[row].tobytes()
            later += b"+" if self._touched.promises else b"-"
        return here, later

    def _fitting(self, allowed: Bools, rows: Rows, *, later: bool = False) -> Bools:
        """Those of the allowed rows that have room."""
        for need in self._shape.needs:
            idle = rows.idle(need.column)
            if not later:
                allowed &= idle >= need.amount
            if later or self._touched.promises:
                allowed &= (
                    idle + rows.releasing[:, need.column] - rows.pipelined[:, need.column]
                    >= need.amount
                )
        return allowed

    def _evaluate(self, rows: Rows, *, later: bool = False) -> Floats:
        """How good rows are, with what they have room for and all filters."""
        rows = rows.later() if later else rows
        values = self._worth(rows.still(), later=later)
        for each in self._row_filters:
            values = _left(values, each.judge(self.pods, rows))
        return values

    def _values_later(self) -> Floats:
        """How good all rows are after terminating pods are gone; computed for those with room alone, if these are few."""
        self._score()
        if self._is_wide:
            return self._evaluate(self._rows, later=True)
        fitting = self._fitting(self.pods.allowed.copy(), self._rows, later=True)
        index = np.flatnonzero(fitting)
        if len(index) * 2 > len(fitting):
            return self._evaluate(self._rows, later=True)
        values = np.full(len(fitting), _WORST)
        if len(index):
            values[index] = self._evaluate(self._rows.take(index), later=True)
        return values

    def _worth(self, rows: Rows, *, later: bool = False) -> Floats:
        """How good rows are that have room, whatever filters say whose answers a placement changes."""
        self._score()
        index = rows.index
        allowed = self._fitting(self.pods.allowed[index].copy(), rows, later=later)
        fixed = self._fixed.score
        total: Floats | None = None if fixed is None else fixed[index]
        for scoring in self._row_scores:
            score = scoring.score(self.pods, rows)
            if score is not None:
                total = score if total is None else total + score
        return np.where(allowed, 0.0 if total is None else total, _WORST)

    # -- explaining --------------------------------------------------------------------------

    def why_not(self) -> FitFailure:
        """Why no node can be used, by the first reason of each."""
        if self._failure is not None and self._failure[0] == len(self._log):
            return self._failure[1]
        answers = [each.judge(self.pods, self._rows) for each in self._row_filters]
        answers += [each.judge(self._rows) for each in self._domain_filters]
        verdicts = [each for each in answers if each is not None]
        objections = self._fixed.objections
        if verdicts:
            objections = Objections([*self._fixed.verdicts, *verdicts], len(self._rows))
        needs, room, names = self._shape.needs, self._room, self._names
        near = nearest(room, needs, names, objections.excluded, objections.candidates)
        failure = FitFailure(objections.with_room(needs, room, names), near)
        self._failure = (len(self._log), failure)
        return failure


def _only(values: Floats, rows: Ints) -> Floats:
    """The values of some rows; the others are excluded."""
    found = np.full(len(values), _WORST)
    found[rows] = values[rows]
    return found


def _left(values: Floats, verdict: FilterResult | None) -> Floats:
    """The values of nodes that a filter leaves."""
    return values if verdict is None else np.where(verdict.codes == 0, values, _WORST)
