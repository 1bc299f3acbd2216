"""Simulated storage: a claim gets a volume of its own as soon as it exists, as from a provisioner that binds at once.

A claim that names a volume is bound to that one when it is there. All nodes reach a volume that is made here.
"""

import asyncio

from pumice.api import kinds
from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.storage import Change, Obj
from pumice.embedded.store import Store

__all__ = ["SimulatedStorage"]

_CLAIMS = (kinds.PERSISTENT_VOLUME_CLAIM.group, kinds.PERSISTENT_VOLUME_CLAIM.plural)
_VOLUMES = (kinds.PERSISTENT_VOLUME.group, kinds.PERSISTENT_VOLUME.plural)


class SimulatedStorage:
    """Binds claims, and removes the volumes that it made when their claims go.

    Args:
        store: Where claims and volumes are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[tuple[str, str], str] = {}
        """Volumes that do not exist yet, by the claims that name them."""
        store.storage.listen(self._note)

    def start(self) -> None:
        """Bind claims from now on, those that wait included."""
        self._loop = asyncio.get_running_loop()
        for claim in self._store.list(kinds.PERSISTENT_VOLUME_CLAIM):
            self._bind(claim["metadata"]["namespace"], claim["metadata"]["name"])

    def stop(self) -> None:
        """Bind no more claims."""
        self._loop = None

    def _note(self, change: Change) -> None:
        if self._loop is None:
            return
        meta = change.new.obj["metadata"]
        if change.resource == _CLAIMS and change.type == "DELETED":
            self._waiting.pop((meta["namespace"], meta["name"]), None)
            self._loop.call_soon(self._reclaim, change.new.obj)
        elif change.resource == _CLAIMS and change.type == "ADDED":
            self._loop.call_soon(self._bind, meta["namespace"], meta["name"])
        elif change.resource == _VOLUMES and change.type == "ADDED":
            for key, volume in list(self._waiting.items()):
                if volume == meta["name"]:
                    self._loop.call_soon(self._bind, *key)

    def _bind(self, namespace: str, claim_name: str) -> None:
        claim = self._store.get(kinds.PERSISTENT_VOLUME_CLAIM, claim_name, namespace)
        if claim is None or (claim.get("status") or {}).get("phase") == "Bound":
            return
        spec = claim.get("spec") or {}
        name = spec.get("volumeName") or _volume_name(claim)
        if self._store.get(kinds.PERSISTENT_VOLUME, name) is None:
            if spec.get("volumeName"):
                self._waiting[namespace, claim_name] = name
                return
            self._store.create(_volume(name, claim))
        self._waiting.pop((namespace, claim_name), None)
        try:
            bound = self._store.update({**claim, "spec": {**spec, "volumeName": name}})
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

    def _reclaim(self, claim: Obj) -> None:
        name = _volume_name(claim)
        if self._store.get(kinds.PERSISTENT_VOLUME, name) is not None:
            self._store.delete(kinds.PERSISTENT_VOLUME, name)


def _volume_name(claim: Obj) -> str:
    return f"pvc-{claim['metadata']['uid']}"


def _volume(name: str, claim: Obj) -> Obj:
    spec, meta = claim.get("spec") or {}, claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": (spec.get("resources") or {}).get("requests") or {},
            "accessModes": spec.get("accessModes") or [],
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
            },
            "hostPath": {"path": f"/simulated/{name}"},
        },
    }
