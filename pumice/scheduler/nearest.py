"""How close a pod was to being placed: the largest free resources, and nodes that are too small even if empty.

It is computed when the pod fails, because the rows change with the next pod.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pumice.api.messages import listed
from pumice.api.quantities import MILLI, format_milli
from pumice.scheduler.model.axis import CPU, Bools, Floats, Ints
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.shapes import Need

__all__ = ["NearestNode", "amount", "nearest", "nodes_of"]


@dataclass(frozen=True, slots=True)
class NearestNode:
    """What a pod asked for, and the node that came nearest to it.

    The largest free place is on the node on which the scarcest resource covers the largest part of the request.

    Attributes:
        asked: What one pod asks for, quantities by resource.
        resource: The scarcest resource on that node; empty when no node is left to compare.
        free: What was free of it there.
        node: The node.
        nodes: Nodes there are.
        candidates: Nodes that no rule excludes.
        too_small: How many of these lack something even when they are empty.
        promised: Those of them that have room, but have promised it to other pods.
    """

    asked: dict[str, str]
    resource: str = ""
    free: str = ""
    node: str = ""
    nodes: int = 0
    candidates: int = 0
    too_small: int = 0
    promised: tuple[str, ...] = ()

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
        named = [self.resource] if self.resource else [n for n in self.asked if n != "pods"]
        return listed([f"{self.asked[name]} {name}" for name in named]) or "1 pod slot"

    def place(self, *, is_left: bool) -> str:
        """The largest free resources as text; empty without a node.

        Args:
            is_left: Whether pods of the same gang were placed before.
        """
        if not self.node:
            return ""
        which = "largest place left" if is_left else "largest free place"
        what = (
            f"{self.free} pod slots" if self.resource == "pods" else f"{self.free} {self.resource}"
        )
        text = f"the {which} is {what} ({self.node})"
        if self.too_small:
            size = "too small" if self.too_small == self.candidates else "too small even when empty"
            text += f"; {nodes_of(self.too_small)} {'is' if self.too_small == 1 else 'are'} {size}"
        return text


def nearest(
    rows: Rows,
    free: Mapping[int, Ints],
    needs: Sequence[Need],
    names: Sequence[str],
    excluded: Bools,
) -> NearestNode:
    """Compare nodes with a request for which none has room.

    Args:
        rows: All nodes as they are.
        free: `Rows.future_idle` of each column that the pod asks for.
        needs: What one pod asks for.
        names: Names of the nodes by row.
        excluded: Nodes that a rule excludes.
    """
    asked = {need.name: amount(need.column, need.amount) for need in needs}
    candidates = int(len(rows) - np.count_nonzero(excluded))
    if not candidates:
        return NearestNode(asked, nodes=len(rows))
    small: Bools = np.zeros(len(rows), dtype=np.bool_)
    covered: Floats = np.full(len(rows), np.inf)
    for need in needs:
        small |= rows.allocatable[:, need.column] < need.amount
        np.minimum(covered, free[need.column] / max(need.amount, 1), out=covered)
    covered[excluded] = -np.inf
    promised: Bools = covered >= 1
    if rows.pipelined.any():
        promised = ~excluded
        for need in needs:
            promised &= rows.idle(need.column) + rows.releasing[:, need.column] >= need.amount
    row = int(covered.argmax())
    there = [int(free[need.column][row]) for need in needs]
    parts = [has / max(need.amount, 1) for has, need in zip(there, needs, strict=True)]
    scarcest = parts.index(min(parts))
    need = needs[scarcest]
    return NearestNode(
        asked=asked,
        resource=need.name,
        free=amount(need.column, max(there[scarcest], 0)),
        node=names[row],
        nodes=len(rows),
        candidates=candidates,
        too_small=int(np.count_nonzero(small & ~excluded)),
        promised=tuple(names[row] for row in np.flatnonzero(promised).tolist()),
    )


def amount(column: int, units: int) -> str:
    """Units of a column as a quantity: `500m`, `3`, `4Gi`."""
    return format_milli(units if column == CPU else units * MILLI)


def nodes_of(count: int) -> str:
    """`1 node`, `3 nodes`."""
    return f"{count} node{'' if count == 1 else 's'}"
