"""Pods of other queues that may be evicted, given what their queues deserve.

A pod may be evicted if its queue holds more than it deserves of a requested resource, and keeps its guarantee without
the pod. Pods that hold none of the resources that their queue deserves may be evicted as well.

A queue may hold more than it deserves of one resource and less of another. Two such queues could evict each other's pods
forever, so a pod stays if its queue could then take its place back.
"""

from typing import NamedTuple

import numpy as np

from pumice.scheduler.fairness.entitlements import Entitlements
from pumice.scheduler.model.axis import PODS, SCORED_CPU, SCORED_MEMORY, Bools, Ints
from pumice.scheduler.model.candidates import Candidates, Preemptor

_NONE = np.iinfo(np.int64).max


class ReclaimRequest(NamedTuple):
    """Properties of a preemptor that decide which pods may be evicted.

    Attributes:
        wanted: Columns of the resources that it asks for.
        exceeded: Columns of the resources of which its queue, with the pod, would hold more than it deserves.
    """

    wanted: tuple[int, ...]
    exceeded: tuple[int, ...]


def asked_by(preemptor: Preemptor, rights: Entitlements, held: Ints) -> ReclaimRequest:
    """The properties of a preemptor; arguments as for `over_deserved`."""
    row, vector = preemptor.job.row, preemptor.vector
    columns = np.flatnonzero(vector).tolist()
    wanted = tuple(each for each in columns if each not in (PODS, SCORED_CPU, SCORED_MEMORY))
    if row < 0:
        return ReclaimRequest(wanted, ())
    after = held[row] + vector[: held.shape[1]]
    over = rights.named[row] & (after > rights.deserved[row])
    return ReclaimRequest(wanted, tuple(np.flatnonzero(over).tolist()))


def over_deserved(
    preemptor: Preemptor,
    candidates: Candidates,
    rights: Entitlements,
    held: Ints,
    levels: int,
    within: int | None,
) -> Bools:
    """Candidates that may be evicted for a pod of another queue.

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
    asked = asked_by(preemptor, rights, held)
    wanted = np.array(asked.wanted, dtype=np.int64)
    common = set(rights.paths[preemptor.job.row]) if preemptor.job.row >= 0 else set()
    may_go = candidates.queue >= 0
    if within is not None:
        inside = [row for row, path in enumerate(rights.paths) if within in path]
        may_go &= np.isin(candidates.queue, inside)
    ancestors = _ancestors(candidates.queue, rights, common)
    for level in range(ancestors.shape[1]):
        rows = ancestors[:, level]
        is_there = rows >= 0
        exceeding = wanted if level <= levels else None
        may_go &= _may_go(rows, rights, held, exceeding, candidates) | ~is_there
    if asked.exceeded and may_go.any():
        may_go &= ~_comes_back(asked, candidates, rights, held, may_go)
    return may_go


def _comes_back(
    asked: ReclaimRequest, candidates: Candidates, rights: Entitlements, held: Ints, may_go: Bools
) -> Bools:
    """Candidates with whose eviction their queue could take a place back from the queue that asks.

    That queue then exceeds what it deserves. The smallest pod that asks for what is exceeded is the first to come back.
    """
    rows, vectors = candidates.queue, candidates.vectors[:, : held.shape[1]]
    returning = candidates.returning[:, : held.shape[1]]
    takes_back = np.any(vectors[:, list(asked.exceeded)] > 0, axis=1) & may_go
    alone = -2 - np.arange(len(rows))
    before = candidates.taken_before(np.where(may_go, rows, alone))[:, : held.shape[1]]
    places = np.unique(np.stack((candidates.scope, rows)), axis=1, return_inverse=True)[1].ravel()
    least = np.full((int(places.max()) + 1, held.shape[1]), _NONE)
    asks = takes_back[:, np.newaxis] & (vectors > 0)
    np.minimum.at(least, places, np.where(asks, returning, _NONE))
    left = rights.deserved[rows] - (held[rows] - before - vectors)
    is_within = rights.named[rows] & (least[places] <= left) & (least[places] < _NONE)
    is_within[:, [PODS, SCORED_CPU, SCORED_MEMORY]] = False
    back: Bools = np.any(is_within, axis=1)
    return back


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


def _may_go(
    rows: Ints,
    rights: Entitlements,
    held: Ints,
    wanted: Ints | None,
    candidates: Candidates,
) -> Bools:
    """Candidates whose queue on one level, given by row, keeps its guarantee after those that go before them.

    Unless `wanted` is None, it must also hold more than it deserves then of a resource that is wanted, or deserve nothing that the candidate holds.
    """
    width = held.shape[1]
    holds, vectors, guarantee = held[rows], candidates.vectors[:, :width], rights.guarantee[rows]
    may_go: Bools = np.ones(len(rows), dtype=np.bool_)
    if wanted is not None:
        deserved, named = rights.deserved[rows], rights.named[rows]
        shared = named & (vectors > 0)
        shared[:, [PODS, SCORED_CPU, SCORED_MEMORY]] = False
        exempt = ~shared.any(axis=1)
        may_go = np.logical_or(exempt, np.any((named & (holds > deserved))[:, wanted], axis=1))
        # Others are alone, so that they take nothing from those behind them.
        rows = np.where(may_go, rows, -2 - np.arange(len(rows)))
        left = holds - candidates.taken_before_bundle(rows)[:, :width]
        may_go &= exempt | np.any((named & (left > deserved))[:, wanted], axis=1)
    elif not guarantee.any():
        return may_go
    rest = holds - candidates.taken_before(rows)[:, :width] - vectors
    may_go &= np.all((rest >= guarantee) | (vectors == 0), axis=1)
    return may_go
