"""Bodies for a pod's subresources: bindings and evictions, as JSON."""

from collections.abc import Mapping
from typing import Any

__all__ = ["binding", "eviction"]


def binding(
    namespace: str,
    pod: str,
    node: str,
    uid: str | None = None,
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A `v1` Binding of a pod to a node, with annotations that the pod gets; with a uid, of that incarnation only."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": namespace}
        | ({"uid": uid} if uid else {})
        | ({"annotations": dict(annotations)} if annotations else {}),
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def eviction(
    namespace: str, pod: str, uid: str | None = None, grace: int | None = None
) -> dict[str, Any]:
    """A `policy/v1` Eviction of a pod with a grace period in seconds."""
    options: dict[str, Any] = {}
    if uid:
        options["preconditions"] = {"uid": uid}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
    } | ({"deleteOptions": options} if options else {})
