"""Simulated workloads: pods of ReplicaSets and batch Jobs, and ReplicaSets of Deployments.

Examples of other owners run with them where no controller manager runs. Each owner is checked after a change of it or
its pods: its pods are computed from the present state, so that no change can be missed. Pods go
through admission, as in a cluster. What a controller manager does beyond that (adoption, time limits, pod failure
policies) is not simulated.
"""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from pumice.api import keys, kinds
from pumice.api.kinds import Kind
from pumice.api.meta import format_time
from pumice.embedded.node_objects import warn
from pumice.embedded.retries import Retries
from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.storage import Obj, StoredWrite
from pumice.embedded.store import Store
from pumice.embedded.strategies_pods import is_terminal

_BACKOFF_LIMIT = 6


@dataclass(slots=True)
class Wanted:
    """Status of an owner, and its pods, or ReplicaSets.

    Attributes:
        status: Its status.
        missing: What to make, without owner and namespace.
        surplus: Pods to delete.
        changed: ReplicaSets to replace.
    """

    status: Obj
    missing: list[Obj] = field(default_factory=list)
    surplus: list[Obj] = field(default_factory=list)
    changed: list[Obj] = field(default_factory=list)


DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments", True, ("deploy",), True)
_HASH = "pod-template-hash"


def _replica_sets_of(deployment: Obj, sets: list[Obj]) -> tuple[list[Obj], list[Obj]]:
    """ReplicaSets to create, and those that change."""
    spec = deployment["spec"]
    name = _set_name(deployment)
    changed = []
    for each in sets:
        wanted = _replicas(spec) if each["metadata"]["name"] == name else 0
        if _replicas(each["spec"]) != wanted:
            changed.append({**each, "spec": {**each["spec"], "replicas": wanted}})
    is_there = any(each["metadata"]["name"] == name for each in sets)
    return [] if is_there else [_replica_set(deployment, name)], changed


def _set_name(deployment: Obj) -> str:
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
        key: value
        for key, value in (meta.get("annotations") or {}).items()
        if key != keys.LAST_APPLIED
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


def _status_of(deployment: Obj, sets: list[Obj], now: str) -> Obj:
    """The status of a Deployment."""
    spec, name = deployment["spec"], _set_name(deployment)

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


def _wishes_of_deployment(owner: Obj, sets: list[Obj], now: str) -> Wanted:
    missing, changed = _replica_sets_of(owner, sets)
    return Wanted(_status_of(owner, sets, now), missing, changed=changed)


def wishes_of_replica_set(owner: Obj, pods: list[Obj], now: str) -> Wanted:
    """Pods of a ReplicaSet: as many as it has replicas; those that have ended are replaced."""
    del now
    spec, meta = owner["spec"], owner["metadata"]
    wanted = spec.get("replicas", 1)
    active = _active(pods)
    ready = sum(map(_is_ready, active))
    counts = {"readyReplicas": ready, "availableReplicas": ready}
    status = {"replicas": len(active), "fullyLabeledReplicas": len(active)}
    status |= {key: count for key, count in counts.items() if count}
    status["observedGeneration"] = meta.get("generation", 1)
    missing = [_pod(owner, f"{meta['name']}-", {}, {}) for _ in range(max(0, wanted - len(active)))]
    return Wanted(status, missing, _least(active)[: max(0, len(active) - wanted)])


def wishes_of_job(owner: Obj, pods: list[Obj], now: str) -> Wanted:
    """Pods of a Job: `parallelism` at a time, until `completions` of them have succeeded."""
    spec, before = owner["spec"], owner.get("status") or {}
    if any(each["type"] in ("Complete", "Failed") for each in before.get("conditions") or ()):
        return Wanted(before | {"active": 0, "ready": 0}, surplus=_active(pods))
    active, phases = _active(pods), [_phase(each) for each in pods]
    indexed = spec.get("completionMode") == "Indexed"
    done = _done(before, pods, indexed=indexed)
    failed = max(phases.count("Failed"), before.get("failed", 0))
    status: Obj = {
        "startTime": before.get("startTime", now),
        "active": len(active),
        "ready": sum(map(_is_ready, active)),
        "succeeded": len(done),
        "failed": failed,
    }
    if indexed and done:
        status["completedIndexes"] = ",".join(map(str, sorted(done)))
    completions = spec.get("completions", None if "parallelism" in spec else 1)
    complete = len(done) >= completions if completions is not None else bool(done) and not active
    if complete or failed > spec.get("backoffLimit", _BACKOFF_LIMIT):
        return _ended(status, active, now, complete=complete)
    left = spec.get("parallelism", 1)
    if completions is not None:
        left = min(left, completions - len(done))
    elif done:
        left = min(left, len(active))
    if spec.get("suspend"):
        return Wanted(status, surplus=active)
    surplus = _least(active)[: max(0, len(active) - left)]
    count = max(0, left - len(active))
    if not indexed:
        return Wanted(status, [_job_pod(owner) for _ in range(count)], surplus)
    taken = done | {_index_of(each) for each in active}
    free = [index for index in range(completions or 0) if index not in taken]
    return Wanted(status, [_job_pod(owner, index) for index in free[:count]], surplus)


def _ended(status: Obj, active: list[Obj], now: str, *, complete: bool) -> Wanted:
    condition = {"type": "Complete" if complete else "Failed", "status": "True"}
    condition |= {"lastProbeTime": now, "lastTransitionTime": now}
    if complete:
        status["completionTime"] = now
    else:
        condition["reason"] = "BackoffLimitExceeded"
        condition["message"] = "Job has reached the specified backoff limit"
    return Wanted(status | {"conditions": [condition]}, surplus=active)


def _done(before: Obj, pods: list[Obj], *, indexed: bool) -> set[int]:
    """Indexes of succeeded pods, including deleted ones. Pods without an index get arbitrary numbers."""
    succeeded = [each for each in pods if _phase(each) == "Succeeded"]
    if indexed:
        noted = filter(None, before.get("completedIndexes", "").split(","))
        return {*map(int, noted), *map(_index_of, succeeded)}
    return set(range(max(len(succeeded), before.get("succeeded", 0))))


def _job_pod(owner: Obj, index: int | None = None) -> Obj:
    name, uid = owner["metadata"]["name"], owner["metadata"]["uid"]
    labels = {"job-name": name, "controller-uid": uid}
    labels |= {f"batch.kubernetes.io/{key}": text for key, text in labels.items()}
    if index is None:
        return _pod(owner, f"{name}-", labels, {})
    noted = {keys.COMPLETION_INDEX: str(index)}
    pod = _pod(owner, f"{name}-{index}-", labels | noted, noted)
    path = f"metadata.annotations['{keys.COMPLETION_INDEX}']"
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}}
    spec = {"hostname": f"{name}-{index}", **pod["spec"]}
    for group in ("initContainers", "containers"):
        if group in spec:
            spec[group] = [
                {**each, "env": [*(each.get("env") or ()), variable]} for each in spec[group]
            ]
    return {**pod, "spec": spec}


def _pod(owner: Obj, stem: str, labels: dict[str, str], annotations: dict[str, str]) -> Obj:
    template = owner["spec"].get("template") or {}
    meta: dict[str, Any] = template.get("metadata") or {}
    head = {
        "generateName": stem,
        "labels": {**(meta.get("labels") or {}), **labels},
        "annotations": {**(meta.get("annotations") or {}), **annotations},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": template.get("spec") or {}}


def _active(pods: list[Obj]) -> list[Obj]:
    return [
        each
        for each in pods
        if not is_terminal(each) and not each["metadata"].get("deletionTimestamp")
    ]


def _least(pods: list[Obj]) -> list[Obj]:
    """Pods in the order in which they go: those that are on no node, those that are not ready, and the newest first."""
    found = sorted(pods, key=_age, reverse=True)
    found.sort(key=lambda pod: (bool(pod["spec"].get("nodeName")), _is_ready(pod)))
    return found


def _age(pod: Obj) -> tuple[str, str]:
    return pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]


def _is_ready(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _phase(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def _index_of(pod: Obj) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(keys.COMPLETION_INDEX, -1))


_MAKERS: dict[Kind, Callable[[Obj, list[Obj], str], Wanted]] = {
    kinds.REPLICA_SET: wishes_of_replica_set,
    kinds.INDEXED_JOB: wishes_of_job,
    DEPLOYMENT: _wishes_of_deployment,
}
_KINDS = {(kind.group, kind.plural): kind for kind in _MAKERS}
_BY_NAME = {(kind.api_version, kind.kind): kind for kind in _MAKERS}
_CHILDREN = dict.fromkeys(_MAKERS, kinds.POD) | {DEPLOYMENT: kinds.REPLICA_SET}
_OWNED = {(kind.group, kind.plural) for kind in _CHILDREN.values()}
_AT_ONCE = 50
"""Pods made or removed before other tasks have their turn."""
_RETRY_SECONDS = 1.0

_Key = tuple[Kind, str, str]


class SimulatedWorkloads:
    """Creates and removes pods for their owners."""

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
        if change.resource in _OWNED and (owner := _controller(obj)):
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
        if owner is None or not owner.get("spec") or owner["metadata"].get("deletionTimestamp"):
            return
        uid = owner["metadata"]["uid"]
        owned = [
            each
            for each in self._store.list(_CHILDREN[kind], namespace)
            if _controller(each).get("uid") == uid
        ]
        wishes = _MAKERS[kind](owner, owned, format_time(self._clock()))
        try:
            if owner.get("status") != wishes.status:
                self._store.update_status({**owner, "status": wishes.status})
            for pod in wishes.surplus[:_AT_ONCE]:
                self._store.delete(kinds.POD, pod["metadata"]["name"], namespace, grace=30)
            for each in wishes.changed:
                self._store.update(each)
            for made in wishes.missing[:_AT_ONCE]:
                self._store.create(_owned(made, owner), admit=True)
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
        message = f"Error creating: {error.message}"
        warn(self._store, owner, "FailedCreate", message, moment, "simulated-workloads")


def _owned(made: Obj, owner: Obj) -> Obj:
    meta = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    head = {**made["metadata"], "namespace": meta["namespace"], "ownerReferences": [reference]}
    return {**made, "metadata": head}


def _controller(obj: Obj) -> dict[str, Any]:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((each for each in owners if each.get("controller")), {})
