"""HyperNodes by labels of Nodes, on a real control plane with Pumice installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pumice.api.kinds import HYPER_NODE
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import NAMESPACE, RELEASE, Installation

Raw = dict[str, Any]

CONFIGURATION = """\
networkTopologyDiscovery:
- source: roce
  enabled: true
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      fabric:
      - nodeLabel: example.com/spine
      - nodeLabel: example.com/rack
      - nodeLabel: kubernetes.io/hostname
"""
CONFIG_MAP = f"configmap/{RELEASE}-controller-configmap"
SELECTOR = "volcano.sh/network-topology-source=label"


class Fabric:
    """The network of a cluster as HyperNodes show it."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    def configure(self, text: str) -> None:
        patch = json.dumps({"data": {"volcano-controller.conf": text}})
        self.plane.kubectl(
            "patch", CONFIG_MAP, "--type=merge", "--patch", patch, namespace=NAMESPACE
        )

    def add_node(self, name: str, rack: str) -> None:
        labels = {"example.com/rack": rack, "example.com/spine": "s1"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        self.plane.kubectl("apply", "-f", "-", stdin=json.dumps(node))

    def hyper_nodes(self) -> list[Raw]:
        answer = self.plane.request("GET", f"{HYPER_NODE.collection()}?labelSelector={SELECTOR}")[1]
        found: list[Raw] = answer["items"]
        return found

    def sizes(self) -> dict[str, int]:
        """The number of Nodes by rack or spine."""
        return {
            _value(each): (each.get("status") or {}).get("nodeCount", 0)
            for each in self.hyper_nodes()
        }


def _value(hyper_node: Raw) -> str:
    labels = hyper_node["metadata"]["labels"]
    return str(labels.get("example.com/rack") or labels["example.com/spine"])


@pytest.fixture
def fabric(controlplane: ControlPlane, installation: Installation) -> Iterator[Fabric]:
    del installation
    found = Fabric(controlplane)
    for index in range(4):
        found.add_node(f"fabric-{index}", f"r{index // 2}")
    yield found
    nodes = [f"fabric-{index}" for index in range(5)]
    controlplane.kubectl("delete", "node", *nodes, "--ignore-not-found")
    wait_until(lambda: not found.hyper_nodes(), "HyperNodes without Nodes to go", 20)


def test_hyper_nodes_follow_the_labels_of_nodes(fabric: Fabric, installation: Installation) -> None:
    fabric.configure(CONFIGURATION)
    wait_until(lambda: fabric.sizes() == {"r0": 2, "r1": 2, "s1": 4}, "three HyperNodes", 20)
    names = {each["metadata"]["name"] for each in fabric.hyper_nodes()}
    reasons = fabric.plane.kubectl(
        "get", "events", "-o", "jsonpath={.items[*].reason}", namespace=NAMESPACE
    )
    assert "DiscoverySourceNotBuilt" in reasons.stdout

    fabric.plane.kubectl("label", "--overwrite", "node", "fabric-1", "example.com/rack=r1")
    fabric.add_node("fabric-4", "r0")
    fabric.plane.kubectl("delete", "hypernodes", "-l", "example.com/rack=r0")
    wait_until(lambda: fabric.sizes() == {"r0": 2, "r1": 3, "s1": 5}, "the move of a Node", 20)
    assert {each["metadata"]["name"] for each in fabric.hyper_nodes()} == names

    fabric.configure("networkTopologyDiscovery: [")
    installation.stop_leader("controller")
    fabric.plane.kubectl("delete", "node", "fabric-0", "fabric-4")  # all of rack r0
    installation.start("controller")
    wait_until(lambda: fabric.sizes() == {"r0": 0, "r1": 3, "s1": 3}, "counts alone", 20)
    fabric.configure(CONFIGURATION)
    wait_until(lambda: fabric.sizes() == {"r1": 3, "s1": 3}, "a rack to go", 20)
