"""Selectors of nodes and tolerations equal the rules of the documentation, and are looked up instead of compared one by one."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.nodes import Taint
from pumice.api.pods import NodeSelectorRequirement, NodeSelectorTerm, Toleration
from pumice.scheduler.model import facts
from pumice.scheduler.model.selectors import Tolerance
from tests.unit.scheduler.scenarios import Scenario

NUMBERS = ["", "0", "-1", "5", "05", "7", "x", "9" * 25]
TAINTS = st.builds(
    Taint,
    key=st.sampled_from("ab"),
    value=st.sampled_from(NUMBERS),
    effect=st.sampled_from(["NoSchedule", "NoExecute"]),
)
TOLERATIONS = st.builds(
    Toleration,
    key=st.sampled_from(["", "a", "b"]),
    operator=st.sampled_from(["", "Equal", "Exists", "Gt", "Lt", "Odd"]),
    value=st.sampled_from(NUMBERS),
    effect=st.sampled_from(["", "NoSchedule", "NoExecute"]),
)


def _number(text: str) -> int | None:
    """A number in the only form that tolerations take, of 64 bits."""
    number = int(text) if re.fullmatch("0|-?[1-9][0-9]*", text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    bound, value = _number(toleration.value), _number(taint.value)
    if bound is None or value is None:
        return False
    return {"Gt": value > bound, "Lt": value < bound}.get(toleration.operator, False)


@given(st.lists(TOLERATIONS, max_size=5), TAINTS)
def test_a_taint_is_accepted_if_one_toleration_accepts_it(
    tolerations: list[Toleration], taint: Taint
) -> None:
    wanted = any(_tolerates(each, taint) for each in tolerations)
    assert Tolerance(tolerations).accepts(taint) == wanted


@given(
    st.lists(st.sampled_from(["1", "5", "007", "+9", "x", ""]) | st.none(), max_size=6),
    st.sampled_from(["In", "NotIn", "Gt", "Lt"]),
    st.lists(st.sampled_from(["1", "5", "7", "x", "zz"]), min_size=1, max_size=3),
)
def test_expressions_about_nodes_hold_as_they_do_node_by_node(
    values: list[str | None], operator: str, operands: list[str]
) -> None:
    labels = [{"l": value} if value is not None else {} for value in values]
    nodes = [[f"n{place}", 1, "1Gi", {"labels": each}] for place, each in enumerate(labels)]
    state = Scenario({"nodes": nodes}).state
    state.settle()
    requirement = NodeSelectorRequirement(key="l", operator=operator, values=operands)
    found = state.matcher.term(NodeSelectorTerm(match_expressions=[requirement]))

    def holds(value: str | None) -> bool:
        if operator in ("In", "NotIn"):
            return (value in operands) == (operator == "In")
        if value is None or len(operands) != 1 or not operands[0].isdecimal():
            return False
        if not re.fullmatch(r"\+?[0-9]+", value):
            return False
        number, bound = int(value), int(operands[0])
        return number > bound if operator == "Gt" else number < bound

    assert found.tolist() == [holds(value) for value in values]


def test_labels_are_read_as_numbers_once_for_all_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [[f"n{number}", 1, "1Gi", {"labels": {"l": str(number)}}] for number in range(50)]
    state = Scenario({"nodes": nodes}).state
    state.settle()
    read: list[str] = []

    def reading(text: str, integer: Any = facts.integer) -> int | None:
        read.append(text)
        found: int | None = integer(text)
        return found

    monkeypatch.setattr(facts, "integer", reading)
    for bound in range(20):
        requirement = NodeSelectorRequirement(key="l", operator="Gt", values=[str(bound)])
        mask = state.matcher.term(NodeSelectorTerm(match_expressions=[requirement]))
        assert np.count_nonzero(mask) == 49 - bound
    assert len(read) == 50
