"""Gangs whose pods say where they want to be seen from each other, on a real API server with nodes of kwok."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.scheduled import PLACING, Cluster
from tests.kit.builders import job, task
from tests.support.installation import Installation

Raw = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def cluster(installation: Installation, namespace: str, add_node: Callable[..., str]) -> Cluster:
    """Three zones: one with two nodes of 2 CPUs, two with one node of 4 CPUs each."""
    cluster = Cluster(installation, namespace)
    cluster.configure(PLACING)
    for name, cpu, zone in (("a1", "2", "a"), ("a2", "2", "a"), ("b1", "4", "b"), ("c1", "4", "c")):
        add_node(f"{namespace}-{name}", cpu, labels={ZONE: zone, "of": namespace})
    return cluster


def submit(cluster: Cluster, name: str, replicas: int, spec: Raw) -> None:
    """Apply a Job of one gang whose pods carry the label `app` and run on the nodes of this test alone."""
    one = task("w", replicas, cpu="1", spec={"nodeSelector": {"of": cluster.name}} | spec)
    one["template"]["metadata"] = {"labels": {"app": name}}
    manifest = job(name, [one], minAvailable=replicas)
    del manifest["metadata"]["namespace"]
    cluster.apply(manifest)


def places(cluster: Cluster, name: str, count: int) -> Counter[str]:
    """How many pods of a Job run on each node, once all do."""
    pods = cluster.await_running(name, count)
    return Counter(
        pod["spec"]["nodeName"].removeprefix(f"{cluster.name}-") for pod in pods.values()
    )


def test_a_gang_is_kept_in_one_zone_and_apart_from_another(cluster: Cluster) -> None:
    near = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "together"}}, "topologyKey": ZONE}
        ]
    }
    submit(cluster, "together", 3, {"affinity": {"podAffinity": near}})
    first = places(cluster, "together", 3)
    zones = {node[0] for node in first}
    assert len(zones) == 1

    apart = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "together"}}, "topologyKey": ZONE},
            {
                "labelSelector": {"matchLabels": {"app": "apart"}},
                "topologyKey": "kubernetes.io/hostname",
            },
        ]
    }
    submit(cluster, "apart", 2, {"affinity": {"podAntiAffinity": apart}})
    second = places(cluster, "apart", 2)
    assert set(second.values()) == {1}
    assert not zones & {node[0] for node in second}

    submit(cluster, "neighbour", 5, {"affinity": {"podAntiAffinity": apart}})
    cluster.await_condition("neighbour", "Unschedulable", "didn't match pod anti-affinity rules")
    cluster.some_cycles()
    assert not any(
        pod["spec"].get("nodeName")
        for name, pod in cluster.pods().items()
        if name.startswith("neighbour-")
    )


def test_a_gang_is_spread_over_zones(cluster: Cluster) -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "spread"}},
    }
    submit(cluster, "spread", 6, {"topologySpreadConstraints": [constraint]})
    found = places(cluster, "spread", 6)
    zones = Counter[str]()
    for node, count in found.items():
        zones[node[0]] += count
    assert zones == {"a": 2, "b": 2, "c": 2}
