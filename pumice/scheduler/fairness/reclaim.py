"""Which pods of other queues may go, by what their queues deserve.

A pod may go if its queue holds more than it deserves of a resource that is asked for, and would keep its guarantee without
the pod. Pods that hold nothing of what their queue deserves may go as well.
"""

import numpy as np

from pumice.scheduler.fairness.entitlements import Entitlements
from pumice.scheduler.model.axis import PODS, SCORED_CPU, SCORED_MEMORY, Bools, Ints
from pumice.scheduler.model.candidates import Candidates, Preemptor

__all__ = ["over_deserved"]


def over_deserved(
    preemptor: Preemptor,
    candidates: Candidates,
    rights: Entitlements,
    held: Ints,
    levels: int,
    within: int | None,
) -> Bools:
    """Candidates that may go for a pod of another queue.

    Queues above both sides keep what they hold, so they are not looked at.

    Args:
        preemptor: The pod, and its job, whose queue is known.
        candidates: Pods that might have to go.
        rights: What the queues deserve.
        held: What they hold, with those below them where queues are in a tree.
        levels: Levels above its queue on which a candidate's queues must hold more than they deserve, too.
        within: Row of a queue that is full: only pods of queues below it make room for the preemptor.
    """
    if not len(candidates):
        return np.zeros(0, dtype=np.bool_)
    needs = preemptor.task.shape.needs
    wanted = np.array([need.column for need in needs if need.column != PODS], dtype=np.int64)
    common = set(rights.paths[preemptor.job.row]) if preemptor.job.row >= 0 else set()
    may_go = candidates.queue >= 0
    if within is not None:
        inside = [row for row, path in enumerate(rights.paths) if within in path]
        may_go &= np.isin(candidates.queue, inside)
    ancestors = _ancestors(candidates.queue, rights, common)
    for level in range(ancestors.shape[1]):
        rows = ancestors[:, level]
        is_there = rows >= 0
        check = _Check(rows, rights, held, wanted, candidates)
        answer = check.keeps_guarantee() if level > levels else check.may_go()
        may_go &= answer | ~is_there
    return may_go


def _ancestors(queues: Ints, rights: Entitlements, common: set[int]) -> Ints:
    """Rows of the queue of each candidate and of those above it that are not common; -1 beyond."""
    known = np.unique(queues)
    paths = {
        row: [each for each in rights.paths[row] if each not in common] if row >= 0 else []
        for row in known.tolist()
    }
    depth = max((len(path) for path in paths.values()), default=0)
    table = np.full((len(known), max(depth, 1)), -1, dtype=np.int64)
    for place, path in enumerate(paths.values()):
        table[place, : len(path)] = path
    rows: Ints = table[np.searchsorted(known, queues)]
    return rows


class _Check:
    """Candidates against the queue that each of them has on one level."""

    def __init__(
        self,
        rows: Ints,
        rights: Entitlements,
        held: Ints,
        wanted: Ints,
        candidates: Candidates,
    ) -> None:
        self._rows = rows
        self._wanted = wanted
        self._candidates = candidates
        self._vectors = candidates.vectors[:, : held.shape[1]]
        self._held = held[rows]
        self._deserved = rights.deserved[rows]
        self._guarantee = rights.guarantee[rows]
        self._named = rights.named[rows]
        shared = self._named & (self._vectors > 0)
        shared[:, [PODS, SCORED_CPU, SCORED_MEMORY]] = False
        self._holds_nothing_deserved = ~shared.any(axis=1)

    def may_go(self) -> Bools:
        """Those whose queue holds more than it deserves and keeps its guarantee, after those that go before them."""
        possible = self._holds_nothing_deserved | self._exceeds(self._held)
        held = self._held - self._taken(possible)
        exceeds = self._holds_nothing_deserved | self._exceeds(held)
        allowed: Bools = np.logical_and.reduce([possible, exceeds, self._keeps(held)])
        return allowed

    def keeps_guarantee(self) -> Bools:
        """Those whose queue keeps its guarantee, after those that go before them."""
        if not self._guarantee.any():
            return np.ones(len(self._rows), dtype=np.bool_)
        return self._keeps(self._held - self._taken(np.ones(len(self._rows), dtype=np.bool_)))

    def _taken(self, possible: Bools) -> Ints:
        """What candidates of the same queue that may go earlier take."""
        alone = -2 - np.arange(len(self._rows))
        before = self._candidates.taken_before(np.where(possible, self._rows, alone))
        taken: Ints = before[:, : self._held.shape[1]]
        return taken

    def _exceeds(self, held: Ints) -> Bools:
        over = self._named & (held > self._deserved)
        exceeds: Bools = np.any(over[:, self._wanted], axis=1)
        return exceeds

    def _keeps(self, held: Ints) -> Bools:
        rest = held - self._vectors
        kept = np.logical_or(rest >= self._guarantee, self._vectors == 0)
        keeps: Bools = np.all(kept, axis=1)
        return keeps
