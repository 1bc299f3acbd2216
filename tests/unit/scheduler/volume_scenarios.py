"""Clusters with volumes, from the short rows of `volumes.yaml`."""

from typing import Any

import msgspec

from pumice.api.volumes import PersistentVolume, PersistentVolumeClaim
from tests.unit.scheduler.scenarios import Scenario, config_text

Raw = dict[str, Any]

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
DISK = "disk.example.com"
CLASSES: Raw = {
    "local": {"provisioner": "kubernetes.io/no-provisioner"},
    "share": {"provisioner": "kubernetes.io/no-provisioner"},
    "other": {"provisioner": "kubernetes.io/no-provisioner"},
    "any": {"provisioner": DISK},
    "zonal": {"provisioner": DISK, "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]},
    "nowhere": {"provisioner": DISK, "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["z"]}]}, {}]},
}  # fmt: skip


def storage_classes() -> Raw:
    """The classes of the cases."""
    waiting = {
        name: {"volumeBindingMode": "WaitForFirstConsumer"} | CLASSES[name] for name in CLASSES
    }
    return {**waiting, "now": {"provisioner": DISK, "volumeBindingMode": "Immediate"}}


def node_row(name: str, zone: str, cpu: int = 4) -> list[Any]:
    """A node in a zone."""
    return [name, cpu, "32Gi", {"labels": {HOST: name, ZONE: zone}}]


def volume(
    storage_class: str,
    size: int,
    node: str = "",
    spec: Raw | None = None,
    labels: Raw | None = None,
    phase: str = "Available",
    deleted: str = "",
) -> Raw:
    """A volume; one that only a node reaches if that is named."""
    manifest: Raw = {
        "spec": {
            "storageClassName": storage_class,
            "capacity": {"storage": f"{size}Gi"},
            "accessModes": ["ReadWriteOnce"],
            **(spec or {}),
        },
        "labels": labels or {},
        "status": {"phase": phase},
    }
    if node:
        here = [{"key": HOST, "operator": "In", "values": [node]}]
        manifest["spec"]["nodeAffinity"] = {
            "required": {"nodeSelectorTerms": [{"matchExpressions": here}]}
        }
    if deleted:
        manifest["metadata"] = {"deletionTimestamp": "2024-01-01T00:00:00Z", "labels": labels or {}}
    return manifest


def claim(name: str, row: Raw) -> Raw:
    """A claim of a class."""
    row = dict(row)
    meta: Raw = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "annotations": {}}
    if "node" in row:
        meta["annotations"]["volume.kubernetes.io/selected-node"] = row.pop("node")
    if "annotation" in row:
        meta["annotations"]["volume.beta.kubernetes.io/storage-class"] = row.pop("annotation")
    if "owner" in row:
        owner = {"kind": "Pod", "name": name, "uid": row.pop("owner"), "controller": True}
        meta["ownerReferences"] = [owner]
    bound = row.pop("bound", "")
    spec: Raw = {
        "storageClassName": row.pop("class", ""),
        "resources": {"requests": {"storage": f"{row.pop('size', 1)}Gi"}},
        "accessModes": ["ReadWriteOnce"],
        "volumeName": bound,
        **row,
    }
    return {"metadata": meta, "spec": spec, "status": {"phase": "Bound" if bound else "Pending"}}


def pod_volumes(mounted: list[Any]) -> list[Raw]:
    """Volumes of a pod: names of claims, or volumes as they stand in pods."""
    return [
        {"name": f"v{place}", "persistentVolumeClaim": {"claimName": each}}
        if isinstance(each, str)
        else each
        for place, each in enumerate(mounted)
    ]


def scenario_of(case: Raw, plugins: list[list[Any]] | None = None) -> Scenario:
    """The scenario of a case."""
    volumes: Raw = {f"local-{name}": ["local", 10, name] for name in ("n1", "n2", "n3")}
    volumes |= case.get("volumes", {})
    arguments = dict.fromkeys(case.get("disabled", ()), False)
    scenario = Scenario(
        {
            "nodes": [node_row("n1", "a"), node_row("n2", "b"), node_row("n3", "b")],
            "storage_classes": storage_classes(),
            "csi_nodes": case.get("csi_nodes", {}),
            "volumes": {name: volume(*row) for name, row in volumes.items() if row is not None},
            "claims": {name: claim(name, row) for name, row in case.get("claims", {}).items()},
            "podgroups": [
                ["ns", "pg", "default", case.get("min", len(case.get("pods", {}))), "Inqueue"],
                ["ns", "running", "default", 1, "Running"],
            ],
        },
        config_text(plugins or [["gang", {"predicates": None, "args": arguments}]], case.get("actions", ("enqueue", "allocate"))),
    )  # fmt: skip
    for name, (where, cpu, *mounted) in case.get("running", {}).items():
        spec = {"volumes": pod_volumes(mounted)}
        row = ["ns", name, where, "Running", cpu, "1Gi", "running", {"spec": spec}]
        scenario.add_pod(row)
    for name, mounted in case.get("pods", {}).items():
        add_pod(scenario, name, mounted)
    return scenario


def add_pod(scenario: Scenario, name: str, mounted: list[Any], group: str = "pg") -> None:
    """Add a pod of a gang that waits and mounts claims."""
    spec = {"volumes": pod_volumes(mounted)}
    scenario.add_pod(
        ["ns", name, "", "Pending", 1, "1Gi", group, {"spec": spec, "uid": f"uid-{name}"}]
    )


def choices(scenario: Scenario) -> dict[str, str]:
    """What claims are to be bound to: a volume, or `+node` for one to be provisioned."""
    found: dict[str, str] = {}
    for task in scenario.state.tasks.values():
        for key, choice in scenario.state.claims.choices.of(task.shape.claims).items():
            found[key.removeprefix("ns/")] = choice.volume or f"+{choice.node}"
    return found


def bind_claims(scenario: Scenario) -> None:
    """Bind every claim for which something has been chosen, as a controller of volumes would."""
    for name, chosen in sorted(choices(scenario).items()):
        old = scenario.state.claims.objects.claims[f"ns/{name}"]
        raw = msgspec.to_builtins(old)
        volume_name = chosen
        if chosen.startswith("+"):
            volume_name = f"pv-{name}"
            made = volume(old.storage_class, 10, chosen[1:], {"claimRef": {"namespace": "ns", "name": name, "uid": old.metadata.uid}}, None, "Bound")  # fmt: skip
            scenario.state.set_volume(
                msgspec.convert({"metadata": {"name": volume_name}, **made}, PersistentVolume)
            )
        raw["spec"]["volumeName"] = volume_name
        raw["status"] = {"phase": "Bound"}
        scenario.state.set_claim(msgspec.convert(raw, PersistentVolumeClaim))
