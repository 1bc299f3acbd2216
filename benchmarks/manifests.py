"""Pods and Jobs that `benchmarks.end_to_end` and `benchmarks.creations` submit."""

from pumice.api.kinds import JOB
from pumice.cluster.client import Object


def template() -> Object:
    """The pod spec of all pods."""
    requests = {"cpu": "1", "memory": "1Gi"}
    container = {"name": "main", "image": "busybox:1.36", "resources": {"requests": requests}}
    return {"containers": [container], "restartPolicy": "Never"}


def pod(number: int) -> Object:
    """A pod of a loop."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "labels": {"app": "bare"}},
        "spec": template() | {"schedulerName": "bare"},
    }


def like(model: Object, number: int, owner: Object) -> Object:
    """A pod as the controller creates it, with another name and an owner that is no Job."""
    meta, uid = model["metadata"], owner["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"huge-worker-{number}",
            "labels": meta["labels"],
            "annotations": meta["annotations"],
            "ownerReferences": [reference | {"controller": True, "blockOwnerDeletion": True}],
        },
        "spec": template() | {key: model["spec"][key] for key in ("schedulerName", "nodeSelector")},
    }


def job(name: str, size: int, *, lasts: str = "", fits: bool = True) -> Object:
    """A Job of one task.

    Args:
        name: Its name.
        size: Its pods.
        lasts: How long its pods run; for ever if empty.
        fits: False for one that no node suits.
    """
    spec = template() if fits else template() | {"nodeSelector": {"no": "such-node"}}
    annotations = {"pumice.dev/run-duration": lasts} if lasts else {}
    task = {
        "name": "worker",
        "replicas": size,
        "template": {"metadata": {"annotations": annotations}, "spec": spec},
    }
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": {"name": name},
        "spec": {"minAvailable": size, "schedulerName": "volcano", "tasks": [task]},
    }
