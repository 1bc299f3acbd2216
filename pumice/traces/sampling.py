"""Samples of a cluster: a row of columns for each moment.

What is idle is unusable where no pod of a gang that waits would fit. Kinds of pods are told apart by what they take and by their rules about
nodes; of kinds with the same rules those need no look that take at least as much as another. Rules about other pods do not count here.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from pumice.api.nodes import Taint
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
    """Takes samples.

    Attributes:
        samples: Those taken so far.
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
        self._rows: Rows | None = None
        self._there = self._nothing
        self._factors = np.array([1 if each == CPU else _MILLI for each in found], np.int64)
        self.samples = samples = Samples()
        tables = (samples.used, samples.capacity, samples.unusable)
        self._totals = [each for table in tables for each in _columns(table, self.resources)]
        self._three = np.tile(self._factors, len(tables))
        self._all = [*self._totals]
        self._figures: QueueValues | None = None
        self._deserved: list[list[int]] = []
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
        samples, state = self.samples, self._state
        rows = state.nodes.rows()
        words: Counter[str] = Counter()
        queues: Counter[str] = Counter()
        waiting: set[PodKind] = set()
        for key, reason in state.gangs.pending.items():
            words[reason.reason] += 1
            queues[state.jobs[key].queue] += 1
            waiting.update(kinds(key))
        if samples.moments and samples.moments[-1] == now:
            samples.moments.pop()
            for column in self._all:
                column.pop()
        place = len(samples.moments)
        samples.moments.append(now)
        if rows is not self._rows:
            self._rows, self._there = rows, rows.allocatable.sum(axis=0)[self._columns]
        held = rows.used.sum(axis=0)[self._columns]
        values = np.concatenate([held, self._there, self._idle(rows, waiting)])
        _put(self._totals, (values * self._three).tolist())
        for word in sorted(words.keys() - samples.waiting.keys()):
            samples.waiting[word] = column = array("q", bytes(8 * place))
            self._all.append(column)
        for word, column in samples.waiting.items():
            column.append(words[word])
        self._sample_queues(place, queues)

    def _sample_queues(self, place: int, waiting: Counter[str]) -> None:
        shares, figures = self._state.shares, self._state.figure("deserved")
        used = (shares.tree[:, self._columns] * self._factors).tolist()
        if figures is not self._figures and figures is not None:
            whole = np.floor(figures[:, self._columns]).astype(np.int64)
            self._deserved = (whole * self._factors).tolist()
        self._figures = figures
        deserved = None if figures is None else self._deserved
        for row, name in enumerate(shares.names):
            queue = self.samples.queues.get(name)
            if queue is None:
                queue = self.samples.queues[name] = QueueSamples()
                self._open(place, [*_columns(queue.used, self.resources), queue.waiting])
            if deserved is not None and not queue.deserved:
                self._open(place, _columns(queue.deserved, self.resources))
            _put(queue.used.values(), used[row])
            queue.waiting.append(waiting[name])
            if deserved is not None:
                _put(queue.deserved.values(), deserved[row])

    def _open(self, place: int, columns: Iterable["array[int]"]) -> None:
        """Begin columns of which nothing was known until now."""
        for column in columns:
            column.frombytes(bytes(8 * place))
            self._all.append(column)

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


def _put(columns: Iterable["array[int]"], amounts: Sequence[int]) -> None:
    for column, amount in zip(columns, amounts, strict=True):
        column.append(amount)


def _columns(table: dict[str, "array[int]"], names: Iterable[str]) -> list["array[int]"]:
    """Empty columns in a table, by name."""
    table.update({name: array("q") for name in names})
    return list(table.values())
