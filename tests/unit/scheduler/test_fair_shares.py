"""What queues deserve: exact values, and Volcano's rounds written down from their description."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.scheduler.fairness.fair_shares import fair_shares
from tests.kit.examples import examples
from tests.unit.scheduler.scenarios import case_id, load_cases

TOLERANCE = 0.1
NO_LIMIT = 1 << 50

Vector = list[float]
Queue = dict[str, Any]


def limits_of(total: list[int], queues: dict[str, Queue]) -> dict[str, list[int]]:
    """What each queue may have: its capability, and what the guarantees of the others leave."""
    kept = [sum(q.get("guarantee", [0, 0])[d] for q in queues.values()) for d in (0, 1)]
    return {
        name: [
            min(
                queue.get("cap", [NO_LIMIT] * 2)[d],
                max(total[d] - kept[d], 0) + queue.get("guarantee", [0, 0])[d],
            )
            for d in (0, 1)
        ]
        for name, queue in queues.items()
    }


def computed(total: list[int], queues: dict[str, Queue]) -> dict[str, list[float]]:
    limits = limits_of(total, queues)
    rows = {
        "weights": [queue["w"] for queue in queues.values()],
        "requests": [queue["req"] for queue in queues.values()],
        "limits": list(limits.values()),
        "guarantees": [queue.get("guarantee", [0, 0]) for queue in queues.values()],
    }
    arrays = {name: np.array(values, dtype=np.float64) for name, values in rows.items()}
    shares = fair_shares(np.array(total, dtype=np.float64), **arrays)
    return dict(zip(queues, shares.tolist(), strict=True))


def in_rounds(total: list[int], queues: dict[str, Queue]) -> dict[str, Vector]:
    """Volcano's rounds."""
    limits = limits_of(total, queues)
    deserved = {name: [0.0] * 2 for name in queues}
    remaining = [float(each) for each in total]
    met: set[str] = set()
    while weight := sum(queue["w"] for name, queue in queues.items() if name not in met):
        change = [0.0] * 2
        for name, queue in queues.items():
            if name in met:
                continue
            old = deserved[name]
            new = []
            for d in (0, 1):
                share = old[d] + remaining[d] * queue["w"] / weight
                share = min(share, limits[name][d], queue["req"][d])
                new.append(max(share, queue.get("guarantee", [0, 0])[d]))
            deserved[name] = new
            if all(queue["req"][d] <= new[d] + TOLERANCE for d in (0, 1)) or new == old:
                met.add(name)
            change = [change[d] + new[d] - old[d] for d in (0, 1)]
        left = [max(remaining[d] - change[d], 0.0) for d in (0, 1)]
        if all(each < TOLERANCE for each in left) or left == remaining:
            break
        remaining = left
    return deserved


@pytest.mark.parametrize("case", load_cases("fair_shares.yaml"), ids=case_id)
def test_shares(case: dict[str, Any]) -> None:
    found = computed(case["total"], case["queues"])
    for name, expected in case["deserved"].items():
        assert found[name] == pytest.approx(expected, abs=1e-3), name
    limits = limits_of(case["total"], case["queues"])
    assert {name: limits[name] for name in case.get("limits", {})} == case.get("limits", {})


AMOUNTS = st.tuples(st.integers(0, 20_000), st.integers(0, 200)).map(list)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[int], dict[str, Queue]]:
    queues: dict[str, Queue] = {}
    for index in range(draw(st.integers(1, 5))):
        queue: Queue = {"w": draw(st.integers(0, 4)), "req": draw(AMOUNTS)}
        if draw(st.booleans()):
            queue["cap"] = draw(AMOUNTS)
        if draw(st.integers(0, 3)) == 0:
            queue["guarantee"] = [amount // 8 for amount in draw(AMOUNTS)]
        queues[f"q{index}"] = queue
    return draw(AMOUNTS), queues


@examples(300)
@given(clusters())
def test_they_are_where_the_rounds_end(cluster: tuple[list[int], dict[str, Queue]]) -> None:
    """Except where the rounds give away more than there is, or drop guarantees because no queue has a weight."""
    total, queues = cluster
    if not any(queue["w"] for queue in queues.values()):
        return
    found, expected = computed(total, queues), in_rounds(total, queues)
    for d in (0, 1):
        if sum(share[d] for share in expected.values()) > total[d] + TOLERANCE:
            continue
        for name in queues:
            assert found[name][d] == pytest.approx(float(expected[name][d]), abs=0.5), (name, d)


@examples(300)
@given(clusters())
def test_they_keep_to_limits_guarantees_and_the_cluster(
    cluster: tuple[list[int], dict[str, Queue]],
) -> None:
    total, queues = cluster
    found, limits = computed(total, queues), limits_of(total, queues)
    for d in (0, 1):
        kept = sum(queue.get("guarantee", [0, 0])[d] for queue in queues.values())
        most = sum(
            max(min(queue["req"][d], limits[name][d]), queue.get("guarantee", [0, 0])[d])
            for name, queue in queues.items()
            if queue["w"]
        )
        assert sum(share[d] for share in found.values()) <= max(total[d], kept) + 1e-6
        if all(queue["w"] for queue in queues.values()):  # nothing is left over that is wanted
            wanted = max(min(total[d], most), kept)
            assert sum(share[d] for share in found.values()) == pytest.approx(wanted, abs=1e-6)
        for name, queue in queues.items():
            guarantee = queue.get("guarantee", [0, 0])[d]
            assert guarantee <= found[name][d] <= max(limits[name][d], guarantee) + 1e-6
