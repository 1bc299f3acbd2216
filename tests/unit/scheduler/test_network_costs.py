"""What it costs to place gangs in a network: about as much more as there is more of them."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.counting import calls
from tests.unit.scheduler.network_clusters import Cluster
from tests.unit.scheduler.scenarios import Raw

SIZES = (48, 96, 192)


def racks(nodes: int) -> Raw:
    """A cluster of racks of four nodes, four of them below a switch."""
    names = [f"n{index:03}" for index in range(nodes)]
    parts = {f"r{at:03}": names[at : at + 4] for at in range(0, nodes, 4)}
    more: Raw = {name: {"tier": 1, "nodes": inside} for name, inside in parts.items()}
    for at in range(0, len(parts), 4):
        more[f"s{at:03}"] = {"tier": 2, "below": list(parts)[at : at + 4]}
    return {"nodes": names, "tree": "none", "more": more}


def elastic(count: int) -> Cluster:
    """Pods that come one by one after the first of their gang."""
    return Cluster(racks(32) | {"gang": {"pods": count, "cpu": 1, "min": 1, "soft": True}})


def partitions(count: int) -> Cluster:
    """Partitions that come one by one after the first of their gang."""
    parts = {"size": 2, "min": 1, "hard": 1}
    gang = {"pods": 2 * count, "cpu": 1, "min": 2, "soft": True, "parts": parts}
    return Cluster(racks(64) | {"gang": gang})


def domains(count: int) -> Cluster:
    """More domains, for pods beyond the size of their partition most of which find no place, each for another reason."""
    gang: Raw = {"pods": 16, "cpu": 2, "sizes": list(range(2, 18)), "min": 1, "soft": True}
    gang["parts"] = {"size": 16, "min": 1, "soft": True}
    cluster = Cluster(racks(4 * count) | {"gang": gang})
    group = cluster.manifests["PodGroup", "pg"]
    group["spec"]["subGroupPolicy"][0]["subGroupSize"] = 1
    cluster.show(group)
    return cluster


def policies(count: int, **fields: Any) -> Cluster:
    """A policy for each pod."""
    case = racks(64) | {"gang": {"pods": count, "cpu": 2, "min": 1}}
    cluster = Cluster(case)
    group = cluster.manifests["PodGroup", "pg"]
    group["spec"]["subGroupPolicy"] = [
        {
            "name": f"p{index}",
            "labelSelector": {"matchLabels": {"own": str(index)}},
            "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
        }
        | fields
        for index in range(count)
    ]
    cluster.show(group)
    for index in range(count):
        manifest = cluster.manifests["Pod", f"pg-worker-{index}"]
        manifest["metadata"]["labels"] = {"own": str(index)}
        cluster.show(manifest)
    return cluster


@pytest.mark.parametrize("build", [elastic, partitions, domains, policies])
def test_cost_grows_with_what_there_is(build: Callable[[int], Cluster]) -> None:
    """Twice as much costs twice as much more; each pod against each other one would be four times as much more."""
    counts = [calls(build(size).cycle) for size in SIZES]
    first, second = counts[1] - counts[0], counts[2] - counts[1]
    assert second < 2.6 * first, counts


def test_hyper_nodes_may_be_nested_deeply() -> None:
    names = [f"n{index}" for index in range(4)]
    nested: Raw = {"h1": {"tier": 1, "nodes": names[:3]}}
    nested |= {f"h{tier}": {"tier": tier, "below": [f"h{tier - 1}"]} for tier in range(2, 1200)}
    gang = {"pods": 4, "cpu": 8, "soft": True}
    cluster = Cluster({"nodes": names, "tree": "none", "more": nested, "gang": gang})
    cluster.cycle()
    assert sorted(cluster.nodes()) == names
