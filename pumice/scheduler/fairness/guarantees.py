"""Guarantees of queues, which are kept from other queues while they are unused.

The kept amounts are updated with every decision, so that a check for a pod does not depend on the number of queues.
"""

from typing import NamedTuple

import numpy as np

from pumice.scheduler.fairness.entitlements import Entitlements
from pumice.scheduler.model.axis import Ints

__all__ = ["GuaranteeConflict", "Guarantees"]


class GuaranteeConflict(NamedTuple):
    """What keeps a queue from taking something that other queues are guaranteed.

    Attributes:
        parent: Row of the queue whose children share what it may have; -1 for the cluster.
        column: Column of the resource.
        used: How much of it the children use.
        limit: How much of it they share.
        reserve: How much of the rest is kept for others.
    """

    parent: int
    column: int
    used: int
    limit: int
    reserve: int


class Guarantees:
    """Unused guarantees, updated by the decisions of a session."""

    def __init__(self, rights: Entitlements, held: Ints, total: Ints) -> None:
        """Guarantees at the beginning of a session.

        Args:
            rights: What the queues are guaranteed and may have.
            held: What each queue holds, with those below it where queues are in a tree; follows every decision.
            total: What ready nodes have, by column.
        """
        self._rights = rights
        self._held = held
        self._total = total
        self._unused: Ints = np.maximum(rights.guarantee - held, 0)
        above = np.array(rights.parents, dtype=np.int64)
        self._kept: Ints = np.zeros((len(held) + 1, held.shape[1]), dtype=np.int64)
        np.add.at(self._kept, above, self._unused)  # the last row is for queues at the top
        self._at_top: Ints = (held - rights.away)[above < 0].sum(axis=0)
        self._seen: Ints = held.copy()
        named: dict[int, Ints] = {}
        for row in np.flatnonzero(rights.guarantee.any(axis=1)).tolist():
            parent = rights.parents[row]
            named[parent] = named.get(parent, 0) + rights.guarantee[row]
        self._columns = {
            parent: tuple(np.flatnonzero(amounts).tolist()) for parent, amounts in named.items()
        }

    def __bool__(self) -> bool:
        return bool(self._columns)

    def note(self, row: int) -> None:
        """Update the amounts that a queue holds."""
        path, guarantee, held = self._rights.paths[row], self._rights.guarantee, self._held
        for each in path:
            parent = self._rights.parents[each]
            for column in self._columns.get(parent, ()):
                unused = max(guarantee.item(each, column) - held.item(each, column), 0)
                change = unused - self._unused.item(each, column)
                if change:
                    self._kept[parent, column] += change
                    self._unused[each, column] = unused
        top = path[-1]
        for column in self._columns.get(-1, ()):
            holds = held.item(top, column)
            self._at_top[column] += holds - self._seen.item(top, column)
            self._seen[top, column] = holds

    def against(self, row: int, vector: Ints) -> GuaranteeConflict | None:
        """Amounts that are kept for others and keep a queue from taking an amount."""
        guarantee, held = self._rights.guarantee, self._held
        for each in self._rights.paths[row]:
            for column in self._columns.get(self._rights.parents[each], ()):
                asks = vector.item(column)
                if not asks or held.item(each, column) + asks <= guarantee.item(each, column):
                    continue
                kept = self._of(each, column)
                if kept.reserve and kept.used + kept.reserve + asks > kept.limit:
                    return kept
        return None

    def narrow(self, row: int, room: Ints) -> None:
        """Lower what a queue may still take, by column, to what is not kept for others."""
        for each in self._rights.paths[row]:
            for column in self._columns.get(self._rights.parents[each], ()):
                kept = self._of(each, column)
                if kept.reserve:
                    own = self._unused.item(each, column)
                    free = max(own, kept.limit - kept.used - kept.reserve)
                    room[column] = min(room.item(column), free)

    def _of(self, row: int, column: int) -> GuaranteeConflict:
        parent = self._rights.parents[row]
        reserve = self._kept.item(parent, column) - self._unused.item(row, column)
        if parent < 0:
            used, limit = self._at_top.item(column), self._total.item(column)
        else:
            used, limit = self._held.item(parent, column), self._rights.real.item(parent, column)
            if limit < self._rights.capability.item(parent, column):
                away = self._rights.away.item(parent, column)
                used, limit = used - away, limit - away
        return GuaranteeConflict(parent, column, used, limit, reserve)
