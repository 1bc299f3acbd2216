"""Why nodes cannot be used, counted by reason, and reasons as sentences and as data; the wording is Volcano's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from pumice.api.messages import listed
from pumice.scheduler.explain.nearest import NearestNode, nodes_of
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.free_room import FreeColumns
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.shapes import Need
from pumice.scheduler.model.tasks import TITLES
from pumice.scheduler.points import FilterResult

INSUFFICIENT = "Insufficient "
"""How a reason begins that is only a matter of room."""

EXAMPLES = 3
"""How many nodes or gangs are named as examples."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """How many nodes were refused for which reason; shared by failures that differ in their requests alone.

    Attributes:
        nodes: Nodes there are.
        counts: How many were refused for which reason.
        examples: The first few of them by name.
        message: `0/3 nodes are unavailable: 1 Insufficient cpu, 2 …`.
    """

    nodes: int
    counts: Mapping[str, int]
    examples: Mapping[str, Sequence[str]]
    message: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Make the message."""
        object.__setattr__(self, "message", unavailable(self.nodes, self.counts))

    @property
    def details(self) -> dict[str, Any]:
        """The values ready for JSON."""
        return {
            "nodes": self.nodes,
            "reasons": [
                {"reason": text, "count": count, "examples": list(self.examples[text])}
                for text, count in sorted(self.counts.items())
            ],
        }


class FitFailure(msgspec.Struct, frozen=True):
    """Why no node can be used.

    Attributes:
        refusals: How many nodes were refused for which reason.
        nearest: How near the pod came to a place; None where this was not computed.
    """

    refusals: Refusals
    nearest: NearestNode | None = None


def counted(counts: Mapping[str, int]) -> list[str]:
    """`<count> <reason>` for each reason, sorted as text including the count."""
    return sorted(f"{count} {what}" for what, count in counts.items() if count)


def unavailable(nodes: int, counts: Mapping[str, int], prefix: str = "") -> str:
    """Volcano's summary of the nodes that were refused."""
    start = prefix or f"0/{nodes} nodes are unavailable"
    return f"{start}: {listed(counted(counts))}." if counts else start


def group_message(
    job: JobInfo, *, ready: bool, pending: Mapping[str, int], origin: tuple[str, str] | None = None
) -> str:
    """What the pods of a gang are doing, and which of them started the trouble.

    Args:
        job: The gang.
        ready: Whether its minimum is reached.
        pending: How many waiting pods have which verdict (`Schedulable`, `Unschedulable`).
        origin: Name of the first pod without a node, and why; an empty name for a reason of the whole gang.
    """
    text = _states(ready, job.min_member, tuple(job.counts), tuple(pending.items()))
    if origin is not None:
        name, why = origin
        text += f". Origin reason is {name}: {why}" if name else f". Origin reason is: {why}"
    return text


@lru_cache(maxsize=256)
def _states(
    ready: bool, min_member: int, pods: tuple[int, ...], pending: tuple[tuple[str, int], ...]
) -> str:
    """The states of a gang's pods, the same for many gangs; arguments as for `group_message`, pods by status."""
    counts = {title: pods[status] for status, title in TITLES.items()}
    parts = sorted([*counted(counts), f"{min_member} minAvailable"])
    text = f"pod group is {'ready' if ready else 'not ready'}, {listed(parts)}"
    waiting = counted(dict(pending))
    return f"{text}; Pending: {listed(waiting)}" if waiting else text


def gang_message(unschedulable: int, total: int, why: str) -> str:
    """`2/6 tasks in gang unschedulable: …`."""
    return f"{unschedulable}/{total} tasks in gang unschedulable: {why}"


def fit_summary(
    failure: FitFailure, pods: int, placed: int = 0, promised: tuple[int, Sequence[str]] = (0, ())
) -> str:
    """For people: `needs 4 × 3 cpu; the largest free place is 1 cpu (node-1); 3 nodes are too small`.

    Args:
        failure: Why no node would do.
        pods: Pods of this kind that the gang needs.
        placed: How many pods of the gang would have had a place.
        promised: How many nodes have promised room that it could use to other gangs, and to which.
    """
    near = failure.nearest
    if near is None:
        return failure.refusals.message
    parts = [f"needs {pods} × {near.request}" if pods > 1 else f"needs {near.request}"]
    if placed:
        parts.append(f"{placed} {'pod has' if placed == 1 else 'pods have'} a place")
    if near.node:
        parts.append(near.place(is_left=placed > 0))
    elif not near.nodes:
        parts.append("the cluster has no nodes")
    count, gangs = promised
    if gangs:
        those = ", ".join(gangs[:EXAMPLES]) + (", …" if len(gangs) > EXAMPLES else "")
        has = "has" if count == 1 else "have"
        parts.append(f"{nodes_of(count)} {has} room that is promised to {those}")
    ruled_out = near.nodes - near.candidates
    if ruled_out:
        rules = {
            text: count
            for text, count in failure.refusals.counts.items()
            if not text.startswith(INSUFFICIENT)
        }
        excluding = listed(counted(rules))
        if near.node:
            kind = "other node is" if ruled_out == 1 else "other nodes are"
            parts.append(f"{ruled_out} {kind} excluded: {excluding}")
        else:
            others = " for the others" if placed else ""
            parts.append(f"all nodes are excluded{others}: {excluding}")
    return "; ".join(parts)


class Objections:
    """Why rules exclude nodes, by the first reason of each.

    Attributes:
        codes: For each node 1 + the place of its reason in `texts`; 0 where no rule excludes it.
        excluded: Nodes that a rule excludes.
        candidates: Number of the others.
    """

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
