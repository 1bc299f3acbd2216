"""Drawn volumes: classes, drivers of nodes, volumes, and the claims of pods in every state that a claim can be in."""

from typing import Any

from tests.reference.chances import Chances
from tests.reference.nodes import HOSTNAME, REGION, ZONE, ZONES

Raw = dict[str, Any]

_DRIVER, _OTHER_DRIVER = "disk.csi.example.com", "file.csi.example.com"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"


def _storage_class(name: str, provisioner: str, mode: str, **rest: Any) -> Raw:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **rest,
    }


STORAGE_CLASSES = [
    _storage_class("immediate", _DRIVER, "Immediate"),
    _storage_class("waits", _DRIVER, "WaitForFirstConsumer"),
    _storage_class("waits-other", _OTHER_DRIVER, "WaitForFirstConsumer"),
    _storage_class("static", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
    _storage_class(
        "waits-in-zones",
        _DRIVER,
        "WaitForFirstConsumer",
        allowedTopologies=[
            {"matchLabelExpressions": [{"key": ZONE, "values": ["za", "zb"]}]},
            {
                "matchLabelExpressions": [
                    {"key": REGION, "values": ["rb"]},
                    {"key": "disk", "values": ["ssd"]},
                ]
            },
        ],
    ),
]


def csi_nodes(chances: Chances, names: list[str]) -> list[Raw]:
    """What the drivers of each node say about it; some nodes have none."""
    found = []
    for name in names:
        if chances.happens(0.1):
            continue
        drivers: list[Raw] = []
        for driver in (_DRIVER, _OTHER_DRIVER):
            if chances.happens(0.9):
                limit = chances.one((None, 1, 2, 3, 4, 8))
                allocatable = {} if limit is None else {"allocatable": {"count": limit}}
                drivers.append({"name": driver, "nodeID": name, "topologyKeys": []} | allocatable)
        found.append(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": name},
                "spec": {"drivers": drivers},
            }
        )
    return found


class Storage:
    """The volumes and claims of one cluster, which grow with the pods that are drawn.

    Attributes:
        volumes: PersistentVolumes.
        claims: PersistentVolumeClaims; those of ephemeral volumes name the pod that they belong to in `owner`.
    """

    def __init__(self, chances: Chances) -> None:
        self._chances = chances
        self.volumes: list[Raw] = []
        self.claims: list[Raw] = []
        for _ in range(chances.number(4, 9)):
            self._free_volume()

    def mount(self, pod: Raw, *, runs: bool) -> None:
        """Draw the volumes of a pod.

        Args:
            pod: The pod; its spec grows.
            runs: Whether it runs already, so that its claims are bound.
        """
        chances = self._chances
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        mounted: list[Raw] = []
        for number in range(chances.one((1, 1, 1, 2, 3))):
            volume = f"v{number}"
            shared = [
                each
                for each in self.claims
                if each["metadata"]["namespace"] == namespace
                and "owner" not in each
                and not each["metadata"]["name"].startswith(f"{name}-v")
            ]
            if shared and chances.happens(0.3):
                claim = chances.one(shared)["metadata"]["name"]
                if any(claim == _claim_of(each) for each in mounted):
                    continue
                mounted.append(_mount(volume, claim))
                continue
            if chances.happens(0.04) and not runs:
                mounted.append(_mount(volume, "missing"))
                continue
            if chances.happens(0.15):
                mounted.append(self._ephemeral(namespace, name, volume, runs=runs))
                continue
            claim = f"{name}-c{number}"
            self._claim(namespace, claim, runs=runs)
            mounted.append(_mount(volume, claim))
        pod["spec"]["volumes"] = mounted

    def _ephemeral(self, namespace: str, pod: str, volume: str, *, runs: bool) -> Raw:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "waits",
        }
        if runs or self._chances.happens(0.85):
            self._claim(namespace, f"{pod}-{volume}", runs=runs)
            if runs or self._chances.happens(0.85):
                self.claims[-1]["owner"] = pod
        return {"name": volume, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}

    def _claim(self, namespace: str, name: str, *, runs: bool) -> None:
        chances = self._chances
        mode = chances.one(("ReadWriteOnce",) * 4 + ("ReadWriteMany",) * 3 + ("ReadWriteOncePod",))
        claim: Raw = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "accessModes": [mode],
                "resources": {"requests": {"storage": chances.one(("1Gi", "5Gi", "20Gi"))}},
            },
        }
        self.claims.append(claim)
        if runs or chances.happens(0.45):
            self._bind(claim)
            return
        claim["spec"]["storageClassName"] = chances.one(
            ("waits",) * 5 + ("waits-other",) * 3 + ("static",) * 5 + ("waits-in-zones",) * 3 + ("immediate", "unknown")
        )  # fmt: skip
        if chances.happens(0.06):
            claim["metadata"]["annotations"] = {_SELECTED_NODE: chances.one(("n00", "n01", "n02"))}
        if chances.happens(0.1):
            claim["spec"]["selector"] = {"matchLabels": {"speed": "fast"}}
        if chances.happens(0.04):
            claim["isDeleted"] = True
        if claim["spec"]["storageClassName"] == "static" and chances.happens(0.3):
            self._free_volume({"namespace": namespace, "name": name})

    def _bind(self, claim: Raw) -> None:
        chances = self._chances
        meta, spec = claim["metadata"], claim["spec"]
        spec["volumeName"] = name = f"pv-{meta['namespace']}-{meta['name']}"
        spec["storageClassName"] = chances.one(("waits", "static", "immediate", ""))
        meta["annotations"] = {_BIND_COMPLETED: "yes"}
        claim["status"] = {"phase": "Lost" if chances.happens(0.03) else "Bound"}
        if chances.happens(0.03):  # it names its volume, and is not bound to it yet
            del meta["annotations"], claim["status"]
        if chances.happens(0.03):
            return
        self._volume(name, spec["storageClassName"], spec["accessModes"])
        self.volumes[-1]["status"] = {"phase": "Bound"}
        self.volumes[-1]["spec"]["claimRef"] = {
            "namespace": meta["namespace"],
            "name": meta["name"],
        }

    def _free_volume(self, reserved_for: Raw | None = None) -> None:
        chances = self._chances
        modes = chances.some(("ReadWriteOnce", "ReadWriteMany"), 1, 2)
        if chances.happens(0.15):
            modes = ["ReadWriteOncePod"]
        self._volume(
            f"free-{len(self.volumes):02}", chances.one(("static", "static", "waits")), modes
        )
        phase = "Available" if chances.happens(0.9) else chances.one(("Released", "Pending"))
        self.volumes[-1]["status"] = {"phase": phase}
        if reserved_for:
            self.volumes[-1]["spec"]["claimRef"] = reserved_for

    def _volume(self, name: str, storage_class: str, modes: list[str]) -> None:
        chances = self._chances
        labels: dict[str, str] = {}
        if chances.happens(0.3):
            labels[ZONE] = chances.one((*ZONES, "za__zb"))
            if chances.happens(0.4):
                labels[REGION] = chances.one(("ra", "rb"))
        elif chances.happens(0.15):
            labels["failure-domain.beta.kubernetes.io/zone"] = chances.one(ZONES)
        if chances.happens(0.5):
            labels["speed"] = "fast"
        spec: Raw = {
            "capacity": {"storage": chances.one(("2Gi", "10Gi", "50Gi"))},
            "accessModes": modes,
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {
                "driver": chances.one((_DRIVER, _DRIVER, _OTHER_DRIVER)),
                "volumeHandle": name,
            },
        }
        if chances.happens(0.6):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [_reached_from(chances)]}}
        self.volumes.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name, "labels": labels},
                "spec": spec,
            }
        )


def _reached_from(chances: Chances) -> Raw:
    key, values = chances.one(
        (
            (ZONE, chances.some(ZONES, 1, 2)),
            (HOSTNAME, chances.some(("n00", "n01", "n02", "n03", "n04"), 1, 4)),
            ("disk", ["ssd"]),
        )
    )
    return {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}


def _mount(volume: str, claim: str) -> Raw:
    return {"name": volume, "persistentVolumeClaim": {"claimName": claim}}


def _claim_of(volume: Raw) -> str | None:
    source = volume.get("persistentVolumeClaim")
    return source["claimName"] if source else None
