"""Rows of the node table: for filters and scores, in the present state or a future one, and those that a session has changed."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from pumice.scheduler.model.axis import Bools, Floats, Ints


class TouchedRows:
    """The rows that a session changes, and what else its decisions move.

    Attributes:
        log: Rows that have changed, also before the session, in order; one that has changed twice is there twice.
        promises: How many pods have been promised a place, undone ones included.
        keys_taken: How many sort keys of queues and jobs have been asked for.
        queue_epoch: Grows when the key of a queue may have become smaller than one that was taken before.
        queues: Names of the queues of the pods about which something was decided or undone; one for each decision.
        job_epoch: The same for the key of a waiting job.
    """

    def __init__(self, log: Sequence[int], are_any_leaving: Callable[[], bool]) -> None:
        self._are_any_leaving = are_any_leaving
        self.log = log
        self.promises = 0
        self.keys_taken = 0
        self.queue_epoch = 0
        self.queues: list[str] = []
        self.job_epoch = 0

    @cached_property
    def releases(self) -> bool:
        """Whether any pod is about to leave its node; only evictions by the session change it, which set it."""
        return self._are_any_leaving()


class Rows:
    """Some rows of the table, in the present or in a future state.

    Attributes:
        index: Which rows: all of them as a slice, or their numbers. A row may come more than once, each time with
            another use.
        is_later: Whether they are in the state after terminating pods are gone.
    """

    def __init__(
        self,
        index: slice | Ints,
        allocatable: Ints,
        used: Ints,
        releasing: Ints,
        pipelined: Ints,
        *,
        is_later: bool = False,
    ) -> None:
        self.index = index
        self.is_later = is_later
        self.allocatable = allocatable
        self.used = used
        self.releasing = releasing
        self.pipelined = pipelined
        self._divisors: dict[int, tuple[Floats, Bools | None]] = {}
        self._of: tuple[Rows, slice | Ints] | None = None
        self._filled: dict[tuple[int, int], Floats] | None = None

    def __len__(self) -> int:
        return len(self.allocatable)

    def take(self, index: Ints) -> "Rows":
        """Chosen rows as they are now, as a copy. Only for views of all rows."""
        return self._at(index, index)

    def one(self, row: int) -> "Rows":
        """One row, without a copy. Only for views of all rows."""
        return self._at(np.array([row]), slice(row, row + 1))

    def _at(self, index: Ints, at: slice | Ints) -> "Rows":
        parts = (self.allocatable[at], self.used[at], self.releasing[at], self.pipelined[at])
        found = Rows(index, *parts)
        found._of = self, at
        return found

    def still(self) -> "Rows":
        """The same rows while they do not change, with a cache of results."""
        found = Rows(
            self.index,
            self.allocatable,
            self.used,
            self.releasing,
            self.pipelined,
            is_later=self.is_later,
        )
        found._divisors, found._of = self._divisors, self._of
        found._filled = {}
        return found

    def later(self) -> "Rows":
        """The same rows after terminating pods are gone."""
        return Rows(
            self.index, self.allocatable, self.used, self.releasing, self.pipelined, is_later=True
        )

    def divisor(self, column: int) -> Floats:
        """What nodes have of one resource, at least 1, to divide by; to be read only."""
        return self._divided(column)[0]

    def lacking(self, column: int) -> Bools | None:
        """Nodes that have nothing of one resource; None where there are none. To be read only."""
        return self._divided(column)[1]

    def filled(self, column: int, amount: int) -> Floats:
        """How full nodes would be of one resource with so much more, in parts of what they have; to be read only.

        What a node has counts as 1 at least.
        """
        known = self._filled
        if known is not None and (column, amount) in known:
            return known[column, amount]
        found: Floats = (self.used[:, column] + amount) / self.divisor(column)
        if known is not None:
            known[column, amount] = found
        return found

    def _divided(self, column: int) -> tuple[Floats, Bools | None]:
        found = self._divisors.get(column)
        if found is None:
            if self._of is not None:
                rows, at = self._of
                among = rows.lacking(column)
                divisor, lacking = rows.divisor(column)[at], None if among is None else among[at]
            else:
                has = self.allocatable[:, column]
                divisor, lacking = np.maximum(has, 1).astype(np.float64), has == 0
            is_any = lacking is not None and lacking.any()
            found = divisor, lacking if is_any else None
            self._divisors[column] = found
        return found

    def idle(self, column: int) -> Ints:
        """What is free now, of one resource; negative where a node shrank below its use."""
        return self.allocatable[:, column] - self.used[:, column]

    def future_idle(self, column: int) -> Ints:
        """What is free once terminating pods are gone and promised places are taken."""
        return self.idle(column) + self.releasing[:, column] - self.pipelined[:, column]
