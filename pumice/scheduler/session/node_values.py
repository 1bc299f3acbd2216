"""How good each node is for pods of one shape, as far as filters and scores of nodes say, kept current while pods are placed.

Results that no placement changes (`FixedPart`) are shared by shapes that differ only in their requests. The rest is
computed once as a whole column. After a placement only the touched row is computed again; because nodes tend to be
filled in the same way, the values of a row are kept by the amounts on it, and because the pods of a gang tend to follow
each other onto a node, the values for the next few of the same shape are computed with it: sixteen rows cost hardly
more than one.

Where all scores follow from the amounts of a row and the pod alone (`amounts_only`), the column lasts: the next session goes on with it, for
the rows that have changed since.
"""

import numpy as np

from pumice.scheduler.explain.sentences import Objections
from pumice.scheduler.model.axis import Bools, Floats, Ints
from pumice.scheduler.model.free_room import FreeColumns
from pumice.scheduler.model.rows import Rows, TouchedRows
from pumice.scheduler.points import Extensions, FilterPoint, FilterResult, PodClass, ScorePoint

NOWHERE = -1
"""Row of a pod that fits nowhere."""

WORST = -np.inf
"""Value of a node that pods cannot use."""

_AHEAD = 16
"""Values of a node that are computed at once: as it is, and with further pods of the class, which often follow."""

_MANY = 64
"""Touched rows from which on the whole column is computed again."""

_KEPT = 1024
"""Values of rows that are kept by the amounts on them."""


class FixedPart:
    """Results about nodes for pods of one shape and queue that no placement changes.

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
                # Not the array of the plugin, which may write other values to it later.
                self.score = values.copy() if self.score is None else self.score + values

    def is_like(self, other: "FixedPart") -> bool:
        """Whether both, of the same rows, leave the same nodes and score them alike; not if one of them has ranked scores."""
        if self.ranked or other.ranked or (self.allowed != other.allowed).any():
            return False
        if self.score is None or other.score is None:
            return self.score is other.score
        return np.array_equal(self.score, other.score)

    @property
    def objections(self) -> Objections:
        """Why the filters exclude nodes."""
        if self._objections is None:
            self._objections = Objections(self.verdicts, len(self.allowed))
        return self._objections


class NodeValues:
    """Masks and scores of all nodes for pods of one shape and queue, whatever is asked about other pods.

    Attributes:
        pods: The pods.
        fixed: What no placement changes.
        rows: The nodes.
        row_filters: Filters whose answers a placement changes.
        ranked: Ranked scorers with their values.
    """

    def __init__(
        self,
        pods: PodClass,
        fixed: FixedPart,
        rows: Rows,
        extensions: Extensions,
        touched: TouchedRows,
        room: FreeColumns,
    ) -> None:
        self.pods = pods
        self.fixed = fixed
        self.rows = rows
        self.row_filters: list[FilterPoint] = []
        self.ranked: list[tuple[ScorePoint, Floats]] = []
        self._shape = pods.shape
        self._touched = touched
        self._log = touched.log
        self._seen = len(self._log)
        self._known: dict[bytes, float] = {}
        self._later: tuple[int, Bools] | None = None
        self._row_scores: list[ScorePoint] = []
        self._is_wide = False
        self._tells_rows_apart = False
        self._lasts = False
        still = rows.still()
        is_full = room.are_too_full(pods.shape.needs)
        allowed = pods.allowed if is_full else self._fitting(pods.allowed.copy(), still)
        filters = [each.call for each in extensions.node_filter]
        self._moving_filters = [each for each in filters if each.scope != "fixed"]
        for each in self._moving_filters:
            allowed = self._add_filter(each, still, allowed)
        self._unscored: Extensions | None = extensions
        self._total: Floats | None = (
            None  # as long as no node has had room, or it was not asked for
        )
        self._with_room = None if is_full or not allowed.any() else (still, allowed)

    def begin_again(self, fixed: FixedPart, rows: Rows, touched: TouchedRows) -> bool:
        """Go on in another session; False if this one does not last, or something else than the amounts of pods on nodes has changed.

        Kept are the values of rows: a change of pods, or of room held for some, is in the log that is followed, any other change of a node
        makes other `rows`, and functions that are registered again drop all that is kept. What filters and fixed scores say is asked again.
        """
        if not self._lasts or self._total is None or self.row_filters:
            return False
        if rows is not self.rows or not fixed.is_like(self.fixed):
            return False
        if any(each.judge(self.pods, rows) is not None for each in self._moving_filters):
            return False
        self.fixed, self._touched, self._later = fixed, touched, None
        return True

    def _add_filter(self, point: FilterPoint, rows: Rows, allowed: Bools) -> Bools:
        """Those of the allowed rows that a filter leaves."""
        verdict = point.judge(self.pods, rows)
        if verdict is None:
            return allowed
        self.row_filters.append(point)
        self._is_wide |= point.scope == "all"
        left: Bools = allowed & (verdict.codes == 0)
        return left

    def _add_scores(self, rows: Rows) -> Floats | None:
        """Ask the scorers; this waits until a node has room, which for many pods of a full cluster none has."""
        extensions, self._unscored = self._unscored, None
        total, asked = self.fixed.score, 0
        for place, scoring in enumerate(extensions.node_score if extensions is not None else ()):
            if scoring.call.scope != "fixed":
                asked += 1
                total = self._add_score(scoring.call, rows, total)
            elif place in self.fixed.ranked:
                self.ranked.append((scoring.call, self.fixed.ranked[place]))
        has_all = len(self._row_scores) == asked
        self._lasts = has_all and not (self._is_wide or self._tells_rows_apart)
        return total

    def _score(self) -> None:
        if self._unscored is not None:
            self._add_scores(self.rows.still())

    def _add_score(self, point: ScorePoint, rows: Rows, total: Floats | None) -> Floats | None:
        score = point.score(self.pods, rows)
        if score is None:
            return total
        if point.is_ranked:
            self.ranked.append((point, score))
            self._is_wide = True
            return total
        self._is_wide |= point.scope == "all"
        self._tells_rows_apart |= not point.amounts_only
        self._row_scores.append(point)
        return score if total is None else total + score

    # -- values ------------------------------------------------------------------------------

    def now(self) -> Floats | None:
        """The value of every node for one more pod now; None if none has had room. To be read only."""
        if self._seen != len(self._log):
            self._sync()
        elif self._with_room is not None:
            rows, allowed = self._with_room
            if self._unscored is None:  # the scorers were asked about the nodes as they may become
                self._total = self.evaluate(rows)
            else:
                total = self._add_scores(rows)
                self._total = np.where(allowed, 0.0 if total is None else total, WORST)
        self._with_room = None
        return self._total

    def later(self) -> Floats:
        """The values after terminating pods are gone; computed for nodes with room alone, if these are few."""
        self._score()
        if self._is_wide:
            return self.evaluate(self.rows, later=True)
        fitting = self._fitting(self.pods.allowed.copy(), self.rows, later=True)
        index = np.flatnonzero(fitting)
        if len(index) * 2 > len(fitting):
            return self.evaluate(self.rows, later=True)
        values = np.full(len(fitting), WORST)
        if len(index):
            values[index] = self.evaluate(self.rows.take(index), later=True)
        return values

    def fits_later(self) -> Bools:
        """Nodes that will do once terminating pods are gone; to be read only."""
        moment = len(self._log)
        if self._later is None or self._later[0] != moment:
            rows = self.rows.later()
            fits = self._fitting(self.pods.allowed.copy(), rows, later=True)
            for each in self.row_filters:
                verdict = each.judge(self.pods, rows) if fits.any() else None
                fits &= True if verdict is None else verdict.codes == 0
            self._later = moment, fits
        return self._later[1]

    def left(self) -> list[Floats]:
        """How good nodes would be if just enough pods had left them: ranked scores first, the sum of the others last."""
        self._score()
        rows = self.rows
        limit = np.maximum(rows.allocatable - self._shape.vector, 0)
        used = np.minimum(rows.used - rows.releasing, limit)
        left = Rows(rows.index, rows.allocatable, used, np.zeros_like(used), rows.pipelined)
        fixed = self.fixed.score
        total: Floats = np.zeros(len(rows)) if fixed is None else fixed
        for scoring in self._row_scores:
            score = scoring.score(self.pods, left)
            if score is not None:
                total = total + score
        return [*(self._scored(point, left) for point, _ in self.ranked), total]

    def likeness(self, rows: Ints) -> bytes:
        """Equal for rows of which the same are allowed, with equal scores as far as no placement changes these."""
        fixed = self.fixed.score
        return self.pods.allowed[rows].tobytes() + (b"" if fixed is None else fixed[rows].tobytes())

    def evaluate(self, rows: Rows, *, later: bool = False) -> Floats:
        """How good rows are, with what they have room for and all filters."""
        rows = rows.later() if later else rows
        values = self._worth(rows.still(), later=later)
        for each in self.row_filters:
            values = _left(values, each.judge(self.pods, rows))
        return values

    def _sync(self) -> None:
        seen, count = self._seen, len(self._log)
        self._score()
        if self._is_wide:
            self.ranked = [
                (point, column if point.scope == "fixed" else self._scored(point, self.rows))
                for point, column in self.ranked
            ]
            self._total = self.evaluate(self.rows)
        elif self._total is None or count - seen > _MANY:
            self._total = self.evaluate(self.rows)
        else:
            for row in dict.fromkeys(self._log[seen:count]):
                self._follow(self._total, row)
        self._seen = count

    def _scored(self, point: ScorePoint, rows: Rows) -> Floats:
        score = point.score(self.pods, rows)
        return np.zeros(len(rows)) if score is None else score

    def _follow(self, total: Floats, row: int) -> None:
        """Look up the value of a touched row, or compute it and those after further pods of the shape."""
        if not self.pods.allowed.item(row):
            return
        here, later = self._context(row)
        amounts = self.rows.used[row]
        value = self._known.get(here + amounts.tobytes() + later)
        if value is None:
            count = min(_AHEAD, self._shape.users)
            rows = self.rows.take(np.full(count, row, dtype=np.int64))
            rows.used += np.arange(count)[:, None] * self._shape.vector
            values = self._worth(rows.still()).tolist()
            if len(self._known) >= _KEPT:
                self._known.clear()
            for used, each in zip(rows.used, values, strict=True):
                self._known[here + used.tobytes() + later] = each
            value = values[0]
        if self.row_filters and value > WORST and not self._passes(self.rows.one(row)):
            value = WORST
        total[row] = value

    def _passes(self, row: Rows) -> bool:
        """Whether filters whose answers a placement changes leave a row."""
        verdicts = [filtering.judge(self.pods, row) for filtering in self.row_filters]
        return not any(verdict is not None and verdict.codes[0] for verdict in verdicts)

    def _context(self, row: int) -> tuple[bytes, bytes]:
        """What the value of a row depends on besides its use."""
        rows, fixed = self.rows, self.fixed.score
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

    def _worth(self, rows: Rows, *, later: bool = False) -> Floats:
        """How good rows are that have room, whatever filters say whose answers a placement changes."""
        self._score()
        index = rows.index
        allowed = self._fitting(self.pods.allowed[index].copy(), rows, later=later)
        fixed = self.fixed.score
        total: Floats | None = None if fixed is None else fixed[index]
        for scoring in self._row_scores:
            score = scoring.score(self.pods, rows)
            if score is not None:
                total = score if total is None else total + score
        return np.where(allowed, 0.0 if total is None else total, WORST)


def _left(values: Floats, verdict: FilterResult | None) -> Floats:
    """The values of nodes that a filter leaves."""
    return values if verdict is None else np.where(verdict.codes == 0, values, WORST)
