"""Sentences."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from pumice.scheduler.explain.sentences import gang_message, group_message, histogram, unavailable
from tests.unit.scheduler.gangs import gang
from tests.unit.scheduler.scenarios import case_id, load_cases


@pytest.mark.parametrize("case", load_cases("fit_messages.yaml", "nodes"), ids=case_id)
def test_unavailable_nodes(case: dict[str, Any]) -> None:
    nodes = case["nodes"]
    assert (
        unavailable(len(nodes), Counter(nodes.values()), case.get("prefix", "")) == case["expect"]
    )


@pytest.mark.parametrize("case", load_cases("fit_messages.yaml", "gangs"), ids=case_id)
def test_gangs(case: dict[str, Any]) -> None:
    job = gang(case["min"], case["tasks"])
    origin = tuple(case["origin"]) if "origin" in case else None
    message = group_message(
        job, ready=case.get("ready", False), pending=case.get("pending", {}), origin=origin
    )
    assert message == case["expect"]


def test_gang_message() -> None:
    assert gang_message(1, 5, "because") == "1/5 tasks in gang unschedulable: because"


def test_histogram_counts_and_gives_examples() -> None:
    names = [f"n{number}" for number in range(6)]
    failure = histogram(np.array([1, 2, 1, 1, 1, 0]), ["Insufficient cpu", "cordoned"], names)
    assert failure.message == "0/6 nodes are unavailable: 1 cordoned, 4 Insufficient cpu."
    assert failure.details == {
        "nodes": 6,
        "reasons": [
            {"reason": "Insufficient cpu", "count": 4, "examples": ["n0", "n2", "n3"]},
            {"reason": "cordoned", "count": 1, "examples": ["n1"]},
        ],
    }


def test_two_codes_of_one_text_are_counted_together() -> None:
    failure = histogram(np.array([1, 2]), ["Insufficient cpu", "Insufficient cpu"], ["a", "b"])
    assert failure.counts == {"Insufficient cpu": 2}
    assert failure.examples == {"Insufficient cpu": ["a", "b"]}
