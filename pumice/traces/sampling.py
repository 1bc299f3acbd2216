"""Samples of a cluster: a row of columns for each moment.

What is idle is unusable where no pod of a gang that waits would fit. Kinds of pods are told apart by what they take and by their rules about
nodes; of kinds with the same rules those need no look that take at least as much as another. Rules about other pods do not count here.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from pumice.api.nodes import Taint
from pumice.scheduler.fairness.division import in_whole_amounts
from pumice.scheduler.model.axis import CPU, Bools, Ints
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.selectors import Tolerance
from pumice.scheduler.model.shapes import Need, PodShape
from pumice.scheduler.simulate import Simulation
from pumice.scheduler.state.watched_cluster import QueueValues
from pumice.traces.records import QueueSamples, Samples

_MILLI = 1000
_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_HARD = ("NoSchedule", "NoExecute")
_KNOWN_SETS = 4096
"""Sets of kinds that are remembered."""

PodKind = tuple[bytes, tuple[Need, ...]]
"""Rules about nodes, and what a node must have room for."""

_Look = tuple[Bools, tuple[Need, ...]]
"""Nodes that a kind may use, and what it takes."""


class Sampler:
    """Takes samples; the queues stay as they are at its beginning.

    Attributes:
        resources: The resources that are sampled: those that jobs request, as far as nodes have them.
    """

    def __init__(self, simulation: Simulation, resources: Iterable[str]) -> None:
        """Begin.

        Args:
            simulation: The cluster.
            resources: Names of resources that jobs request.
        """
        self._state = state = simulation.state
        state.settle()
        columns = {name: state.axis.find(name) for name in sorted(resources)}
        self.resources = [name for name, column in columns.items() if column is not None]
        found = [column for column in columns.values() if column is not None]
        self._columns = np.array(found, np.int64)
        self._nothing = np.zeros(len(found), np.int64)
        self._factors = np.array([1 if each == CPU else _MILLI for each in found], np.int64)
        self._rows: Rows | None = None
        self._there = self._nothing
        self._queues = state.shares.names
        self._figures: QueueValues | None = None
        self._deserved = self._undeserved = np.zeros(len(found) * len(self._queues), np.int64)
        self._all_factors = np.tile(self._factors, 3 + 2 * len(self._queues))
        self._width = len(self._all_factors) + len(self._queues)
        self._moments = array("d")
        self._numbers = array("q")
        self._words: dict[str, array[int]] = {}
        self._masks: dict[bytes, Bools] = {}
        self._looks: dict[frozenset[PodKind], list[_Look]] = {}

    def kind_of(self, shape: PodShape) -> PodKind:
        """The kind of pods of a shape."""
        rules = shape.key.placement
        if rules not in self._masks:
            self._masks[rules] = self._allowed(shape)
        return rules, shape.needs

    def capacity(self) -> dict[str, list[int]]:
        """What each node has, by resource."""
        rows = self._state.nodes.rows().allocatable[:, self._columns] * self._factors
        return dict(zip(self.resources, rows.T.tolist(), strict=True))

    def take(self, now: float, kinds: Callable[[str], Iterable[PodKind]]) -> None:
        """Take a sample; of several at a moment the last one counts.

        Args:
            now: The moment.
            kinds: Kinds of the pods of a waiting gang, by its key.
        """
        state = self._state
        rows, tree, figures = state.nodes.rows(), state.shares.tree, state.figure("deserved")
        words: Counter[str] = Counter()
        queues: Counter[str] = Counter()
        waiting: set[PodKind] = set()
        for key, reason in state.gangs.pending.items():
            words[reason.reason] += 1
            queues[state.jobs[key].queue] += 1
            waiting.update(kinds(key))
        if self._moments and self._moments[-1] == now:
            self._moments.pop()
            del self._numbers[-self._width :]
            for column in self._words.values():
                column.pop()
        if rows is not self._rows:
            self._rows, self._there = rows, rows.allocatable.sum(axis=0)[self._columns]
        if figures is not self._figures and figures is not None:
            self._figures = figures
            self._deserved = in_whole_amounts(figures[:, self._columns]).ravel()
        held, of_queues = rows.used.sum(axis=0)[self._columns], tree[:, self._columns].ravel()
        deserved = self._undeserved if figures is None else self._deserved
        amounts = [held, self._there, self._idle(rows, waiting), of_queues, deserved]
        for word in sorted(words.keys() - self._words.keys()):
            self._words[word] = array("q", bytes(8 * len(self._moments)))
        self._moments.append(now)
        self._numbers.frombytes((np.concatenate(amounts) * self._all_factors).tobytes())
        self._numbers.extend([queues[name] for name in self._queues])
        for word, column in self._words.items():
            column.append(words[word])

    @property
    def samples(self) -> Samples:
        """Those taken so far."""
        table = np.array(self._numbers, np.int64).reshape(-1, self._width)
        columns = iter([array("q", column.tobytes()) for column in table.T])

        def amounts() -> "dict[str, array[int]]":
            return {name: next(columns) for name in self.resources}

        found = Samples(self._moments[:], amounts(), waiting=self._words)
        found.capacity, found.unusable = amounts(), amounts()
        found.queues = {name: QueueSamples(amounts()) for name in self._queues}
        for queue in found.queues.values():
            deserved = amounts()
            queue.deserved = {} if self._figures is None else deserved
        for queue in found.queues.values():
            queue.waiting = next(columns)
        return found

    # -- what is idle and cannot be used -------------------------------------------------------

    def _idle(self, rows: Rows, waiting: set[PodKind]) -> Ints:
        """What is idle on nodes on which no waiting pod fits, by column; nothing if none waits."""
        if not waiting:
            return self._nothing
        free = rows.allocatable - rows.used
        fits = np.zeros(len(free), np.bool_)
        for allowed, needs in self._least(frozenset(waiting)):
            found = allowed
            for need in needs:
                found = found & (free[:, need.column] >= need.amount)
            fits |= found
        idle: Ints = np.maximum(free[~fits][:, self._columns], 0).sum(axis=0)
        return idle

    def _least(self, kinds: frozenset[PodKind]) -> list[_Look]:
        """The kinds of which each may fit where no other one does."""
        found = self._looks.get(kinds)
        if found is None:
            if len(self._looks) >= _KNOWN_SETS:
                self._looks.clear()
            ordered = sorted(kinds)
            found = self._looks[kinds] = [
                (self._masks[rules], needs)
                for rules, needs in ordered
                if not any(
                    other == rules and less != needs and _takes_less(less, needs)
                    for other, less in ordered
                )
            ]
        return found

    def _allowed(self, shape: PodShape) -> Bools:
        """Nodes that selector, affinity and tolerations of a shape allow."""
        facts = self._state.facts
        allowed = self._state.matcher.required(shape.node_selector, shape.node_affinity)
        tolerance = Tolerance(shape.tolerations)
        if not tolerance.accepts(_CORDON):
            allowed = allowed & ~facts.unschedulable
        accepted = np.array(
            [
                all(taint.effect not in _HARD or tolerance.accepts(taint) for taint in taints)
                for taints in facts.taint_sets
            ],
            np.bool_,
        )
        return allowed & accepted[facts.taint_codes]


def _takes_less(one: Sequence[Need], other: Sequence[Need]) -> bool:
    """Whether one kind fits wherever another one does, by amounts."""
    amounts = {need.column: need.amount for need in other}
    return all(amounts.get(need.column, 0) >= need.amount for need in one)
