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
from pumice.scheduler.model.selectors import Tolerance
from pumice.scheduler.model.shapes import Need, PodShape
from pumice.scheduler.simulate import Simulation
from pumice.traces.records import QueueSamples, Samples

__all__ = ["PodKind", "Sampler"]

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
        self._columns = [column for column in columns.values() if column is not None]
        self._factors = np.array([1 if each == CPU else _MILLI for each in self._columns], np.int64)
        self.samples = samples = Samples()
        self._used, self._unusable, self._capacity = (
            _columns(table, self.resources)
            for table in (samples.used, samples.unusable, samples.capacity)
        )
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
        place = len(samples.moments)
        if place and samples.moments[-1] == now:
            place -= 1
        else:
            samples.moments.append(now)
        self._put(self._used, place, rows.used[:, self._columns].sum(axis=0))
        self._put(self._capacity, place, rows.allocatable[:, self._columns].sum(axis=0))
        self._put(self._unusable, place, self._idle(rows.allocatable - rows.used, waiting))
        for word in words.keys() - samples.waiting.keys():
            samples.waiting[word] = array("q", bytes(8 * place))
        for word, column in samples.waiting.items():
            _set(column, place, words[word])
        self._sample_queues(place, queues)

    def _put(self, columns: Sequence["array[int]"], place: int, amounts: Ints) -> None:
        for column, amount in zip(columns, (amounts * self._factors).tolist(), strict=True):
            _set(column, place, amount)

    def _sample_queues(self, place: int, waiting: Counter[str]) -> None:
        shares, figures = self._state.shares, self._state.figures.get("deserved")
        used = (shares.tree[:, self._columns] * self._factors).tolist()
        deserved = (
            None
            if figures is None
            else (np.floor(figures[:, self._columns]).astype(np.int64) * self._factors).tolist()
        )
        for row, name in enumerate(shares.names):
            queue = self.samples.queues.get(name)
            if queue is None:
                queue = self.samples.queues[name] = QueueSamples()
                for column in (*_columns(queue.used, self.resources), queue.waiting):
                    column.frombytes(bytes(8 * place))
            if deserved is not None and not queue.deserved:
                for column in _columns(queue.deserved, self.resources):
                    column.frombytes(bytes(8 * place))
            for column, amount in zip(queue.used.values(), used[row], strict=True):
                _set(column, place, amount)
            _set(queue.waiting, place, waiting[name])
            if deserved is not None:
                for column, amount in zip(queue.deserved.values(), deserved[row], strict=True):
                    _set(column, place, amount)

    # -- what is idle and cannot be used -------------------------------------------------------

    def _idle(self, free: Ints, waiting: set[PodKind]) -> Ints:
        """What is idle on nodes on which no waiting pod fits, by column; nothing if none waits."""
        if not waiting:
            return np.zeros(len(self._columns), np.int64)
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


def _columns(table: dict[str, "array[int]"], names: Iterable[str]) -> list["array[int]"]:
    """Empty columns in a table, by name."""
    table.update({name: array("q") for name in names})
    return list(table.values())


def _set(column: "array[int]", place: int, value: int) -> None:
    if place == len(column):
        column.append(value)
    else:
        column[place] = value
