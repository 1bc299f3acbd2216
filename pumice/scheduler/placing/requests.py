"""Pods that ask for one domain of the network together: a whole gang, a sub-group, or a single pod."""

from collections.abc import Callable, Collection, Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from pumice.scheduler.model.axis import Bools, Floats, Ints
from pumice.scheduler.model.free_room import Needs, least
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import ALLOCATED_LIKE, TaskInfo
from pumice.scheduler.session.session import Session
from pumice.scheduler.topology.levels import SideBySide
from pumice.scheduler.topology.limits import Limit

__all__ = ["Demand", "DomainRequest", "Placed", "held_rows", "scores"]

_SHAPES = 8
"""Shapes of which places are counted apart; of more, only those for the smallest of them are."""


class Placed(IntEnum):
    """What pods have got; the greater is the better."""

    NOTHING = 0
    PROMISES = 1
    PLACES = 2


class Demand(NamedTuple):
    """Places that must be in a domain, at least.

    Attributes:
        needs: What one pod takes at least.
        nodes: Nodes that suit it, by row.
        required: How many such pods must have a place.
    """

    needs: Needs
    nodes: Bools
    required: int


class DomainRequest:
    """Pods that are to be in one domain.

    Attributes:
        pods: Those that wait, in order; none of them has a place when a search begins.
        members: All pods of their gang or sub-group; they say where it is.
        required: How many of those that wait must have a place.
        limit: How near to each other they must be.
        placed: What they have got so far.
    """

    def __init__(
        self,
        session: Session,
        queue: str,
        pods: Sequence[TaskInfo],
        members: Collection[TaskInfo],
        required: int,
        limit: Limit,
        placed: Callable[[], Placed],
    ) -> None:
        self._session = session
        self._queue = queue
        self.pods = pods
        self.members = members
        self.required = min(required, len(pods))
        self.limit = limit
        self.placed = placed
        self._demands: list[Demand] | None = None
        self._asked: dict[str, tuple[int, int]] | None = None

    # -- what domains are asked ----------------------------------------------------------------

    @property
    def demands(self) -> list[Demand]:
        """Places that are required for each kind of pods; an upper bound says whether a domain has them."""
        if self._demands is None:
            self._demands = self._find_demands()
        return self._demands

    @property
    def asked(self) -> dict[str, tuple[int, int]]:
        """Column of each resource that the pods ask for, and the sum of what they ask for."""
        if self._asked is None:
            found: dict[str, tuple[int, int]] = {}
            for shape, count in self.shapes.items():
                for need in shape.needs:
                    _, before = found.get(need.name, (0, 0))
                    found[need.name] = need.column, before + need.amount * count
            self._asked = found
        return self._asked

    @property
    def shapes(self) -> dict[PodShape, int]:
        """Shapes of the pods, each with the number of pods."""
        counts: dict[PodShape, int] = {}
        for task in self.pods:
            counts[task.shape] = counts.get(task.shape, 0) + 1
        return counts

    def _find_demands(self) -> list[Demand]:
        counts = self.shapes
        firsts = {task.shape: task for task in reversed(self.pods)}
        masks = {
            shape: self._session.suiting(firsts[shape], self._queue)
            for shape in list(counts)[:_SHAPES]
        }
        nodes, *others = masks.values()
        if len(counts) > _SHAPES:
            nodes = np.ones_like(nodes)
        elif any(mask is not nodes for mask in others):
            nodes = np.logical_or.reduce([nodes, *others])
        found = [Demand(least(tuple(counts)), nodes, self.required)]
        if len(counts) > 1:
            for shape, mask in masks.items():
                alone = self.required - len(self.pods) + counts[shape]
                if alone > 0:
                    found.append(Demand(least((shape,)), mask, alone))
        return found

    def counts(self, demand: Demand, *, later: bool = False) -> Ints:
        """How many pods of a shape each node has room for, by what they request."""
        counts = self._session.places.counts(demand.needs, later=later)
        return counts * demand.nodes

    def held_rows(self) -> list[int]:
        """Rows of the nodes on which pods hold places."""
        return held_rows(self._session, self.members)

    def nominated_rows(self) -> list[int]:
        """Rows of the nodes for which pods are nominated that wait."""
        row_of = self._session.nominations.row
        found = (row_of(task) for task in self.pods if task.nominated)
        return [row for row in found if row >= 0]


def held_rows(session: Session, tasks: Iterable[TaskInfo]) -> list[int]:
    """Rows of the nodes on which pods hold places."""
    row_of = session.state.nodes.row_of
    held = (row_of(task.node) for task in tasks if task.status in ALLOCATED_LIKE)
    return [row for row in held if row >= 0]


class _Fit:
    """What plugins see of a request and some domains; see `points.DomainFit`."""

    def __init__(self, session: Session, request: DomainRequest, domains: SideBySide) -> None:
        self._rows = session.view.rows
        self._request = request
        self._domains = domains
        self.asked = request.asked
        self.pods = len(request.members)

    @property
    def held(self) -> Ints:
        """Pods with places in each domain."""
        rows = self._request.held_rows()
        held: Ints = np.bincount(rows, minlength=len(self._rows)) if rows else _NONE
        return self._domains.sums(held) if rows else np.zeros(len(self._domains), np.int64)

    def allocatable(self, column: int) -> Ints:
        """What each domain has of a resource."""
        return self._domains.sums(self._rows.allocatable[:, column])

    def used(self, column: int) -> Ints:
        """What pods use of it, those that are promised a place included."""
        return self._domains.sums(self._rows.used[:, column] + self._rows.pipelined[:, column])


_NONE = np.zeros(0, dtype=np.int64)


def scores(session: Session, request: DomainRequest, domains: SideBySide) -> Floats:
    """How good domains are for a request, as plugins say it; all the same without them."""
    found = np.zeros(len(domains))
    if not len(domains):
        return found
    fit = _Fit(session, request, domains)
    for each in session.extensions.domain_order:
        answer = each.call(fit)
        if answer is not None:
            found = found + answer
    return found
