"""Plugins that are off by default, on a real control plane: turns of namespaces, cool-downs, and CPU pods that keep off nodes with GPUs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pumice.api.kinds import CONFIG_MAP, JOB, POD
from tests.e2e.scheduled import Cluster, running
from tests.kit.builders import job, task
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import NAMESPACE, Installation

Raw = dict[str, Any]

GPU = "nvidia.com/gpu"
COOL_DOWN = 12
"""Seconds; long enough that a busy machine shows the pod that waits before they are over."""

FAIR_SHARE = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: fairshare
    arguments: {fairshare.targetQueues: turns, fairshare.persistState: true, fairshare.flushIntervalSeconds: 1}
- plugins: [{name: predicates}]
"""
COOLING = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}, {name: cdp}]
- plugins: [{name: predicates}]
"""
STRATEGIES = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}]
- plugins:
  - name: predicates
  - name: resource-strategy-fit
    arguments:
      resources: {cpu: {type: MostAllocated, weight: "1"}}
      sra: {enable: true, resources: nvidia.com/gpu, weight: 20}
      proportional: {enable: true, resources: nvidia.com/gpu, resourceProportion: {nvidia.com/gpu.cpu: 2}}
"""


@pytest.fixture
def cluster(installation: Installation, namespace: str) -> Cluster:
    return Cluster(installation, namespace)


@pytest.fixture
def other(
    installation: Installation, controlplane: ControlPlane, cluster: Cluster
) -> Iterator[Cluster]:
    """A second namespace."""
    name = f"{cluster.name}-other"
    controlplane.add_namespace(name)
    yield Cluster(installation, name)
    controlplane.remove_namespace(name)


def _gpus(cluster: Cluster, name: str, queue: str) -> None:
    """Submit a Job of one pod with a GPU."""
    container = {"name": "main", "image": "busybox:1.36", "resources": {"limits": {GPU: "1"}}}
    tasks = [task("w", 1, spec={"containers": [container]})]
    cluster.plane.apply(job(name, tasks, namespace=cluster.name, queue=queue))


def _saved(plane: ControlPlane) -> Raw:
    """What namespaces of queue `turns` have used and hold, as it is saved."""
    path = CONFIG_MAP.path("fairshare-usage-state", NAMESPACE)
    status, found = plane.request("GET", path)
    text = (found.get("data") or {}).get("usage.json") if status == 200 else None
    queues = json.loads(text)["queues"] if text else {}
    return dict(queues.get("turns", {}).get("namespaces", {}))


def test_a_namespace_that_used_less_goes_first_also_after_a_restart(
    cluster: Cluster,
    other: Cluster,
    add_node: Callable[..., str],
    make_queue: Callable[..., str],
    controlplane: ControlPlane,
) -> None:
    add_node("turns-0", extended={GPU: "1"})
    make_queue("turns")
    cluster.configure(FAIR_SHARE)
    _gpus(cluster, "first", "turns")
    cluster.await_running("first", 1)
    wait_until(lambda: _saved(controlplane).get(cluster.name, [0])[0] > 3, "usage to be saved")
    for each in (cluster, other):
        _gpus(each, "next", "turns")
        each.await_condition("next", "Unschedulable", GPU)

    cluster.installation.restart("scheduler")
    cluster.some_cycles()
    told = json.loads(cluster.explain("queue", "turns", "-o", "json"))["namespaces"]
    assert told["resource"] == GPU
    assert list(told["byNamespace"]) == [other.name, cluster.name]
    assert told["byNamespace"][cluster.name]["holds"] == "1"
    assert "Namespaces by what they have used of nvidia.com/gpu" in cluster.explain(
        "queue", "turns"
    )

    controlplane.request("DELETE", JOB.path("first", cluster.name))
    other.await_running("next", 1)
    waiting = cluster.pods()
    assert not running(waiting)
    wait_until(lambda: _saved(controlplane).get(other.name, [0, 0])[1] == 1, "both to be saved")
    assert _saved(controlplane)[cluster.name][0] > 3
    controlplane.request("DELETE", JOB.path("next", other.name))
    cluster.await_running("next", 1)


def test_a_pod_within_its_cool_down_is_spared_and_goes_after_it(
    cluster: Cluster,
    add_node: Callable[..., str],
    make_queue: Callable[..., str],
    priority_classes: None,
) -> None:
    add_node("cooling-0", cpu="1")
    make_queue("cooling")
    cluster.configure(COOLING)
    spec: Raw = {"queue": "cooling"}
    low = job(
        "low",
        [task("w", 1, cpu="1")],
        namespace=cluster.name,
        priorityClassName="e2e-low",
        **spec,
    )
    low["metadata"]["labels"] = {"volcano.sh/cooldown-time": f"{COOL_DOWN}s"}
    cluster.plane.apply(low)
    before = running(cluster.await_running("low", 1))
    cluster.submit("high", 1, 1, priorityClassName="e2e-high", **spec)
    text = f"1 spared by cdp: the cool-down ({COOL_DOWN}s, of {cluster.name}/low-w-0) ends at "
    cluster.await_condition("high", "Unschedulable", "Insufficient cpu")
    assert text in cluster.explain("job", "high")
    assert running(cluster.pods()) == before
    cluster.await_running("high", 1)
    assert not running(cluster.pods()) & before


def test_cpu_pods_keep_off_nodes_with_gpus(
    cluster: Cluster, add_node: Callable[..., str], make_queue: Callable[..., str]
) -> None:
    add_node("strategies-cpu", cpu="4")
    add_node("strategies-gpu", cpu="6", extended={GPU: "2"})
    make_queue("strategies")
    cluster.configure(STRATEGIES)
    cluster.submit("web", 7, 1, queue="strategies")
    cluster.await_running("web", 6)
    cluster.some_cycles()
    why = "keep cpu and memory for their idle nvidia.com/gpu"
    assert why in cluster.explain("job", "web")
    nodes = [pod["spec"].get("nodeName", "") for pod in cluster.pods().values()]
    assert sorted(nodes) == ["", *["strategies-cpu"] * 4, *["strategies-gpu"] * 2]
    _gpus(cluster, "train", "strategies")
    found = cluster.await_running("train", 1)
    assert [pod["spec"]["nodeName"] for pod in found.values()] == ["strategies-gpu"]
    cluster.until(
        POD,
        lambda pods: len(running(pods)) == 8,
        "the last CPU pod, for which the GPU in use leaves room",
    )
