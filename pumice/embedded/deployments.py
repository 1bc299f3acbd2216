"""What a Deployment wants: a ReplicaSet for its template, and those of earlier templates empty.

A new template takes effect at once, as with strategy `Recreate`: pods of simulated nodes serve no requests.
"""

import hashlib
from typing import Any

import msgspec

from pumice.api import kinds
from pumice.api.kinds import Kind
from pumice.embedded.storage import Obj

DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments", True, ("deploy",), True)
_HASH = "pod-template-hash"
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def replica_sets_of(deployment: Obj, sets: list[Obj]) -> tuple[list[Obj], list[Obj]]:
    """ReplicaSets to create, and those that change."""
    spec = deployment["spec"]
    name = _name(deployment)
    changed = []
    for each in sets:
        wanted = _replicas(spec) if each["metadata"]["name"] == name else 0
        if _replicas(each["spec"]) != wanted:
            changed.append({**each, "spec": {**each["spec"], "replicas": wanted}})
    is_there = any(each["metadata"]["name"] == name for each in sets)
    return [] if is_there else [_replica_set(deployment, name)], changed


def _name(deployment: Obj) -> str:
    template = msgspec.json.encode(deployment["spec"].get("template") or {}, order="deterministic")
    return f"{deployment['metadata']['name']}-{hashlib.sha256(template).hexdigest()[:10]}"


def _replicas(spec: Obj) -> int:
    return int(spec.get("replicas", 1))


def _replica_set(deployment: Obj, name: str) -> Obj:
    spec, meta = deployment["spec"], deployment["metadata"]
    template: Obj = spec.get("template") or {}
    head: dict[str, Any] = template.get("metadata") or {}
    mark = {_HASH: name.rpartition("-")[2]}
    labels = {**(head.get("labels") or {}), **mark}
    selector: Obj = spec.get("selector") or {}
    annotations = {
        key: value for key, value in (meta.get("annotations") or {}).items() if key != _APPLIED
    }
    return {
        "apiVersion": kinds.REPLICA_SET.api_version,
        "kind": kinds.REPLICA_SET.kind,
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {
            "replicas": _replicas(spec),
            "selector": {
                **selector,
                "matchLabels": {**(selector.get("matchLabels") or {}), **mark},
            },
            "template": {**template, "metadata": {**head, "labels": labels}},
        },
    }


def status_of(deployment: Obj, sets: list[Obj], now: str) -> Obj:
    """The status of a Deployment."""
    spec, name = deployment["spec"], _name(deployment)

    def count(key: str, *, updated: bool = False) -> int:
        counted = [each for each in sets if not updated or each["metadata"]["name"] == name]
        return sum((each.get("status") or {}).get(key, 0) for each in counted)

    ready = count("readyReplicas")
    counts = {
        "replicas": count("replicas"),
        "updatedReplicas": count("replicas", updated=True),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": max(0, _replicas(spec) - ready),
    }
    is_available = "True" if ready >= _replicas(spec) else "False"
    before = (deployment.get("status") or {}).get("conditions") or ()
    conditions = [each for each in before if each.get("status") == is_available] or [
        {"type": "Available", "status": is_available, "lastTransitionTime": now}
    ]
    return {
        "observedGeneration": deployment["metadata"].get("generation", 1),
        **{key: found for key, found in counts.items() if found},
        "conditions": conditions,
    }
