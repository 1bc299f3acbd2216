"""Nodes from which volumes can be reached, as rows.

Local volumes are reached from one node each, so that there are as many different affinities as nodes. Terms that list
values of labels are therefore answered by an index of rows by value instead of by a mask over all nodes.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from pumice.api.pods import NodeSelector, NodeSelectorTerm
from pumice.api.volumes import TopologyTerm
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.facts import NodeFacts
from pumice.scheduler.model.nodes import NodeTable
from pumice.scheduler.model.selectors import NodeMatcher

_ENCODER = msgspec.json.Encoder(order="deterministic")
_NOWHERE: Ints = np.zeros(0, dtype=np.int64)


def affinity_key(selector: NodeSelector | None) -> bytes:
    """What makes two affinities one; empty for none."""
    return b"" if selector is None else _ENCODER.encode(selector)


class NodeSelection:
    """Rows of the nodes that affinities and topologies select; asked between `settle` and the next event."""

    def __init__(self, table: NodeTable, facts: NodeFacts, matcher: NodeMatcher) -> None:
        self._table = table
        self._facts = facts
        self._matcher = matcher
        self._version = -1
        self._rows: dict[bytes, Ints] = {}
        self._by_value: dict[str, dict[str, Ints]] = {}

    @property
    def version(self) -> int:
        """Grows when answers may change."""
        return self._facts.version

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self._table)

    def settle(self) -> None:
        """Follow nodes that came, went or changed."""
        self._table.settle()
        self._facts.settle()

    def row(self, node: str) -> int:
        """Row of a node; -1 when it is not there."""
        return self._table.row_of(node)

    def rows(self, key: bytes, selector: NodeSelector | None) -> Ints | None:
        """Rows of the nodes that an affinity with an `affinity_key` selects, in order; None for all. To be read only."""
        if selector is None:
            return None
        if self._version != self._facts.version:
            self._version = self._facts.version
            self._rows.clear()
            self._by_value.clear()
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = self._select(selector)
        return found

    def topology(self, key: str, terms: Sequence[TopologyTerm]) -> Bools | None:
        """Nodes on which a class provisions volumes; None for all. An empty term selects no node."""
        if not terms:
            return None
        return self._facts.cached(
            ("allowed topologies", key, _ENCODER.encode(terms)), lambda: self._topology(terms)
        )

    def _topology(self, terms: Sequence[TopologyTerm]) -> Bools:
        mask = np.zeros(len(self._table), dtype=np.bool_)
        for term in terms:
            needed = term.match_label_expressions or ()
            if needed:
                mask |= np.logical_and.reduce(
                    [self._facts.label(each.key).among(each.values or ()) for each in needed]
                )
        return mask

    def _select(self, selector: NodeSelector) -> Ints:
        terms = selector.node_selector_terms or ()
        if len(terms) == 1 and _lists_values(terms[0]):
            rows: Ints | None = None
            for each in terms[0].match_expressions or ():
                by_value = self._values(each.key)
                some = [by_value.get(value, _NOWHERE) for value in dict.fromkeys(each.values or ())]
                found = some[0] if len(some) == 1 else np.sort(np.concatenate([_NOWHERE, *some]))
                rows = found if rows is None else np.intersect1d(rows, found)
            assert rows is not None
            return rows
        return np.flatnonzero(self._matcher.selector(selector))

    def _values(self, key: str) -> dict[str, Ints]:
        """Rows by the value of a label."""
        found = self._by_value.get(key)
        if found is None:
            column = self._facts.label(key)
            order = np.argsort(column.codes, kind="stable")
            places, starts = np.unique(column.codes[order], return_index=True)
            parts = np.split(order, starts[1:]) if len(order) else []
            found = self._by_value[key] = {
                column.values[place]: rows
                for place, rows in zip(places.tolist(), parts, strict=True)
                if place >= 0
            }
        return found


def _lists_values(term: NodeSelectorTerm) -> bool:
    expressions = term.match_expressions or ()
    return (
        bool(expressions)
        and not term.match_fields
        and all(each.operator == "In" for each in expressions)
    )
