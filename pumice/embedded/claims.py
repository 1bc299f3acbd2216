"""Simulated storage: the part of the controller of volumes and of provisioners.

A claim gets a volume of its own as soon as it exists, as from a provisioner that binds at once. If its StorageClass exists
and says `WaitForFirstConsumer`, it gets one when a scheduler has selected a node, or has reserved a volume for it. A class
without a provisioner gets reserved volumes only. A claim that names a volume is bound to that one when it is there. All nodes
reach a volume that is made here.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from pumice.api import kinds
from pumice.api.volumes import BIND_COMPLETED, PersistentVolumeClaim, StorageClass
from pumice.embedded.retries import Retries
from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.storage import Obj, StoredWrite
from pumice.embedded.store import Store

_CLAIMS = (kinds.PERSISTENT_VOLUME_CLAIM.group, kinds.PERSISTENT_VOLUME_CLAIM.plural)
_VOLUMES = (kinds.PERSISTENT_VOLUME.group, kinds.PERSISTENT_VOLUME.plural)


class SimulatedStorage:
    """Binds claims, and removes the volumes that it made when their claims go."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop: asyncio.AbstractEventLoop | None = None
        self._retries = Retries()
        self._waiting: dict[tuple[str, str], str] = {}
        """Volumes that do not exist yet, by the claims that name them."""
        self._reserved: dict[str, tuple[str, str]] = {}
        """Claims that volumes are for, by volume."""
        store.storage.listen(self._note)

    def start(self) -> None:
        """Bind claims from now on, those that wait included."""
        self._loop = asyncio.get_running_loop()
        for volume in self._store.list(kinds.PERSISTENT_VOLUME):
            self._note_owner(volume)
        for claim in self._store.list(kinds.PERSISTENT_VOLUME_CLAIM):
            self._bind(claim["metadata"]["namespace"], claim["metadata"]["name"])

    def stop(self) -> None:
        """Bind no more claims."""
        self._loop = None

    def _note(self, change: StoredWrite) -> None:
        if self._loop is None:
            return
        obj = change.new.obj
        meta = obj["metadata"]
        if change.resource == _CLAIMS and change.type == "DELETED":
            self._waiting.pop((meta["namespace"], meta["name"]), None)
            self._soon(self._reclaim, obj)
        elif change.resource == _CLAIMS:
            if (obj.get("status") or {}).get("phase") != "Bound":
                self._soon(self._bind, meta["namespace"], meta["name"])
        elif change.resource == _VOLUMES and change.type == "DELETED":
            self._reserved.pop(meta["name"], None)
        elif change.resource == _VOLUMES:
            owner = self._note_owner(obj)
            named = [key for key, volume in self._waiting.items() if volume == meta["name"]]
            for key in dict.fromkeys([*named, *([owner] if owner else [])]):
                self._soon(self._bind, *key)

    def _soon(self, work: Callable[..., None], *about: Any) -> None:
        if self._loop is not None:
            self._loop.call_soon(self._retries.attempt, str(about), partial(work, *about))

    def _note_owner(self, volume: Obj) -> tuple[str, str] | None:
        name, owner = volume["metadata"]["name"], (volume.get("spec") or {}).get("claimRef")
        self._reserved.pop(name, None)
        if not owner:
            return None
        self._reserved[name] = (owner.get("namespace", ""), owner.get("name", ""))
        return self._reserved[name]

    def _bind(self, namespace: str, claim_name: str) -> None:
        if self._loop is None:
            return
        claim = self._store.get(kinds.PERSISTENT_VOLUME_CLAIM, claim_name, namespace)
        if claim is None or (claim.get("status") or {}).get("phase") == "Bound":
            return
        name = self._volume_for(claim)
        if name is None:
            return
        self._waiting.pop((namespace, claim_name), None)
        spec, meta = claim.get("spec") or {}, claim["metadata"]
        notes = (meta.get("annotations") or {}) | {BIND_COMPLETED: "yes"}
        try:
            self._give(name, claim)
            bound = self._store.update(
                {
                    **claim,
                    "metadata": {**meta, "annotations": notes},
                    "spec": {**spec, "volumeName": name},
                }
            )
            amount = (spec.get("resources") or {}).get("requests") or {}
            status = {
                "phase": "Bound",
                "accessModes": spec.get("accessModes") or [],
                "capacity": amount,
            }
            self._store.update_status({**bound, "status": status})
        except ApiStatusError as error:
            if error.code not in {404, 409}:
                raise

    def _volume_for(self, claim: Obj) -> str | None:
        """The volume to bind a claim to, made if need be; None while there is none."""
        meta, spec = claim["metadata"], claim.get("spec") or {}
        key = (meta["namespace"], meta["name"])
        name = spec.get("volumeName")
        if name:
            named = self._store.get(kinds.PERSISTENT_VOLUME, name)
            if named is None or not _may_have(named, meta):
                self._waiting[key] = name
                return None
            return str(name)
        for volume, owner in sorted(self._reserved.items()):
            if owner == key and self._is_for(volume, meta["uid"]):
                return volume
        if not self._is_provisioned(claim):
            return None
        name = _volume_name(claim)
        if self._store.get(kinds.PERSISTENT_VOLUME, name) is None:
            self._store.create(_volume(name, claim))
        return name

    def _is_for(self, name: str, uid: str) -> bool:
        volume = self._store.get(kinds.PERSISTENT_VOLUME, name)
        return volume is not None and volume["spec"]["claimRef"].get("uid", "") in ("", uid)

    def _is_provisioned(self, claim: Obj) -> bool:
        """Whether a volume is to be made for a claim now; a class that is not known makes volumes at once."""
        read = msgspec.convert(claim, PersistentVolumeClaim)
        found = (
            self._store.get(kinds.STORAGE_CLASS, read.storage_class) if read.storage_class else None
        )
        if found is None:
            return True
        storage_class = msgspec.convert(found, StorageClass)
        return storage_class.provisions and (not storage_class.waits or bool(read.selected_node))

    def _give(self, name: str, claim: Obj) -> None:
        """Mark a volume as bound to a claim."""
        volume = self._store.get(kinds.PERSISTENT_VOLUME, name)
        if volume is None:
            return
        spec = volume.get("spec") or {}
        owner: dict[str, Any] = {**(spec.get("claimRef") or {}), **_reference(claim)}
        if spec.get("claimRef") != owner:
            volume = self._store.update({**volume, "spec": {**spec, "claimRef": owner}})
        self._store.update_status({**volume, "status": {"phase": "Bound"}})

    def _reclaim(self, claim: Obj) -> None:
        name = _volume_name(claim)
        if self._store.get(kinds.PERSISTENT_VOLUME, name) is not None:
            self._store.delete(kinds.PERSISTENT_VOLUME, name)


def _may_have(volume: Obj, claim: Obj) -> bool:
    """Whether a volume is for no claim, or for the one with this metadata."""
    owner = (volume.get("spec") or {}).get("claimRef")
    if not owner:
        return True
    names = owner.get("namespace"), owner.get("name")
    return names == (claim["namespace"], claim["name"]) and owner.get("uid", "") in (
        "",
        claim["uid"],
    )


def _volume_name(claim: Obj) -> str:
    return f"pvc-{claim['metadata']['uid']}"


def _reference(claim: Obj) -> Obj:
    meta = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
    }


def _volume(name: str, claim: Obj) -> Obj:
    spec = claim.get("spec") or {}
    made = {
        "capacity": (spec.get("resources") or {}).get("requests") or {},
        "accessModes": spec.get("accessModes") or [],
        "persistentVolumeReclaimPolicy": "Delete",
        "claimRef": _reference(claim),
        "hostPath": {"path": f"/simulated/{name}"},
    }
    if spec.get("storageClassName"):
        made["storageClassName"] = spec["storageClassName"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": made,
    }
