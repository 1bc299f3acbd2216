"""Node selectors, node affinity and tolerations, answered for all nodes at once.

Semantics are Kubernetes' own: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/
and https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from pumice.api.nodes import Taint
from pumice.api.pods import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Toleration,
)
from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.facts import ABSENT, NodeFacts, integer
from pumice.scheduler.model.nodes import NodeTable

_NAME_FIELD = "metadata.name"
_CANONICAL = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
"""How the values of taints and tolerations must be written for `Gt` and `Lt`."""


class NodeMatcher:
    """Compiles selectors to masks over the rows of the table."""

    def __init__(self, table: NodeTable, facts: NodeFacts) -> None:
        self._table = table
        self._facts = facts

    def labels(self, wanted: Mapping[str, str]) -> Bools:
        """Nodes that have all these labels."""
        mask = np.ones(len(self._table), dtype=np.bool_)
        for key, value in sorted(wanted.items()):
            mask &= self._facts.label(key).among((value,))
            if not mask.any():
                break
        return mask

    def required(self, selector: Mapping[str, str], affinity: NodeAffinity | None) -> Bools:
        """Nodes that a pod's node selector and its required node affinity allow."""
        mask = self.labels(selector)
        required = (
            affinity.required_during_scheduling_ignored_during_execution if affinity else None
        )
        if required is not None:
            mask &= self.selector(required)
        return mask

    def selector(self, selector: NodeSelector) -> Bools:
        """Nodes for which one of the terms holds; without terms none."""
        mask = np.zeros(len(self._table), dtype=np.bool_)
        for term in selector.node_selector_terms or ():
            mask |= self.term(term)
        return mask

    def term(self, term: NodeSelectorTerm) -> Bools:
        """Nodes for which every expression of a term holds; an empty term holds nowhere."""
        expressions, fields = term.match_expressions or (), term.match_fields or ()
        if not expressions and not fields:
            return np.zeros(len(self._table), dtype=np.bool_)
        mask = np.ones(len(self._table), dtype=np.bool_)
        for requirement in expressions:
            mask &= self._expression(requirement)
        for requirement in fields:
            mask &= self._field(requirement)
        return mask

    def _expression(self, requirement: NodeSelectorRequirement) -> Bools:
        column = self._facts.label(requirement.key)
        values = requirement.values or []
        match requirement.operator:
            case "In":
                return column.among(values)
            case "NotIn":
                return ~column.among(values)
            case "Exists":
                present: Bools = column.codes != ABSENT
                return present
            case "DoesNotExist":
                absent: Bools = column.codes == ABSENT
                return absent
            case "Gt" | "Lt" if len(values) == 1:
                bound = integer(values[0])
                if bound is not None:
                    return column.beyond(bound, above=requirement.operator == "Gt")
        return np.zeros(len(self._table), dtype=np.bool_)

    def _field(self, requirement: NodeSelectorRequirement) -> Bools:
        mask = np.zeros(len(self._table), dtype=np.bool_)
        if requirement.key != _NAME_FIELD or requirement.operator not in ("In", "NotIn"):
            return mask
        for name in requirement.values or ():
            record = self._table.records.get(name)
            if record is not None and record.row >= 0:
                mask[record.row] = True
        return mask if requirement.operator == "In" else ~mask


class Tolerance:
    """The tolerations of a pod, indexed: any number of them answers for a taint at once."""

    def __init__(self, tolerations: Sequence[Toleration]) -> None:
        self._any_value: set[tuple[str, str]] = set()
        self._values: set[tuple[str, str, str]] = set()
        self._bounds: dict[tuple[str, str, bool], int] = {}
        for each in tolerations:
            match each.operator:
                case "Exists":
                    self._any_value.add((each.key, each.effect))
                case "" | "Equal":
                    self._values.add((each.key, each.effect, each.value))
                case "Gt" | "Lt":
                    self._compare(each, above=each.operator == "Gt")

    def _compare(self, toleration: Toleration, *, above: bool) -> None:
        """Keep the bound of a toleration if it accepts more than those before."""
        bound = _canonical(toleration.value)
        if bound is not None:
            place = (toleration.key, toleration.effect, above)
            known = self._bounds.get(place, bound)
            self._bounds[place] = min(known, bound) if above else max(known, bound)

    def accepts(self, taint: Taint) -> bool:
        """Whether one of the tolerations accepts a taint."""
        places = [(key, effect) for key in (taint.key, "") for effect in (taint.effect, "")]
        return any(
            place in self._any_value or (*place, taint.value) in self._values for place in places
        ) or bool(self._bounds and self._is_beyond(taint, places))

    def _is_beyond(self, taint: Taint, places: Sequence[tuple[str, str]]) -> bool:
        value = _canonical(taint.value)
        if value is None:
            return False
        for place in places:
            least, most = self._bounds.get((*place, True)), self._bounds.get((*place, False))
            if (least is not None and value > least) or (most is not None and value < most):
                return True
        return False


def _canonical(text: str) -> int | None:
    """The number in the value of a taint or toleration, which must be written in one way."""
    return integer(text) if _CANONICAL.fullmatch(text) else None
