"""The tree of hierarchical dominant resource fairness.

Leaves are jobs, inner nodes come from the queues: from their annotations `volcano.sh/hierarchy` and
`volcano.sh/hierarchy-weights`, or from `spec.parent` and `spec.weight` where a queue has none. A queue goes before another
one if its path has the smaller share, divided by the weight, at the first level at which they differ.

The share of an inner node is not the sum of what its jobs hold. Children are first scaled down to the smallest share
among them, so that a child that cannot use its share does not delay its siblings. Children that are saturated, because
they have all that they asked for of a resource or ask for one that is used up, count in full and come last.

A node keeps its children in columns. After a placement only the path from the job to the root is computed again.
"""

from collections.abc import Callable, Iterable, Sequence
from math import inf

import numpy as np

from pumice.api import keys
from pumice.api.queues import Queue
from pumice.scheduler.fairness.fair_shares import DominantShare
from pumice.scheduler.model.axis import Bools, Floats, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.queue_specs import weight_of
from pumice.scheduler.model.queues import MAX_DEPTH
from pumice.scheduler.view import SessionView

NodeKey = tuple[bool, float]
"""Place of a node among its siblings: unsaturated ones first, then the smaller share by weight."""

_DIGITS = 12
"""Digits of a share that count, so that equal shares stay equal however they were summed up."""


class _Node:
    """An inner node, its children in columns: first other nodes, then jobs.

    Attributes:
        row: Its row among the children of its parent.
        held: What its children hold; what is scaled, for nodes.
        asked: What its jobs hold and ask for; nothing for nodes.
        shares: Dominant shares of its children.
        saturated: Which children can use no more.
    """

    def __init__(self, parent: "_Node | None", weight: float) -> None:
        self.parent = parent
        self.row = 0 if parent is None else len(parent.children)
        self.weight = weight
        self.children: dict[str, _Node] = {}
        self.jobs: list[JobInfo] = []
        self.key: NodeKey = (False, 0.0)

    def open(self, columns: Ints, held: Callable[[JobInfo], Ints]) -> None:
        """Make the columns, once all children are known."""
        self.jobs.sort(key=lambda job: job.key)
        count = len(self.children) + len(self.jobs)
        self.held: Floats = np.zeros((count, len(columns)))
        self.asked: Floats = np.zeros((count, len(columns)))
        self.shares: Floats = np.zeros(count)
        self.saturated: Bools = np.zeros(count, dtype=np.bool_)
        for row, job in enumerate(self.jobs, len(self.children)):
            self.held[row] = held(job)[columns]
            self.asked[row] = self.held[row] + job.pending[columns]


class ShareTree:
    """Shares of jobs and queues in the tree, kept current after each decision.

    Attributes:
        epoch: Grows when the key of a queue has become smaller.
    """

    def __init__(
        self, session: SessionView, share: DominantShare, held: Callable[[JobInfo], Ints]
    ) -> None:
        """Build the tree of a session from what jobs hold of the cluster."""
        self.epoch = 0
        self._rounds = 0
        self._jobs = session.jobs
        self._held_by = held
        self._columns, self._totals = share.columns, share.totals
        self._root = _Node(None, 1.0)
        self._paths: dict[str, list[_Node]] = {}
        self._groups: dict[str, list[str]] = {}
        self._leaves: dict[str, tuple[_Node, int]] = {}
        self._changed: dict[str, None] = {}
        self._keys: dict[str, tuple[NodeKey, ...]] = {}
        for row, name in enumerate(session.shares.names):
            queue = session.shares.queues[row]
            above = [session.shares.names[each] for each in reversed(session.shares.paths[row])]
            self._paths[name] = self._nodes_of(queue, above, session)
        self._place(session)
        self._held: Floats = np.zeros(len(self._columns))
        for node in self._nodes:
            self._held += node.held[len(node.children) :].sum(axis=0)
        self._demanding: Bools = self._held < self._totals
        self._compute_all()

    # -- building ----------------------------------------------------------------------------

    def _nodes_of(self, queue: Queue, above: list[str], session: SessionView) -> list[_Node]:
        """Nodes from below the root to that of a queue, opened where they are missing."""
        text = queue.metadata.annotation(keys.HIERARCHY)
        if text:
            names = text.split("/")[1 : MAX_DEPTH + 1]
            stated = queue.metadata.annotation(keys.HIERARCHY_WEIGHTS).split("/")[1:]
            weights = [_weight(each) for each in stated]
        else:
            names = above[1:] if above[0] == keys.ROOT_QUEUE else above
            weights = [float(weight_of(session.queues[each]) or 1) for each in names]
        self._groups[queue.metadata.name] = [keys.ROOT_QUEUE, *names] if text else above
        node, path = self._root, []
        for place, name in enumerate(names):
            weight = weights[place] if place < len(weights) else 1.0
            node = node.children.get(name) or node.children.setdefault(name, _Node(node, weight))
            path.append(node)
        return path

    def _place(self, session: SessionView) -> None:
        names = session.shares.names
        for job in session.jobs.values():
            if job.row >= 0 and (job.allocated.any() or job.pending.any()):
                path = self._paths[names[job.row]]
                (path[-1] if path else self._root).jobs.append(job)
        self._nodes = [self._root]
        for node in self._nodes:  # grows: the nodes of a level before those below it
            node.open(self._columns, self._held_by)
            for row, job in enumerate(node.jobs, len(node.children)):
                self._leaves[job.key] = (node, row)
            self._nodes.extend(node.children.values())

    # -- events ------------------------------------------------------------------------------

    def note(self, job: str) -> None:
        """Record that a job holds another amount."""
        self._changed[job] = None

    def settle(self) -> None:
        """Apply recorded changes."""
        if not self._changed:
            return
        changed, self._changed = self._changed, {}
        touched = []
        for key in changed:
            leaf = self._leaves.get(key)
            if leaf is not None:
                touched.append(self._set(*leaf, self._held_by(self._jobs[key])[self._columns]))
        self.epoch += self._update(touched)

    def _set(self, node: _Node, row: int, held: Floats | Ints) -> _Node:
        """Let a job hold something else."""
        self._held += held - node.held[row]
        node.held[row] = held
        self._judge(node, row)
        return node

    def _judge(self, node: _Node, rows: int | slice) -> None:
        """Compute shares and saturation of jobs."""
        held, asked = node.held[rows], node.asked[rows]
        if not held.size:
            return
        node.shares[rows] = (held / self._totals).max(axis=-1)
        is_full = (held >= asked) | ~self._demanding
        node.saturated[rows] = ((held > 0) & (asked > 0) & is_full).any(axis=-1)

    def _update(self, touched: Iterable[_Node]) -> bool:
        """Compute nodes and those above them again; True when the key of one has become smaller."""
        demanding = self._held < self._totals
        if (demanding != self._demanding).any():
            self._demanding = demanding
            return self._compute_all()
        shrunk = False
        for node in touched:
            at: _Node | None = node
            while at is not None:
                shrunk |= self._compute(at)
                at = at.parent
        self._keys.clear()
        return shrunk

    def _compute_all(self) -> bool:
        shrunk = False
        self._rounds += 1
        for node in reversed(self._nodes):
            self._judge(node, slice(len(node.children), None))
            shrunk |= self._compute(node)
        self._keys.clear()
        return shrunk

    def _compute(self, node: _Node) -> bool:
        """Compute a node from its children; True when its key has become smaller."""
        share, is_saturated = 0.0, False
        if len(node.shares) and len(self._totals):
            counts = node.shares > 0
            scaled = counts & ~node.saturated
            smallest = min(1.0, float(node.shares[scaled].min(initial=1.0)))
            factors = np.where(counts, 1.0, 0.0)
            np.divide(smallest, node.shares, out=factors, where=scaled)
            held = factors @ node.held
            share = float((held / self._totals).max())
            is_saturated = bool(node.saturated.all())
            if node.parent is not None:
                node.parent.held[node.row] = held
                node.parent.shares[node.row] = share
                node.parent.saturated[node.row] = is_saturated
        before, node.key = node.key, (is_saturated, round(share / node.weight, _DIGITS))
        return node.key < before

    # -- queries ---------------------------------------------------------------------------

    def groups(self, queue: str) -> list[str]:
        """Names of the nodes from the top to that of a queue: what its jobs hold counts for all of them."""
        return self._groups.get(queue, [])

    def rounds(self) -> int:
        """How often all nodes were computed."""
        self.settle()
        return self._rounds

    def key(self, queue: str) -> tuple[NodeKey, ...]:
        """Place of a queue among queues."""
        self.settle()
        found = self._keys.get(queue)
        if found is None:
            found = self._keys[queue] = tuple(node.key for node in self._paths[queue])
        return found

    def has_less(
        self, queue: str, job: JobInfo, request: Ints, others: Sequence[tuple[str, JobInfo, Ints]]
    ) -> list[bool]:
        """Whether a queue would still have the smaller share if it got a pod and each of the others lost one.

        Unlike in the order of queues, saturation does not count: a gang that gets its last pod is saturated by it.
        Each of the others, a pod of a job in a queue, is looked at alone.
        """
        self.settle()
        got = self._leaves.get(job.key)
        if got is None:
            return [False] * len(others)
        self._update([self._set(*got, got[0].held[got[1]] + request[self._columns])])
        answers = []
        for other, loser, vector in others:
            leaf = self._leaves.get(loser.key)
            if leaf is None:
                answers.append(False)
                continue
            node, row = leaf
            before = node.held[row].copy()
            self._update([self._set(node, row, before - vector[self._columns])])
            answers.append(_has_less(self._paths[queue], self._paths[other]))
            self._update([self._set(node, row, before)])
        self._update([self._set(*got, got[0].held[got[1]] - request[self._columns])])
        return answers


def _has_less(ours: Sequence[_Node], theirs: Sequence[_Node]) -> bool:
    """Whether one path has the smaller share at the first level at which they differ."""
    shares = ((left.key[1], right.key[1]) for left, right in zip(ours, theirs, strict=False))
    return next((left < right for left, right in shares if left != right), False)


def _weight(text: str) -> float:
    """A weight as annotations state it; what is less than 1 or no number counts as 1."""
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 1.0 <= weight < inf else 1.0
