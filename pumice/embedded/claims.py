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
        store.storage.listen(self._note)

    def start(self) -> None:
        """Bind claims from now on, those that wait included."""
        self._loop = asyncio.get_running_loop()
        self._bind_all()

    def stop(self) -> None:
        """Bind no more claims."""
        self._loop = None

    def _note(self, change: Change) -> None:
        if self._loop is None:
            return
        if change.resource == _CLAIMS and change.type == "DELETED":
            self._loop.call_soon(self._reclaim, change.new.obj)
        elif change.resource in (_CLAIMS, _VOLUMES) and change.type == "ADDED":
            self._loop.call_soon(self._bind_all)

    def _bind_all(self) -> None:
        for claim in self._store.list(kinds.PERSISTENT_VOLUME_CLAIM):
            if (claim.get("status") or {}).get("phase") != "Bound":
                self._bind(claim)

    def _bind(self, claim: Obj) -> None:
        spec = claim["spec"]
        name = spec.get("volumeName") or _volume_name(claim)
        if self._store.get(kinds.PERSISTENT_VOLUME, name) is None:
            if spec.get("volumeName"):
                return
            self._store.create(_volume(name, claim))
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
    spec, meta = claim["spec"], claim["metadata"]
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
