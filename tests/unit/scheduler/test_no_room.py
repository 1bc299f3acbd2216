"""Why a pod fits nowhere, and the nearest node: the same as by a look at every node, and shared between placements."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pumice.scheduler.explain.nearest import nearest
from pumice.scheduler.explain.sentences import Objections
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.free_room import FreeColumn, FreeColumns, Needs, places
from pumice.scheduler.model.host_ports import PortUsers, are_taken
from pumice.scheduler.model.rows import Rows, TouchedRows
from pumice.scheduler.model.shapes import Need
from pumice.scheduler.plugins import predicates
from pumice.scheduler.points import FilterResult
from pumice.scheduler.session import empty_nodes
from tests.unit.scheduler.scenarios import Scenario

NAMES = ("cpu", "memory", "pods")


def _plain(rows: Rows, needs: list[Need], excluded: Bools) -> tuple[Any, ...]:
    """Node, scarcest resource and what is free of it, too small nodes, and those with promised room, one by one."""
    best: tuple[float, int] | None = None
    small, promised = 0, []
    for row in np.flatnonzero(~excluded).tolist():
        free = [int(rows.future_idle(need.column)[row]) for need in needs]
        part = min(has / need.amount for has, need in zip(free, needs, strict=True))
        if best is None or part > best[0]:
            best = part, row
        small += any(rows.allocatable[row, need.column] < need.amount for need in needs)
        if all(
            rows.idle(need.column)[row] + rows.releasing[row, need.column] >= need.amount
            for need in needs
        ):
            promised.append(f"n{row}")
    if best is None:
        return "", "", 0, small, ()
    free = [int(rows.future_idle(need.column)[best[1]]) for need in needs]
    parts = [has / need.amount for has, need in zip(free, needs, strict=True)]
    scarcest = parts.index(min(parts))
    return f"n{best[1]}", needs[scarcest].name, max(free[scarcest], 0), small, tuple(promised)


@pytest.mark.parametrize("seed", range(60))
def test_the_nearest_node_and_the_counts_are_those_of_a_look_at_every_node(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randrange(1, 7)

    def amounts(most: int) -> Ints:
        return np.array([[rng.randrange(most) for _ in NAMES] for _ in range(count)])

    has = amounts(9)
    promised = amounts(3) if seed % 3 == 0 else np.zeros_like(has)
    rows = Rows(slice(0, count), has, amounts(9), amounts(3) * (seed % 2), promised)
    codes = np.array([rng.choice((0, 0, 1, 2)) * (seed % 5 > 1) for _ in range(count)])
    excluded: Bools = codes > 0
    objections = Objections([FilterResult(codes, ("cordoned", "tainted"))], count)
    names = [f"n{row}" for row in range(count)]
    room = FreeColumns(rows, TouchedRows([], lambda: False))
    for _ in range(4):  # what was kept for the first serves the others
        needs = [Need(c, rng.randrange(1, 12), name) for c, name in enumerate(NAMES)]
        found = nearest(room, needs, names, excluded, objections.candidates)
        assert (
            found.node,
            found.resource,
            found.there,
            found.too_small,
            found.promised,
        ) == _plain(rows, needs, excluded)
        wanted: dict[str, list[str]] = {}
        for row, code in enumerate(codes.tolist()):
            lacking = [n.name for n in needs if rows.future_idle(n.column)[row] < n.amount]
            text = ("", "cordoned", "tainted")[code] or (lacking and f"Insufficient {lacking[0]}")
            if text:
                wanted.setdefault(text, []).append(f"n{row}")
        refusals = objections.with_room(needs, room, names)
        assert refusals.counts == {text: len(nodes) for text, nodes in wanted.items()}
        assert refusals.examples == {text: nodes[:3] for text, nodes in wanted.items()}
        is_full = any(all(rows.idle(n.column) < n.amount) for n in needs)
        assert not room.are_too_full(needs) or is_full
        assert room.are_too_full(needs) is (is_full and objections.candidates > 0)


@pytest.mark.parametrize("gangs", [20, 200])
def test_pods_that_fit_nowhere_share_one_look_at_the_nodes(
    gangs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    before = FreeColumn.__init__

    def counted(self: FreeColumn, rows: Rows, column: int) -> None:
        made.append(column)
        before(self, rows, column)

    monkeypatch.setattr(FreeColumn, "__init__", counted)
    scenario = Scenario(
        {
            "nodes": [["n1", 2, "8Gi"], ["n2", 4, "8Gi"]],
            "podgroups": [["ns", f"g{i}", "default", 1, "Inqueue"] for i in range(gangs)],
            "pods": [
                ["ns", f"p{i}", "", "Pending", 5 + i, f"{i + 1}Mi", f"g{i}"] for i in range(gangs)
            ],
        }
    )
    result = scenario.cycle()
    assert len(result.pending) == gangs
    assert result.pending["ns/g7"].summary == (
        "needs 12 cpu; the largest free place is 4 cpu (n2); 2 nodes are too small"
    )
    assert len(made) == 3


@pytest.mark.parametrize("gangs", [20, 200])
def test_gangs_that_are_too_large_for_all_nodes_share_one_look_at_the_empty_nodes(
    gangs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    nodes = empty_nodes.ReadyNodes

    def looked(mask: Bools, ready: Bools, allocatable: Ints) -> empty_nodes.ReadyNodes:
        looks.append("nodes")
        return nodes(mask, ready, allocatable)

    def counted(needs: Sequence[Needs], free: Ints) -> Ints:
        looks.append("places")
        return places(needs, free)

    monkeypatch.setattr(empty_nodes, "ReadyNodes", looked)
    monkeypatch.setattr(empty_nodes, "places", counted)
    here = {"spec": {"nodeSelector": {"zone": "a"}}}
    scenario = Scenario(
        {
            "nodes": [["n1", 2, "8Gi", {"labels": {"zone": "a"}}], ["n2", 4, "8Gi"]],
            "podgroups": [["ns", f"g{i}", "default", 1, "Inqueue"] for i in range(gangs)],
            "pods": [
                ["ns", f"p{i}", "", "Pending", 5 + i, f"{i + 1}Mi", f"g{i}", here if i % 2 else {}]
                for i in range(gangs)
            ],
        }
    )
    result = scenario.cycle()
    sizes = {f"g{i}": result.pending[f"ns/g{i}"].message for i in (7, 8)}
    assert sizes["g7"].endswith("; needs 12 cpu on one node; the largest that it may use has 2")
    assert sizes["g8"].endswith("; needs 13 cpu on one node; the largest has 4")
    assert looks == ["nodes"] * 3  # those of each rule, and all


def test_no_victims_are_sought_where_no_running_pod_is_a_candidate() -> None:
    def searches(running: int) -> int:
        scenario = Scenario(
            {
                "nodes": [["n1", 24, "8Gi"]],
                "podgroups": [
                    ["ns", "old", "default", 1, "Running"],
                    *(["ns", f"g{i}", "default", 1, "Inqueue"] for i in range(20)),
                ],
                "pods": [
                    ["ns", "other", "n1", "Running", 20, "1Gi", "", {"scheduler": "other"}],
                    *(["ns", f"r{i}", "n1", "Running", 1, "1Gi", "old"] for i in range(running)),
                    *(["ns", f"p{i}", "", "Pending", 5 + i, "1Gi", f"g{i}"] for i in range(20)),
                ],
            },
            "actions: allocate, preempt\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n"
            "- plugins: [{name: predicates}]\n",
        )
        result = scenario.cycle()
        spared = "preempt: the only running pod may not go" in result.pending["ns/g3"].summary
        assert spared is (running == 1)
        return result.preemptions

    assert (searches(0), searches(1)) == (0, 20)


def test_who_takes_a_single_host_port_is_not_looked_at_pod_by_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[int] = []

    def counted(users: PortUsers, leaving: PortUsers | None, wanted: int) -> bool:
        looks.append(wanted)
        return are_taken(users, leaving, wanted)

    monkeypatch.setattr(predicates, "are_taken", counted)
    ports = {"ports": [80]}
    scenario = Scenario(
        {
            "nodes": [[f"n{i}", 4, "8Gi"] for i in range(3)],
            "podgroups": [["ns", f"g{i}", "default", 1, "Inqueue"] for i in range(5)],
            "pods": [["ns", f"p{i}", "", "Pending", 1, "1Gi", f"g{i}", ports] for i in range(5)],
        }
    )
    assert len(scenario.cycle().binds) == 3
    assert not looks
