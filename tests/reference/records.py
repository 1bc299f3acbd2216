"""Recorded answers of kube-scheduler as data: clusters, pods, and the nodes on which each pod may run.

`tests/cases/scheduler/kubernetes_rules.json.gz` holds one cluster a line, without what neither kube-scheduler nor Pumice looks at,
so that it stays small and says the same when it is recorded again.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.kit.tables import CASES

Raw = dict[str, Any]
Record = dict[str, Any]
"""The objects of a cluster by what they are, and `feasible`: names of nodes by pod."""

FILE = CASES / "scheduler" / "kubernetes_rules.json.gz"

FAMILIES = ("nodes", "resources", "ports", "inter-pod", "spread", "volumes")
"""What rules are about; those of `nodes` are cordons, selectors, affinity, taints and tolerations."""

_TIME = "2026-01-01T00:00:00Z"
_META = ("name", "namespace", "labels", "annotations", "deletionTimestamp", "ownerReferences")
_UNREAD = frozenset(
    {
        "automountServiceAccountToken", "dnsPolicy", "enableServiceLinks", "image", "imagePullPolicy", "preemptionPolicy",
        "priority", "runtimeClassName", "schedulerName", "securityContext", "serviceAccount", "serviceAccountName",
        "terminationGracePeriodSeconds", "terminationMessagePath", "terminationMessagePolicy", "volumeMode",
    }
)  # fmt: skip
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def write(records: Iterable[Record]) -> int:
    """Replace the file; its size in bytes."""
    lines = [json.dumps(each, sort_keys=True, separators=(",", ":")) for each in records]
    FILE.write_bytes(gzip.compress("\n".join(lines).encode(), 9, mtime=0))
    return FILE.stat().st_size


def read() -> Iterator[Record]:
    """The recorded clusters."""
    for line in gzip.decompress(FILE.read_bytes()).splitlines():
        yield json.loads(line)


def slim(stored: Mapping[str, list[Raw]], feasible: Mapping[str, list[str]]) -> Record:
    """A record of objects as the API server keeps them; uids and times become ones that are always the same."""
    record: Record = {part: [_slim(each) for each in objects] for part, objects in stored.items()}
    return record | {"feasible": dict(feasible)}


def key_of(pod: Raw) -> str:
    """`namespace/name` of a pod."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def families(record: Record, pod: Raw) -> frozenset[str]:
    """The families of rules that decide where a pod of a record may run."""
    spec = pod["spec"]
    found = {"nodes", "resources"}
    affinity = spec.get("affinity", {})
    if (
        "podAffinity" in affinity
        or "podAntiAffinity" in affinity
        or any(map(_keeps_others_away, record["running"]))
    ):
        found.add("inter-pod")
    if spec.get("topologySpreadConstraints"):
        found.add("spread")
    if spec.get("volumes"):
        found.add("volumes")
    if any(
        container.get("ports") for container in spec["containers"] + spec.get("initContainers", [])
    ):
        found.add("ports")  # fmt: skip
    return frozenset(found)


def _keeps_others_away(pod: Raw) -> bool:
    return bool(pod["spec"].get("affinity", {}).get("podAntiAffinity", {}).get(_REQUIRED))


def _slim(stored: Raw) -> Raw:
    meta = {key: stored["metadata"][key] for key in _META if stored["metadata"].get(key)}
    labels = meta.get("labels", {})
    labels.pop("kubernetes.io/metadata.name", None)
    if "deletionTimestamp" in meta:
        meta["deletionTimestamp"] = _TIME
    for reference in meta.get("ownerReferences", ()):
        reference["uid"] = _uid(meta["namespace"], reference["name"])
    if stored["kind"] == "Pod":
        meta["uid"] = _uid(meta["namespace"], meta["name"])
    found: Raw = {"metadata": meta}
    if stored.get("spec"):
        found["spec"] = _without(stored["spec"])
        found["spec"].get("claimRef", {}).pop("uid", None)
    status = stored.get("status", {})
    if stored["kind"] == "Node":
        found["status"] = {"allocatable": status["allocatable"]}
    elif stored["kind"] in ("Pod", "PersistentVolumeClaim", "PersistentVolume"):
        found["status"] = _status(status)
    return found


def _status(status: Raw) -> Raw:
    found: Raw = {}
    for key in ("phase", "resources", "allocatedResources"):
        if key in status:
            found[key] = status[key]
    for condition in status.get("conditions", ()):
        if condition["type"].startswith("PodResize"):
            found.setdefault("conditions", []).append(
                {key: condition[key] for key in ("type", "status", "reason")}
            )
    for container in status.get("containerStatuses", ()):
        found.setdefault("containerStatuses", []).append(
            {key: container[key] for key in ("name", "resources", "allocatedResources") if key in container}
        )  # fmt: skip
    return found


def _uid(namespace: str, name: str) -> str:
    return f"uid-{namespace}-{name}"


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without(each)
            for key, each in value.items()
            if key not in _UNREAD and each is not None
        }
    if isinstance(value, list):
        return [_without(each) for each in value]
    return value
