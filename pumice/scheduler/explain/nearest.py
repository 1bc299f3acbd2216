"""How close a pod was to being placed: the largest free resources, and nodes that are too small even if empty.

It is computed when the pod fails, because the rows change with the next pod.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from pumice.api.messages import listed
from pumice.api.quantities import MILLI, format_milli
from pumice.scheduler.explain.deficits import amount_text
from pumice.scheduler.model.axis import CPU, Bools, Floats
from pumice.scheduler.model.free_room import FreeColumn, FreeColumns
from pumice.scheduler.model.shapes import Need


class NearestNode(msgspec.Struct, frozen=True):
    """What a pod asked for, and the node that came nearest to it.

    The largest free place is on the node on which the scarcest resource covers the largest part of the request.

    Attributes:
        needs: What one pod asks for.
        scarcest: The scarcest resource on that node; None when no node is left to compare.
        there: What was free of it there, in units of its column.
        candidates: Nodes that no rule excludes.
        too_small: How many of these lack something even when they are empty.
        promised: Those of them that have room, but have promised it to other pods.
        absent: Resources that it asks for and no node has.
    """

    needs: Sequence[Need]
    scarcest: Need | None = None
    there: int = 0
    node: str = ""
    nodes: int = 0
    candidates: int = 0
    too_small: int = 0
    promised: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    @property
    def asked(self) -> dict[str, str]:
        """What one pod asks for, quantities by resource."""
        return {need.name: amount(need.column, need.amount) for need in self.needs}

    @property
    def resource(self) -> str:
        """Name of the scarcest resource; empty when no node is left to compare."""
        return self.scarcest.name if self.scarcest else ""

    @property
    def free(self) -> str:
        """What was free of it, as a quantity."""
        return amount(self.scarcest.column, self.there) if self.scarcest else ""

    @property
    def details(self) -> dict[str, Any]:
        """The values ready for JSON."""
        place = {"node": self.node, "resource": self.resource, "free": self.free}
        return {
            "asked": self.asked,
            "largestFree": place if self.node else None,
            "candidates": self.candidates,
            "tooSmall": self.too_small,
        }

    @property
    def request(self) -> str:
        """Request of one pod for the scarcest resource; for all resources if no node is left to compare."""
        if self.resource == "pods":
            return "1 pod slot"
        named = [self.scarcest] if self.scarcest else [n for n in self.needs if n.name != "pods"]
        if self.absent:
            named = [need for need in self.needs if need.name in self.absent]
        asked = [f"{_shown(need, need.amount)} {need.name}" for need in named]
        return listed(asked) or "1 pod slot"

    def place(self, *, is_left: bool) -> str:
        """The largest free resources as text, also what is left after pods of the same gang; empty without a node."""
        if not self.node:
            return ""
        if self.absent:
            return f"no node has {listed(self.absent, ' or ')}"
        which = "largest place left" if is_left else "largest free place"
        free = _shown(self.scarcest, self.there) if self.scarcest else ""
        what = f"{free} pod slots" if self.resource == "pods" else f"{free} {self.resource}"
        text = f"the {which} is {what} ({self.node})"
        if self.too_small:
            size = "too small" if self.too_small == self.candidates else "too small even when empty"
            text += f"; {nodes_of(self.too_small)} {'is' if self.too_small == 1 else 'are'} {size}"
        return text


def nearest(
    room: FreeColumns, needs: Sequence[Need], names: Sequence[str], excluded: Bools, candidates: int
) -> NearestNode:
    """Compare nodes with a request for which none has room; a rule excludes some, the others are candidates."""
    if not candidates:
        return NearestNode(needs, nodes=len(names))
    columns = room.columns(needs)
    most = [each.most / max(need.amount, 1) for each, need in zip(columns, needs, strict=True)]
    row, promised = _covered(room, needs, columns, most, excluded, candidates)
    there = [int(each.later[row]) for each in columns]
    parts = [has / max(need.amount, 1) for has, need in zip(there, needs, strict=True)]
    scarcest = parts.index(min(parts))
    return NearestNode(
        needs=needs,
        scarcest=needs[scarcest],
        there=max(there[scarcest], 0),
        node=names[row],
        nodes=len(names),
        candidates=candidates,
        too_small=_too_small(room, needs, columns, excluded, candidates),
        promised=tuple(names[row] for row in promised),
        absent=tuple(
            need.name
            for each, need in zip(columns, needs, strict=True)
            if need.amount and not each.largest and need.name != "pods"
        ),
    )


def _covered(
    room: FreeColumns,
    needs: Sequence[Need],
    columns: Sequence[FreeColumn],
    most: Sequence[float],
    excluded: Bools,
    candidates: int,
) -> tuple[int, list[int]]:
    """The row on which the largest part of a request is covered, and rows that have promised room enough for it."""
    ceiling = min(most)
    chosen = most.index(ceiling)
    # A resource of which every node has as large a part as the best has of another one is nowhere the scarcest.
    scarce = [
        place
        for place, (each, need) in enumerate(zip(columns, needs, strict=True))
        if place == chosen or each.least / max(need.amount, 1) < ceiling
    ]
    is_covered = ceiling >= 1
    if (
        len(scarce) == 1
        and candidates == len(excluded)
        and not is_covered
        and columns[chosen].is_exact
    ):
        row, promised = columns[chosen].first, np.zeros(0, dtype=np.int64)
    else:
        covered: Floats = np.full(len(excluded), np.inf)
        for place in scarce:
            part = columns[place].later / max(needs[place].amount, 1)
            np.minimum(covered, part, out=covered)
        covered[excluded] = -np.inf
        row = int(covered.argmax())
        promised = np.flatnonzero(covered >= 1) if is_covered else np.zeros(0, dtype=np.int64)
    if room.has_promises:
        fits = ~excluded
        for need in needs:
            free = room.rows.idle(need.column) + room.rows.releasing[:, need.column]
            fits &= free >= need.amount
        promised = np.flatnonzero(fits)
    return row, promised.tolist()


def _too_small(
    room: FreeColumns,
    needs: Sequence[Need],
    columns: Sequence[FreeColumn],
    excluded: Bools,
    candidates: int,
) -> int:
    """How many nodes that no rule excludes lack something even when they are empty."""
    small: Bools | None = None
    for need, each in zip(needs, columns, strict=True):
        if need.amount > each.largest:
            return candidates
        if need.amount > each.smallest:
            lacking = room.rows.allocatable[:, need.column] < need.amount
            small = lacking if small is None else small | lacking
    return 0 if small is None else int(np.count_nonzero(small & ~excluded))


def _shown(need: Need, units: int) -> str:
    """Units of a resource for people; bytes that are no round number are rounded."""
    exact = amount(need.column, units)
    return amount_text(need.name, units) if exact.isdecimal() else exact


@lru_cache(maxsize=4096)
def amount(column: int, units: int) -> str:
    """Units of a column as a quantity: `500m`, `3`, `4Gi`."""
    return format_milli(units if column == CPU else units * MILLI)


def pods_of(count: int) -> str:
    """`1 pod`, `3 pods`."""
    return f"{count} pod{'' if count == 1 else 's'}"


def nodes_of(count: int) -> str:
    """`1 node`, `3 nodes`."""
    return f"{count} node{'' if count == 1 else 's'}"
