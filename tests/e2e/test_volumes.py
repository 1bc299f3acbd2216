"""Claims that wait for their first consumer, on a real API server; the test plays the controller of volumes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pumice.api.kinds import PERSISTENT_VOLUME_CLAIM
from tests.e2e.scheduled import PLACING, Cluster
from tests.kit.builders import job, task
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import Installation

Raw = dict[str, Any]

SELECTED = "volume.kubernetes.io/selected-node"
SIZE = {"storage": "1Gi"}


@pytest.fixture
def cluster(installation: Installation, namespace: str) -> Cluster:
    return Cluster(installation, namespace)


@pytest.fixture
def make(controlplane: ControlPlane) -> Iterator[Callable[[Raw], None]]:
    """Objects of the whole cluster that are gone after the test."""
    made: list[str] = []

    def apply(manifest: Raw) -> None:
        controlplane.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
        made.append(f"{manifest['kind']}/{manifest['metadata']['name']}")

    yield apply
    for name in made:
        controlplane.kubectl("patch", name, "--patch", '{"metadata":{"finalizers":null}}')
        controlplane.kubectl("delete", name, "--wait=false")


def storage_class(name: str, provisioner: str) -> Raw:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume(name: str, used: str, owner: Raw | None = None) -> Raw:
    spec: Raw = {
        "storageClassName": used,
        "accessModes": ["ReadWriteOnce"],
        "capacity": SIZE,
        "hostPath": {"path": f"/{name}"},
    }
    if owner is not None:
        meta = owner["metadata"]
        spec["claimRef"] = {key: meta[key] for key in ("namespace", "name", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": spec,
    }


def claim(name: str, used: str) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": used,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": SIZE},
        },
    }


def mounting(name: str) -> Raw:
    """A task of one pod that mounts a claim."""
    mounted = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    return task(name, 1, cpu="1", spec={"volumes": [mounted]})


def patch(cluster: Cluster, target: str, body: Raw, *arguments: str) -> None:
    cluster.kubectl("patch", target, "--type=merge", "--patch", json.dumps(body), *arguments)


def bind(cluster: Cluster, name: str, volume_name: str) -> None:
    """Bind a claim, as the controller of volumes does."""
    status = "--subresource=status"
    patch(cluster, f"pv/{volume_name}", {"status": {"phase": "Bound"}}, status)
    done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    patch(cluster, f"pvc/{name}", {"metadata": done, "spec": {"volumeName": volume_name}})
    patch(cluster, f"pvc/{name}", {"status": {"phase": "Bound"}}, status)


def test_a_gang_is_bound_when_all_of_its_claims_are(
    cluster: Cluster,
    add_node: Callable[..., str],
    make: Callable[[Raw], None],
) -> None:
    cluster.configure(PLACING)
    add_node("storage", "4")
    make(storage_class("made", "disk.example.com"))
    make(storage_class("local", "kubernetes.io/no-provisioner"))
    make(volume("disk", "local"))
    patch(cluster, "pv/disk", {"status": {"phase": "Available"}}, "--subresource=status")
    cluster.apply(claim("fresh", "made"), claim("found", "local"))
    manifest = job("train", [mounting("fresh"), mounting("found")], minAvailable=2)
    del manifest["metadata"]["namespace"]
    cluster.apply(manifest)

    def is_selected(claims: dict[str, Raw]) -> Raw | None:
        notes = claims["fresh"]["metadata"].get("annotations", {}) if "fresh" in claims else {}
        return claims["fresh"] if notes.get(SELECTED) == "storage" else None

    fresh = cluster.until(PERSISTENT_VOLUME_CLAIM, is_selected, "a node is selected for a volume")

    def owner() -> Any:
        found = json.loads(cluster.kubectl("get", "pv/disk", "-o", "json"))
        return found["spec"].get("claimRef", {}).get("name")

    wait_until(lambda: owner() == "found", "the volume is reserved")
    bind(cluster, "found", "disk")
    cluster.some_cycles()
    assert not any(each["spec"].get("nodeName") for each in cluster.pods().values())
    make(volume("made-for-fresh", "made", fresh))
    bind(cluster, "fresh", "made-for-fresh")
    pods = cluster.await_running("train", 2)
    assert {each["spec"]["nodeName"] for each in pods.values()} == {"storage"}
