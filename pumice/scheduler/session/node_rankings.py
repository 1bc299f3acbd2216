"""The rankings of a session.

Pods of one class share a ranking. What nodes are worth to them is shared by classes that only rules about other pods set apart, and
what no placement changes also by those that differ in their requests.
"""

from collections.abc import Hashable
from weakref import WeakValueDictionary

import numpy as np
from msgspec import structs

from pumice.scheduler.model.free_room import FreeColumns
from pumice.scheduler.model.rows import TouchedRows
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.points import Extensions, PodClass
from pumice.scheduler.session.node_ranking import NodeRanking
from pumice.scheduler.session.node_values import FixedPart, NodeValues
from pumice.scheduler.state.watched_cluster import ClusterState
from pumice.scheduler.view import SessionView

_KEPT = 128
"""NodeRankings that are kept; beyond that the one that was used least recently is dropped, and computed again when it is needed.

A ranking that others have been used after so often has to be computed again anyway.
"""

_LASTING = 32
"""Values of nodes that are kept for later sessions, of pods that were placed last."""


class NodeRankings:
    """NodeRankings, made when they are asked for."""

    def __init__(
        self, state: ClusterState, view: SessionView, extensions: Extensions, touched: TouchedRows
    ) -> None:
        self._state = state
        self._view = view
        self._extensions = extensions
        self._touched = touched
        self._room = FreeColumns(view.rows, touched)
        self._rankings: dict[Hashable, NodeRanking] = {}
        self._values: WeakValueDictionary[Hashable, NodeValues] | None = None
        self._fixed: dict[Hashable, FixedPart] = {}
        self._kinds: dict[str, tuple[Hashable, ...]] = {}
        self._by_rules: bool | None = None

    def __len__(self) -> int:
        return len(self._rankings)

    def clear(self) -> None:
        """Drop all rankings, because the plugins' answers about nodes have changed."""
        self._rankings.clear()
        self._values = None
        self._fixed.clear()

    def alike(self, task: TaskInfo) -> Hashable:
        """Equal for pods for which the same nodes are equally good, if they ask for the same queue."""
        shape, peers = task.shape, self._state.peers
        kind = _apart_from_claims(self._state, shape) if shape.claims else shape.number
        return (kind, peers.signature(task)) if peers.is_live else kind

    def ranking(self, task: TaskInfo, queue: str, gang: str) -> NodeRanking:
        """The ranking of a pod's class; with its gang if that may use nodes that are reserved, otherwise empty."""
        key = (self.alike(task), self._kinds.get(queue) or self._kind(queue), gang)
        ranking = self._rankings.get(key)
        if ranking is None:
            if len(self._rankings) >= _KEPT:
                del self._rankings[next(iter(self._rankings))]
            values = self._values_of(task, queue, gang)
            peers = self._state.peers.class_of(task)
            pods = PodClass(task.shape, queue, values.pods.allowed, gang, peers)
            names = self._view.node_names
            ranking = NodeRanking(pods, values, self._extensions, self._touched, names, self._room)
            self._rankings[key] = ranking
        else:
            self._rankings[key] = self._rankings.pop(key)  # the last that was used
        return ranking

    def _values_of(self, task: TaskInfo, queue: str, gang: str) -> NodeValues:
        """What nodes are worth to pods of a shape, whatever they say about other pods and these about them."""
        if not self._state.peers.is_live:
            return self._new_values(task.shape, queue, gang)
        shape = task.shape
        kind: Hashable = shape.number
        if shape.peers is not None or shape.claims:
            claims = self._state.claims.alike(shape.claims)
            kind = (structs.replace(shape.key, peers=None, claims=()), claims)
        key = (kind, self._kind(queue), gang)
        if self._values is None:
            self._values = WeakValueDictionary()
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = self._new_values(shape, queue, gang)
        return found

    def _new_values(self, shape: PodShape, queue: str, gang: str) -> NodeValues:
        """What nodes are worth to pods of a shape, as the last sessions left it if that lasts."""
        fixed = self.fixed(shape, queue, gang)
        rows, extensions, touched = self._view.rows, self._extensions, self._touched
        kept, key = extensions.node_values, (shape.number, self._kind(queue), gang)
        if (first := next(iter(kept.values()), None)) is not None and first.rows is not rows:
            kept.clear()  # none of them would last, and they would hold nodes that are gone
        values: NodeValues | None = kept.pop(key, None)
        if values is None or not values.begin_again(fixed, rows, touched):
            pods = PodClass(shape, queue, fixed.allowed, gang)
            values = NodeValues(pods, fixed, rows, extensions, touched, self._room)
        if len(kept) >= _LASTING:
            del kept[next(iter(kept))]
        kept[key] = values
        return values

    def fixed(self, shape: PodShape, queue: str, gang: str) -> FixedPart:
        """What no placement changes about the nodes for pods; arguments as for `ranking`."""
        rules = self.rules_of(shape)
        key = (rules, self._kinds.get(queue) or self._kind(queue), gang)
        found = self._fixed.get(key)
        if found is None:
            if len(self._fixed) >= _KEPT:
                del self._fixed[next(iter(self._fixed))]
            rows = self._view.rows
            pods = PodClass(shape, queue, np.ones(len(rows), dtype=np.bool_), gang)
            found = self._fixed[key] = FixedPart(pods, rows, self._extensions)
        return found

    def rules_of(self, shape: PodShape) -> Hashable:
        """What of a shape decides what no placement changes about the nodes."""
        if self._by_rules is None:
            filters = [each.call for each in self._extensions.node_filter]
            scores = [each.call for each in self._extensions.node_score]
            self._by_rules = all(each.by_rules for each in filters if each.scope == "fixed")
            self._by_rules &= all(each.by_rules for each in scores if each.scope == "fixed")
        if shape.claims:
            return _apart_from_claims(self._state, shape, by_rules=self._by_rules)
        return shape.rules if self._by_rules else shape.number

    def _kind(self, queue: str) -> tuple[Hashable, ...]:
        """What sets pods of a queue apart to the filters and scores of nodes."""
        found = self._kinds.get(queue)
        if found is None:
            filters, scores = self._extensions.node_filter, self._extensions.node_score
            plugins = dict.fromkeys(
                [each.plugin for each in filters] + [each.plugin for each in scores]
            )
            kinds = self._extensions.queue_kinds
            found = tuple(
                kinds[name](queue) if name in kinds else queue for name in plugins if name
            )
            self._kinds[queue] = found
        return found


def _apart_from_claims(state: ClusterState, shape: PodShape, *, by_rules: bool = False) -> Hashable:
    """What of a shape decides about nodes: claims that ask for the same are alike, whatever their names are."""
    if not shape.claims:
        return shape.rules if by_rules else shape.number
    if by_rules:
        rest: Hashable = tuple([each for each in shape.rules if each is not shape.claims])
    else:
        rest = structs.replace(shape.key, claims=())
    return (rest, state.claims.alike(shape.claims))
