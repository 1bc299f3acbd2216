"""Why nodes cannot be used: objections of filters, and resources that the other nodes lack, counted by reason."""

from collections.abc import Sequence

import numpy as np

from pumice.scheduler.explain.sentences import EXAMPLES, INSUFFICIENT, Refusals
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.free_columns import FreeColumns
from pumice.scheduler.model.shapes import Need
from pumice.scheduler.points import FilterResult

__all__ = ["Objections", "histogram"]


class Objections:
    """Why rules exclude nodes, by the first reason of each.

    Attributes:
        codes: For each node 1 + the place of its reason in `texts`; 0 where no rule excludes it.
        texts: The reasons.
        excluded: Nodes that a rule excludes.
        candidates: Number of the others.
    """

    __slots__ = ("_alike", "candidates", "codes", "excluded", "texts")

    def __init__(self, verdicts: Sequence[FilterResult], count: int) -> None:
        codes: Ints = np.zeros(count, dtype=np.int64)
        texts: list[str] = []
        for verdict in verdicts:
            shifted = np.where(verdict.codes > 0, verdict.codes + len(texts), 0)
            codes = np.where(codes > 0, codes, shifted)
            texts.extend(verdict.texts)
        self.codes = codes
        self.texts = texts
        self.excluded: Bools = codes > 0
        self.candidates = count - int(np.count_nonzero(self.excluded))
        self._alike: dict[str, Refusals] = {}

    def with_room(self, needs: Sequence[Need], room: FreeColumns, names: Sequence[str]) -> Refusals:
        """The same with what the other nodes lack."""
        codes, texts = self.codes, list(self.texts)
        is_partial = False
        columns = room.columns(needs) if self.candidates else ()
        for need, column in zip(needs, columns, strict=False):
            texts.append(f"{INSUFFICIENT}{need.name}")
            if need.amount <= column.least:
                continue
            is_everywhere = need.amount > column.most
            if is_everywhere and not is_partial and texts[-1] in self._alike:
                return self._alike[texts[-1]]
            open_: Bools = codes == 0
            lacking = open_ if is_everywhere else open_ & (column.later < need.amount)
            codes = np.where(lacking, len(texts), codes)
            if is_everywhere:
                found = histogram(codes, texts, names)
                if not is_partial:
                    self._alike[texts[-1]] = found
                return found
            is_partial = True
        return histogram(codes, texts, names)


def histogram(codes: Ints, texts: Sequence[str], names: Sequence[str]) -> Refusals:
    """Count reasons: `codes` holds for each node 1 + the place of its reason in `texts`."""
    counts: dict[str, int] = {}
    examples: dict[str, list[str]] = {}
    for code, count in enumerate(np.bincount(codes, minlength=len(texts) + 1).tolist()):
        if code and count:
            text = texts[code - 1]
            counts[text] = counts.get(text, 0) + count
            rows = np.flatnonzero(codes == code)[:EXAMPLES].tolist()
            examples.setdefault(text, []).extend(names[row] for row in rows)
    return Refusals(len(names), counts, examples)
