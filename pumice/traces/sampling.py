"""Samples of a cluster: a row of columns for each moment.

What is idle is unusable where no pod of a gang that waits would fit. Kinds of pods are told apart by what they take and by their rules about
nodes; of kinds with the same rules those need no look that take at least as much as another. Rules about other pods do not count here.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from pumice.api.nodes import Taint
from pumice.scheduler.fairness.division import in_whole_amounts
from pumice.scheduler.model.axis import CPU, Bools, Ints
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.selectors import Tolerance
from pumice.scheduler.model.shapes import Need, PodShape
from pumice.scheduler.simulate import Simulation
from pumice.traces.records import QueueSamples, Samples

_MILLI = 1000
_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_HARD = ("NoSchedule", "NoExecute")
_KNOWN_SETS = 4096
"""Sets of kinds that are remembered."""

PodKind = int
"""The number of a kind of pods."""

_Kind = tuple[bytes, tuple[Need, ...]]
"""Rules about nodes, and what a node must have room for."""

_Look = tuple[Bools, Ints, Ints]
"""Nodes that a kind may use, and the columns and amounts that it takes."""


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
        self._has_deserved = False
        self._moments = array("d")
        self._amounts = array("q")
        self._deserved = array("d")
        self._lines = array("q")
        self._words: dict[str, array[int]] = {}
        self._masks: dict[bytes, Bools] = {}
        self._kinds: dict[_Kind, PodKind] = {}
        self._looks: dict[frozenset[tuple[PodKind, ...]], list[_Look]] = {}

    def kind_of(self, shape: PodShape) -> PodKind:
        """The kind of pods of a shape."""
        rules = shape.key.placement
        if rules not in self._masks:
            self._masks[rules] = self._allowed(shape)
        return self._kinds.setdefault((rules, shape.needs), len(self._kinds))

    def capacity(self) -> dict[str, list[int]]:
        """What each node has, by resource."""
        rows = self._state.nodes.rows().allocatable[:, self._columns] * self._factors
        return dict(zip(self.resources, rows.T.tolist(), strict=True))

    def take(self, now: float, kinds: Mapping[str, tuple[PodKind, ...]]) -> None:
        """Take a sample; of several at a moment the last one counts.

        Args:
            now: The moment.
            kinds: Kinds of the pods of gangs, by their keys.
        """
        state, columns = self._state, self._columns
        rows, tree, deserved = state.nodes.rows(), state.shares.tree, state.figure("deserved")
        words: dict[str, int] = {}
        queues = dict.fromkeys(self._queues, 0)
        waiting: set[tuple[PodKind, ...]] = set()
        for key, reason in state.gangs.pending.items():
            words[reason.reason] = words.get(reason.reason, 0) + 1
            if (queue := state.jobs[key].queue) in queues:
                queues[queue] += 1
            waiting.add(kinds.get(key, ()))
        if self._moments and self._moments[-1] == now:
            self._drop_last()
        if rows is not self._rows:
            self._rows, self._there = rows, rows.allocatable.sum(axis=0)[columns]
            self._looks.clear()
        held, of_queues = np.add.reduce(rows.used).take(columns), tree.take(columns, axis=1)
        for amounts in (held, self._there, self._idle(rows, waiting), of_queues):
            self._amounts.frombytes(amounts.tobytes())
        self._has_deserved |= deserved is not None
        parts = np.zeros_like(of_queues) if deserved is None else deserved.take(columns, axis=1)
        self._deserved.frombytes(parts.astype(np.float64, copy=False).tobytes())
        self._lines.extend(queues.values())
        for word in sorted(words.keys() - self._words.keys()):
            self._words[word] = array("q", bytes(8 * len(self._moments)))
        for word, column in self._words.items():
            column.append(words.get(word, 0))
        self._moments.append(now)

    def _drop_last(self) -> None:
        """Forget the last sample."""
        count = len(self._moments)
        numbers: tuple[array[int] | array[float], ...]
        numbers = (self._moments, self._amounts, self._deserved, self._lines, *self._words.values())
        for each in numbers:
            del each[len(each) // count * (count - 1) :]

    @property
    def samples(self) -> Samples:
        """Those taken so far."""
        count, queues = len(self._moments), len(self._queues)
        shape = (count, 3 + queues, len(self.resources))
        amounts = np.array(self._amounts, np.int64).reshape(shape) * self._factors
        parts = np.array(self._deserved, np.float64).reshape(count, queues, len(self.resources))
        deserved = in_whole_amounts(parts) * self._factors
        lines = np.array(self._lines, np.int64).reshape(count, queues)

        def by_resource(table: Ints) -> "dict[str, array[int]]":
            return dict(zip(self.resources, map(_column, table.T), strict=True))

        held, there, idle = (by_resource(amounts[:, place]) for place in range(3))
        of_queues = {
            name: QueueSamples(
                by_resource(amounts[:, 3 + row]),
                by_resource(deserved[:, row]) if self._has_deserved else {},
                _column(lines[:, row]),
            )
            for row, name in enumerate(self._queues)
        }
        return Samples(self._moments[:], held, idle, there, self._words, of_queues)

    # -- what is idle and cannot be used -------------------------------------------------------

    def _idle(self, rows: Rows, waiting: set[tuple[PodKind, ...]]) -> Ints:
        """What is idle on nodes on which no waiting pod fits, by column; nothing if none waits."""
        if not waiting:
            return self._nothing
        free = (rows.allocatable - rows.used).T
        idle = np.maximum(free.take(self._columns, axis=0), 0)
        for allowed, columns, amounts in self._least(rows, frozenset(waiting)):
            enough = free.take(columns, axis=0) >= amounts
            idle *= ~(np.logical_and.reduce(enough) & allowed)
        unused: Ints = np.add.reduce(idle, axis=1)
        return unused

    def _least(self, rows: Rows, waiting: frozenset[tuple[PodKind, ...]]) -> list[_Look]:
        """The kinds of which each may fit where no other one does, without those that no node could hold if it were empty."""
        found = self._looks.get(waiting)
        if found is None:
            if len(self._looks) >= _KNOWN_SETS:
                self._looks.clear()
            numbers = {number for kinds in waiting for number in kinds}
            kinds = [kind for kind, number in self._kinds.items() if number in numbers]
            found = self._looks[waiting] = []
            for rules, needs in kinds:
                if any(
                    other == rules and less != needs and _takes_less(less, needs)
                    for other, less in kinds
                ):
                    continue
                allowed = self._masks[rules]
                columns = np.array([need.column for need in needs], np.int64)
                amounts = np.array([[need.amount] for need in needs], np.int64)
                if (allowed & (rows.allocatable.T[columns] >= amounts).all(axis=0)).any():
                    found.append((allowed, columns, amounts))
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


def _column(numbers: Ints) -> "array[int]":
    return array("q", numbers.tobytes())
