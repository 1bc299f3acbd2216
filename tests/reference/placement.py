"""Drawn rules about nodes: node selector, node affinity, tolerations."""

from typing import Any

from tests.reference.chances import Chances
from tests.reference.nodes import HOSTNAME, REGION, TAINTS, ZONE, ZONES

Raw = dict[str, Any]

_VALUES: dict[str, tuple[str, ...]] = {
    ZONE: (*ZONES, "zz"),
    REGION: ("ra", "rb"),
    HOSTNAME: ("n00", "n01", "n02", "n05"),
    "disk": ("ssd", "hdd", "tape"),
    "rack": ("r1", "r2"),
    "generation": ("1", "2", "7", "12", "0012", "two"),
    "absent": ("x",),
}
_NAMES = ("n00", "n01", "n02", "n03", "n04", "elsewhere")


def placement(chances: Chances, spec: Raw, share: float) -> None:
    """Draw rules about nodes for a pod, each kind with this probability."""
    if chances.happens(share):
        keys = chances.some(("disk", ZONE, "rack", HOSTNAME, "absent"), 1, 2)
        spec["nodeSelector"] = {key: chances.one(_VALUES[key]) for key in keys}
        if chances.happens(0.7):
            spec["nodeSelector"] = {"disk": chances.one(("ssd", "hdd"))}
    if chances.happens(share):
        spec.setdefault("affinity", {})["nodeAffinity"] = node_affinity(chances)
    if chances.happens(0.3 + share):
        spec["tolerations"] = [_toleration(chances) for _ in range(chances.number(1, 3))]


def node_affinity(chances: Chances) -> Raw:
    """Required terms, and sometimes preferred ones, which rule nothing out."""
    terms = [node_selector_term(chances) for _ in range(chances.number(1, 3))]
    found: Raw = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    if chances.happens(0.2):
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": 5, "preference": node_selector_term(chances)}
        ]
    return found


def node_selector_term(chances: Chances) -> Raw:
    """A term: empty, of expressions, of fields, or of both."""
    if chances.happens(0.06):
        return {}
    term: Raw = {}
    if chances.happens(0.85):
        keys = chances.some(tuple(_VALUES), 1, 2)
        term["matchExpressions"] = [_expression(chances, key) for key in keys]
    if not term or chances.happens(0.15):
        term["matchFields"] = [
            {
                "key": "metadata.name",
                "operator": chances.one(("In", "NotIn")),
                "values": [chances.one(_NAMES)],
            }
            for _ in range(chances.one((1, 1, 2)))
        ]
    return term


def _expression(chances: Chances, key: str) -> Raw:
    if key == "generation" and chances.happens(0.7):
        bound = chances.one(("0", "1", "2", "6", "11", "12", "007"))
        return {"key": key, "operator": chances.one(("Gt", "Lt")), "values": [bound]}
    operator = chances.one(("In", "In", "NotIn", "Exists", "DoesNotExist"))
    found: Raw = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        found["values"] = chances.some(_VALUES[key], 1, 3)
    return found


def _toleration(chances: Chances) -> Raw:
    if chances.happens(0.1):
        found: Raw = {"operator": "Exists"}
    else:
        key, value = chances.one((*TAINTS, ("node.kubernetes.io/unschedulable", None)))
        found = {"key": key}
        if chances.happens(0.45):
            found["operator"] = "Exists"
        else:
            if chances.happens(0.5):
                found["operator"] = "Equal"
            if chances.happens(0.85) and value is not None:
                found["value"] = value
    if chances.happens(0.5):
        found["effect"] = chances.one(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    if found.get("effect") == "NoExecute" and chances.happens(0.3):
        found["tolerationSeconds"] = 60
    return found
