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
from pumice.scheduler.model.facts import ABSENT, NodeFacts
from pumice.scheduler.model.nodes import NodeTable

__all__ = ["NodeMatcher", "tolerates"]

_NAME_FIELD = "metadata.name"
_DECIMAL = re.compile(r"([+-]?)0*([0-9]{1,19})", re.ASCII)
_CANONICAL = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
"""How the values of taints and tolerations must be written for `Gt` and `Lt`."""


class NodeMatcher:
    """Compiles selectors to masks over the rows of the table."""

    __slots__ = ("_facts", "_table")

    def __init__(self, table: NodeTable, facts: NodeFacts) -> None:
        self._table = table
        self._facts = facts

    def labels(self, wanted: Mapping[str, str]) -> Bools:
        """Nodes that have all these labels."""
        mask = np.ones(len(self._table), dtype=np.bool_)
        for key, value in sorted(wanted.items()):
            mask &= self._facts.label(key).where(value.__eq__)
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
                return column.where(set(values).__contains__)
            case "NotIn":
                return ~column.where(set(values).__contains__)
            case "Exists":
                present: Bools = column.codes != ABSENT
                return present
            case "DoesNotExist":
                absent: Bools = column.codes == ABSENT
                return absent
            case "Gt" | "Lt" if len(values) == 1:
                bound = _integer(values[0])
                above = requirement.operator == "Gt"
                return column.where(lambda value: _beyond(_integer(value), bound, above=above))
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


def tolerates(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations accepts a taint."""
    return any(
        (not each.effect or each.effect == taint.effect)
        and (not each.key or each.key == taint.key)
        and _accepts(each, taint)
        for each in tolerations
    )


def _accepts(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration accepts the value of a taint of its key and effect."""
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return toleration.value == taint.value
        case "Gt" | "Lt" if all(map(_CANONICAL.fullmatch, (toleration.value, taint.value))):
            value, bound = _integer(taint.value), _integer(toleration.value)
            return _beyond(value, bound, above=toleration.operator == "Gt")
    return False


def _integer(text: str) -> int | None:
    """The number that Go reads in a text: decimal digits with a sign, of at most 64 bits."""
    read = _DECIMAL.fullmatch(text)
    if read is None:
        return None
    number = int(read[1] + read[2])
    return number if -(1 << 63) <= number < 1 << 63 else None


def _beyond(value: int | None, bound: int | None, *, above: bool) -> bool:
    if value is None or bound is None:
        return False
    return value > bound if above else value < bound
