"""Drawn nodes: labels, taints, cordons and what they have to give."""

from typing import Any

from tests.reference.chances import Chances

Raw = dict[str, Any]

HOSTNAME, ZONE, REGION = (
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
ZONES = ("za", "zb", "zc")
_EFFECTS = ("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
TAINTS: tuple[tuple[str, str | None], ...] = (
    ("dedicated", "batch"),
    ("dedicated", "web"),
    ("maintenance", None),
    ("level", "3"),
    ("level", "30"),
)


def nodes(chances: Chances) -> list[Raw]:
    """Nodes of one cluster."""
    tainted = chances.one((0.0, 0.3, 0.6))
    return [_node(chances, f"n{number:02}", tainted) for number in range(chances.number(6, 12))]


def _node(chances: Chances, name: str, tainted: float) -> Raw:
    spec: Raw = {}
    taints = [_taint(chances, *each) for each in chances.some(TAINTS, 1, 2)]
    taints = list({(each["key"], each["effect"]): each for each in taints}.values())
    if not chances.happens(tainted):
        taints = []
    if chances.happens(0.12):
        spec["unschedulable"] = True
        if chances.happens(0.5):
            taints.append({"key": _UNSCHEDULABLE, "effect": "NoSchedule"})
    if taints:
        spec["taints"] = taints
    amounts = _amounts(chances)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": _labels(chances, name)},
        "spec": spec,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def _labels(chances: Chances, name: str) -> dict[str, str]:
    labels = {}
    if chances.happens(0.95):
        labels[HOSTNAME] = name
    if chances.happens(0.9):
        zone = chances.one(ZONES)
        labels[ZONE] = zone
        if chances.happens(0.9):
            labels[REGION] = "rb" if zone == "zc" else "ra"
    if chances.happens(0.8):
        labels["disk"] = chances.one(("ssd", "hdd"))
    if chances.happens(0.8):
        labels["generation"] = chances.one(
            ("1", "2", "7", "12", "0012", "1_0", "99999999999999999999", "two", "")
        )
    if chances.happens(0.7):
        labels["sandbox"] = "yes"
    if chances.happens(0.6):
        labels["rack"] = chances.one(("r1", "r2"))
    return labels


def _taint(chances: Chances, key: str, value: str | None) -> Raw:
    taint = {"key": key, "effect": chances.one(_EFFECTS)}
    return taint if value is None else taint | {"value": value}


def _amounts(chances: Chances) -> dict[str, str]:
    amounts = {
        "cpu": chances.one(("2", "4", "3500m", "8")),
        "memory": chances.one(("4Gi", "8Gi", "6000M", "16Gi")),
        "pods": str(chances.number(3, 9)),
        "ephemeral-storage": chances.one(("10Gi", "20Gi", "100Gi")),
    }
    if chances.happens(0.4):
        amounts["example.com/gpu"] = str(chances.number(0, 4))
    if chances.happens(0.3):
        amounts["hugepages-2Mi"] = chances.one(("64Mi", "512Mi"))
    return amounts
