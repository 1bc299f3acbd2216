"""The board of a pod class: for every node how good it is, kept current while pods are placed.

The whole column is computed once. After a placement only the touched row is computed anew, and because the
pods of a gang tend to follow each other onto a node, the values for the next few of the same shape are
computed with it: sixteen rows cost hardly more than one.
"""

from collections.abc import Sequence

import numpy as np

from pumice.scheduler.explain import FitFailure, histogram
from pumice.scheduler.ledger import Ledger
from pumice.scheduler.model.axis import Bools, Floats, Ints
from pumice.scheduler.model.nodes import Rows
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import Task
from pumice.scheduler.points import (
    Extensions,
    FilterPoint,
    PodClass,
    ScorePoint,
    TaskScorePoint,
    Verdict,
)

__all__ = ["NOWHERE", "Board"]

NOWHERE = -1
"""Row of a pod that fits nowhere."""

_AHEAD = 16
"""Rows computed at once for a node that has just taken a pod of the class."""

_MANY = 64
"""Touched rows from which on the whole column is computed again."""

_WORST = -np.inf


class Board:
    """Masks and scores of all nodes for one class of pods."""

    __slots__ = (
        "_ahead",
        "_failure",
        "_fixed",
        "_fixed_score",
        "_is_wide",
        "_ledger",
        "_log",
        "_names",
        "_own",
        "_ranked",
        "_row_filters",
        "_row_scores",
        "_rows",
        "_seen",
        "_shape",
        "_task_scores",
        "_total",
        "pods",
    )

    def __init__(
        self,
        shape: PodShape,
        queue: str,
        rows: Rows,
        extensions: Extensions,
        ledger: Ledger,
        names: Sequence[str],
        gang: str = "",
    ) -> None:
        self._shape = shape
        self._rows = rows
        self._ledger = ledger
        self._log = ledger.log
        self._names = names
        self._seen = len(self._log)
        self._own = NOWHERE
        self._ahead: dict[int, list[float]] = {}
        self._failure: tuple[int, FitFailure] | None = None
        self._fixed: list[Verdict] = []
        self._row_filters: list[FilterPoint] = []
        self._row_scores: list[ScorePoint] = []
        self._ranked: list[tuple[ScorePoint, Floats]] = []
        self._task_scores: list[TaskScorePoint] = [each.call for each in extensions.task_scores]
        self._is_wide = False
        allowed = np.ones(len(rows), dtype=np.bool_)
        self.pods = PodClass(shape, queue, allowed, gang)
        for filtering in extensions.filters:
            self._add_filter(filtering.call, allowed)
        self._fixed_score = np.zeros(len(rows))
        for scoring in extensions.scores:
            self._add_score(scoring.call)
        self._total = self._evaluate(rows)

    def _add_filter(self, point: FilterPoint, allowed: Bools) -> None:
        verdict = point.judge(self.pods, self._rows)
        if verdict is None:
            return
        if point.scope == "fixed":
            self._fixed.append(verdict)
            allowed &= verdict.codes == 0
            return
        self._row_filters.append(point)
        self._is_wide |= point.scope == "all"

    def _add_score(self, point: ScorePoint) -> None:
        score = point.score(self.pods, self._rows)
        if score is None:
            return
        self._is_wide |= point.scope == "all"
        if point.is_ranked:
            self._ranked.append((point, score))
            self._is_wide |= point.scope == "row"
        elif point.scope == "fixed":
            self._fixed_score = self._fixed_score + score
        else:
            self._row_scores.append(point)

    @property
    def counts_room_only(self) -> bool:
        """Whether nothing but the room on a node decides how many pods of the class it can take."""
        return not self._row_filters

    # -- choosing ----------------------------------------------------------------------------

    def best(self, task: Task) -> int:
        """Row of the best node that has room now; the first by name among equals."""
        self._sync()
        return self._choose(task, self._total)

    def best_later(self, task: Task) -> int:
        """Row of the best node that has room once terminating pods are gone."""
        if not self._ledger.releases:
            return NOWHERE
        return self._choose(task, self._evaluate(self._rows, later=True))

    def only(self, row: int, *, later: bool = False) -> int:
        """The row, if the node will do now, or once terminating pods are gone; otherwise `NOWHERE`."""
        if row == NOWHERE:
            return NOWHERE
        values = self._evaluate(self._rows.take(np.array([row])), later=later)
        return row if values[0] > _WORST else NOWHERE

    def scores(self) -> list[Floats]:
        """How good nodes would be if just enough pods had left them: ranked scores first, the sum of the others last."""
        rows = self._rows
        limit = np.maximum(rows.allocatable - self._shape.vector, 0)
        used = np.minimum(rows.used - rows.releasing, limit)
        left = Rows(rows.index, rows.allocatable, used, np.zeros_like(used), rows.pipelined)
        total = self._fixed_score
        for scoring in self._row_scores:
            score = scoring.score(self.pods, left)
            if score is not None:
                total = total + score
        return [*(self._scored(point, left) for point, _ in self._ranked), total]

    def taken(self, row: int) -> None:
        """Note that the last entry of the log is a pod of this class, placed on this row."""
        self._own = row

    def _choose(self, task: Task, values: Floats) -> int:
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
        if self._is_wide:
            self._ranked = [
                (point, column if point.scope == "fixed" else self._scored(point, self._rows))
                for point, column in self._ranked
            ]
            self._total = self._evaluate(self._rows)
            return
        touched = self._log[seen:count]
        if count - seen == 1 and own == touched[0]:
            self._follow(own)
        elif count - seen > _MANY:
            self._ahead.clear()
            self._total = self._evaluate(self._rows)
        else:
            rows = np.array(sorted(set(touched)), dtype=np.int64)
            for row in rows.tolist():
                self._ahead.pop(row, None)
            self._total[rows] = self._evaluate(self._rows.take(rows))

    def _scored(self, point: ScorePoint, rows: Rows) -> Floats:
        score = point.score(self.pods, rows)
        return np.zeros(len(rows)) if score is None else score

    def _follow(self, row: int) -> None:
        """A pod of this class has just been put on a row: look up or compute its next values."""
        steps = self._ahead.get(row)
        if not steps:
            count = 1 if self._row_filters else _AHEAD
            rows = self._rows.take(np.full(count, row, dtype=np.int64))
            rows.used = rows.used + np.arange(count)[:, None] * self._shape.vector
            steps = self._evaluate(rows)[::-1].tolist()
            self._ahead[row] = steps
        self._total[row] = steps.pop()

    def _evaluate(self, rows: Rows, *, later: bool = False) -> Floats:
        if later:
            rows = rows.later()
        index = rows.index
        allowed = self.pods.allowed[index]
        for filtering in self._row_filters:
            verdict = filtering.judge(self.pods, rows)
            if verdict is not None:
                allowed = allowed & (verdict.codes == 0)
        for need in self._shape.needs:
            if not later:
                allowed = allowed & (rows.idle(need.column) >= need.amount)
            if later or self._ledger.promises:
                allowed = allowed & (rows.future_idle(need.column) >= need.amount)
        total = self._fixed_score[index]
        for scoring in self._row_scores:
            score = scoring.score(self.pods, rows)
            if score is not None:
                total = total + score
        return np.where(allowed, total, _WORST)

    # -- explaining --------------------------------------------------------------------------

    def why_not(self) -> FitFailure:
        """Why no node would do, by the first reason of each."""
        if self._failure is not None and self._failure[0] == len(self._log):
            return self._failure[1]
        codes: Ints = np.zeros(len(self._rows), dtype=np.int64)
        texts: list[str] = []
        verdicts = list(self._fixed)
        for filtering in self._row_filters:
            verdict = filtering.judge(self.pods, self._rows)
            if verdict is not None:
                verdicts.append(verdict)
        for verdict in verdicts:
            shifted = np.where(verdict.codes > 0, verdict.codes + len(texts), 0)
            codes = np.where(codes > 0, codes, shifted)
            texts.extend(verdict.texts)
        for need in self._shape.needs:
            lacking = self._rows.future_idle(need.column) < need.amount
            texts.append(f"Insufficient {need.name}")
            codes = np.where((codes == 0) & lacking, len(texts), codes)
        failure = histogram(codes, texts, self._names)
        self._failure = (len(self._log), failure)
        return failure
