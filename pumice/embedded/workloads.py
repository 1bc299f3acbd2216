"""Simulated workloads: pods of ReplicaSets and batch Jobs.

Examples of other owners run with them where no controller manager runs. Each owner is checked after a change of it or
its pods: its pods are computed from the present state (see `pod_makers`), so that no change can be missed. Pods go
through admission, as in a cluster. What a controller manager does beyond that (adoption, time limits, pod failure
policies) is not simulated.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from pumice.api import kinds
from pumice.api.kinds import Kind
from pumice.api.meta import format_time
from pumice.embedded.pod_makers import WantedPods, wishes_of_job, wishes_of_replica_set
from pumice.embedded.retries import Retries
from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.storage import Obj, StoredWrite
from pumice.embedded.store import Store

__all__ = ["SimulatedWorkloads"]

_MAKERS: dict[Kind, Callable[[Obj, list[Obj], str], WantedPods]] = {
    kinds.REPLICA_SET: wishes_of_replica_set,
    kinds.INDEXED_JOB: wishes_of_job,
}
_KINDS = {(kind.group, kind.plural): kind for kind in _MAKERS}
_BY_NAME = {(kind.api_version, kind.kind): kind for kind in _MAKERS}
_PODS = (kinds.POD.group, kinds.POD.plural)
_AT_ONCE = 50
"""Pods made or removed before other tasks have their turn."""
_RETRY_SECONDS = 1.0

_Key = tuple[Kind, str, str]


class SimulatedWorkloads:
    """Creates and removes pods for their owners.

    Args:
        store: Where they are.
        clock: Gives the moment in UNIX seconds.
    """

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._retries = Retries()
        self._due: dict[_Key, asyncio.Handle] = {}
        self._refused: dict[str, str] = {}
        """Why a pod of an owner was last refused, by the owner's uid."""
        store.storage.listen(self._note)

    def start(self) -> None:
        """Handle owners from now on, including existing ones."""
        self._loop = asyncio.get_running_loop()
        for kind in _MAKERS:
            for owner in self._store.list(kind):
                self._soon((kind, owner["metadata"]["namespace"], owner["metadata"]["name"]))

    def stop(self) -> None:
        """Stop handling owners."""
        self._loop = None
        for handle in self._due.values():
            handle.cancel()
        self._due.clear()

    def _note(self, change: StoredWrite) -> None:
        obj = change.new.obj
        kind = _KINDS.get(change.resource)
        if kind is not None and change.type != "DELETED":
            self._soon((kind, *change.key))
        elif change.resource == _PODS and (owner := _controller(obj)):
            kind = _BY_NAME.get((owner["apiVersion"], owner["kind"]))
            if kind is not None:
                self._soon((kind, change.key[0], owner["name"]))

    def _soon(self, key: _Key, seconds: float = 0.0) -> None:
        if self._loop is not None and key not in self._due:
            self._due[key] = self._loop.call_later(
                seconds, self._retries.attempt, key, partial(self._look, key)
            )

    def _look(self, key: _Key) -> None:
        self._due.pop(key, None)
        kind, namespace, name = key
        owner = self._store.get(kind, name, namespace)
        if owner is None or owner["metadata"].get("deletionTimestamp"):
            return
        uid = owner["metadata"]["uid"]
        pods = [
            each
            for each in self._store.list(kinds.POD, namespace)
            if _controller(each).get("uid") == uid
        ]
        wishes = _MAKERS[kind](owner, pods, format_time(self._clock()))
        try:
            if owner.get("status") != wishes.status:
                self._store.update_status({**owner, "status": wishes.status})
            for pod in wishes.surplus[:_AT_ONCE]:
                self._store.delete(kinds.POD, pod["metadata"]["name"], namespace, grace=30)
            for pod in wishes.missing[:_AT_ONCE]:
                self._store.create(_owned(pod, owner), admit=True)
        except ApiStatusError as error:
            self._report(owner, error)
            self._soon(key, _RETRY_SECONDS)
            return
        self._refused.pop(uid, None)
        if max(len(wishes.surplus), len(wishes.missing)) > _AT_ONCE:
            self._soon(key)

    def _report(self, owner: Obj, error: ApiStatusError) -> None:
        """Record an event, unless the last one said the same of a pod of another name."""
        meta = owner["metadata"]
        why = str((error.details or {}).get("causes") or error.message)
        if self._refused.get(meta["uid"]) == why:
            return
        self._refused[meta["uid"]] = why
        moment = format_time(self._clock())
        about = {key: meta[key] for key in ("name", "namespace", "uid")}
        self._store.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"generateName": f"{meta['name']}.", "namespace": meta["namespace"]},
                "involvedObject": about
                | {"apiVersion": owner["apiVersion"], "kind": owner["kind"]},
                "type": "Warning",
                "reason": "FailedCreate",
                "message": f"Error creating: {error.message}",
                "source": {"component": "simulated-workloads"},
                "firstTimestamp": moment,
                "lastTimestamp": moment,
                "count": 1,
            }
        )


def _owned(pod: Obj, owner: Obj) -> Obj:
    meta = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    head = {**pod["metadata"], "namespace": meta["namespace"], "ownerReferences": [reference]}
    return {**pod, "metadata": head}


def _controller(obj: Obj) -> dict[str, Any]:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((each for each in owners if each.get("controller")), {})
