"""Gangs in racks, on a real control plane: HyperNodes from labels, one rack for a gang, and gangs that are evicted as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pumice.api.kinds import EVENT, HYPER_NODE, POD
from tests.e2e.scheduled import Cluster, running
from tests.kit.builders import job, task
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import NAMESPACE, RELEASE, Installation

Raw = dict[str, Any]

RACK = "racks.example.com/rack"
DISCOVERY = f"""\
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      racks:
      - nodeLabel: {RACK}
      - nodeLabel: kubernetes.io/hostname
"""
WHOLE_GANGS = """
actions: "enqueue, allocate, gangpreempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: network-topology-aware}, {name: nodeorder}]
"""
IN_ONE_RACK = {"mode": "hard", "highestTierAllowed": 1}


@pytest.fixture
def cluster(
    installation: Installation,
    namespace: str,
    add_node: Callable[..., str],
    controlplane: ControlPlane,
) -> Iterator[Cluster]:
    """Two racks of two nodes with two processors each."""
    found = Cluster(installation, namespace)
    patch = json.dumps({"data": {"volcano-controller.conf": DISCOVERY}})
    place = f"configmap/{RELEASE}-controller-configmap"
    controlplane.kubectl("patch", place, "--type=merge", "--patch", patch, namespace=NAMESPACE)
    for index in range(4):
        add_node(f"racks-{index}", "2", labels={RACK: f"r{index // 2}"})
    wait_until(lambda: _sizes(controlplane) == {"r0": 2, "r1": 2}, "two HyperNodes", 20)
    found.configure(WHOLE_GANGS)
    yield found
    controlplane.kubectl("delete", "node", *(f"racks-{index}" for index in range(4)))
    wait_until(lambda: not _sizes(controlplane), "HyperNodes without Nodes to go", 20)


def _sizes(plane: ControlPlane) -> dict[str, int]:
    """Nodes of each rack, as its HyperNode counts them."""
    _, answer = plane.request("GET", f"{HYPER_NODE.collection()}?labelSelector={RACK}")
    return {
        each["metadata"]["labels"][RACK]: (each.get("status") or {}).get("nodeCount", 0)
        for each in answer["items"]
    }


def _racks(pods: dict[str, Raw]) -> set[int]:
    """The racks of pods, by number."""
    return {int(pod["spec"]["nodeName"].removeprefix("racks-")) // 2 for pod in pods.values()}


def test_a_gang_runs_in_one_rack_and_another_one_goes_for_it_as_a_whole(
    cluster: Cluster, make_queue: Callable[..., str], priority_classes: None
) -> None:
    make_queue("racks")
    low: Raw = {"queue": "racks", "priorityClassName": "e2e-low", "networkTopology": IN_ONE_RACK}
    cluster.submit("one", 4, 4, **low)
    [rack] = _racks(cluster.await_running("one", 4))
    cluster.submit("two", 4, 4, **low)
    assert _racks(cluster.await_running("two", 4)) == {1 - rack}
    cluster.submit("wide", 5, 5, **low)
    cluster.await_condition("wide", "Unschedulable", "in one HyperNode of tier 1 or lower")
    before = running(cluster.pods())
    assert len(before) == 8

    since = cluster.revision(EVENT)
    cluster.submit("high", 3, 3, **low | {"priorityClassName": "e2e-high"})
    assert len(_racks(cluster.await_running("high", 3))) == 1

    def broken(events: dict[str, Raw]) -> list[str]:
        found = [each for each in events.values() if each["reason"] == "GangPreempted"]
        return [f"{each['involvedObject']['name']}: {each['message']}" for each in found]

    [told] = cluster.until(EVENT, broken, "the gang that went", since=since)
    assert f"evicted as a whole (4 pods) for {cluster.group_of('high')}" in told
    cluster.some_cycles()
    left = running(cluster.pods()) & before
    assert len(left) == 4, "the other gang of low priority runs on"


def test_a_partition_that_is_restarted_comes_back_to_a_rack(
    cluster: Cluster, make_queue: Callable[..., str]
) -> None:
    make_queue("racks")
    parts = {
        "totalPartitions": 2,
        "partitionSize": 3,
        "minPartitions": 2,
        "networkTopology": IN_ONE_RACK,
    }
    policies = [{"event": "PodFailed", "action": "RestartPartition"}]
    tasks = [task("w", 6, cpu="1", partitionPolicy=parts)]
    manifest = job("parts", tasks, namespace=cluster.name, queue="racks", policies=policies)
    cluster.plane.apply(manifest)
    before = cluster.await_running("parts", 6)
    first = {name: pod for name, pod in before.items() if int(name[-1]) < 3}
    second = {name: pod for name, pod in before.items() if int(name[-1]) >= 3}
    [rack] = _racks(first)
    assert _racks(second) == {1 - rack}
    told = json.loads(cluster.explain("job", "parts", "-o", "json"))["podGroup"]
    assert "hypernode-racks-tier1" in json.dumps(told["network"])

    failed = ("--subresource=status", "--type=merge", '-p={"status":{"phase":"Failed"}}')
    cluster.kubectl("patch", "pod/parts-w-4", *failed)

    def again(pods: dict[str, Raw]) -> dict[str, Raw]:
        new = {name: pods[name] for name in second if name in pods}
        uids = {each["metadata"]["uid"] for each in second.values()}
        is_whole = len(running(pods)) == 6 and not running(pods) & uids
        return new if is_whole else {}

    assert _racks(cluster.until(POD, again, "the partition runs again")) == {1 - rack}
