"""Drawn clusters: nodes, pods that run on them, volumes, and pods that are to be placed."""

from typing import Any

from tests.reference.chances import Chances
from tests.reference.containers import containers, ports, resized
from tests.reference.nodes import nodes
from tests.reference.peers import NAMESPACES, inter_pod, labels, namespaces, spread
from tests.reference.placement import placement
from tests.reference.volumes import Storage, csi_nodes

Raw = dict[str, Any]
Cluster = dict[str, list[Raw]]
"""Objects by what they are: `nodes`, `namespaces`, `volumes`, `claims`, `csi_nodes`, `running`, `pods`."""

PODS = 20
"""Pods of a cluster that are to be placed."""

KINDS = (
    "nodes", "resources", "inter-pod", "spread", "volumes", "ports",
    "resources", "inter-pod", "volumes", "all",
)  # fmt: skip
"""What the pods of a cluster mostly differ in, in turn."""


def draw(seed: str, number: int) -> Cluster:
    """The cluster of a number.

    Args:
        seed: What all clusters of a series have in common.
        number: Which of them; it decides about the kind.
    """
    kind = KINDS[number % len(KINDS)]
    chances = Chances(f"{seed}/{number}")
    cluster: Cluster = {
        "namespaces": namespaces(chances),
        "nodes": nodes(chances),
        "running": [],
        "pods": [],
        "volumes": [],
        "claims": [],
        "csi_nodes": [],
    }
    names = [node["metadata"]["name"] for node in cluster["nodes"]]
    storage = Storage(chances) if kind in ("volumes", "all") else None
    for index in range(chances.number(5, 14)):
        pod = _running(chances, kind, f"r{index:02}", chances.one(names))
        if storage is not None and chances.happens(0.4):
            storage.mount(pod, runs=True)
        cluster["running"].append(pod)
    for index in range(PODS):
        pod = _incoming(chances, kind, f"p{index:02}")
        if storage is not None and (kind == "volumes" or chances.happens(0.3)):
            storage.mount(pod, runs=False)
        cluster["pods"].append(pod)
    if storage is not None:
        cluster |= {"volumes": storage.volumes, "claims": storage.claims}
        cluster["csi_nodes"] = csi_nodes(chances, names)
    return cluster


def _pod(chances: Chances, name: str, spec: Raw) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": chances.one(NAMESPACES),
            "labels": labels(chances),
        },
        "spec": {"automountServiceAccountToken": False} | spec,
    }


def _running(chances: Chances, kind: str, name: str, node: str) -> Raw:
    is_rich = kind in ("resources", "all")
    spec = {"nodeName": node} | containers(chances, is_rich=is_rich)
    if kind in ("ports", "all") and chances.happens(0.6):
        ports(chances, spec)
    if kind in ("inter-pod", "all"):
        inter_pod(chances, spec, affinity=0.15, anti=0.15)
    pod = _pod(chances, name, spec)
    if is_rich and chances.happens(0.3):
        resized(chances, pod)
    elif chances.happens(0.08):
        pod["status"] = {"phase": chances.one(("Succeeded", "Failed"))}
    elif chances.happens(0.1):
        pod["isDeleted"] = True
    return pod


def _incoming(chances: Chances, kind: str, name: str) -> Raw:
    is_rich = kind in ("resources", "all")
    spec = containers(chances, is_rich=is_rich)
    placement(chances, spec, {"nodes": 0.6, "all": 0.25}.get(kind, 0.15))
    if kind == "ports" or (kind == "all" and chances.happens(0.2)):
        ports(chances, spec)
    if kind == "inter-pod" or (kind == "all" and chances.happens(0.3)):
        inter_pod(chances, spec, affinity=0.5, anti=0.5)
    if kind == "spread" or (kind == "all" and chances.happens(0.3)):
        spread(chances, spec)
    return _pod(chances, name, spec)
