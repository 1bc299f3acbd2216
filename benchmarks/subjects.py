"""Objects under review: a Job of 10 KB, a Queue, a pod; and a cluster of a thousand queues."""

import json
from typing import Any

from pumice.webhook.view import Snapshot

Raw = dict[str, Any]

MARK = "MMMMMMMM"
"""Placeholder for a number in the value of a variable of each template, in which Jobs of a sweep differ."""


def task(name: str, replicas: int, team: str = "vision") -> Raw:
    """A task of a usual length: variables, mounts, volumes, tolerations."""
    return {
        "name": name,
        "replicas": replicas,
        "minAvailable": replicas,
        "maxRetry": 3,
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
        "template": {
            "metadata": {"labels": {"app": name, "team": team}},
            "spec": {
                "restartPolicy": "Never",
                "nodeSelector": {"pool": "gpu"},
                "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
                "volumes": [
                    {"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"claim-{i}"}}
                    for i in range(6)
                ],
                "containers": [
                    {
                        "name": name,
                        "image": "registry.example/train/tensorflow:2.16",
                        "command": ["python", "/opt/train.py", "--epochs=90"],
                        "ports": [{"name": "tfjob-port", "containerPort": 2222}],
                        "env": [
                            {"name": f"VARIABLE_{i}", "value": f"value-{i}-of-some-length"}
                            for i in range(21)
                        ]
                        + [{"name": "VARIABLE_21", "value": f"value-{MARK}-of-length"}],
                        "volumeMounts": [
                            {"name": f"v{i}", "mountPath": f"/data/{i}"} for i in range(6)
                        ],
                        "resources": {
                            "requests": {"cpu": "4", "memory": "16Gi"},
                            "limits": {"cpu": "8", "memory": "16Gi"},
                        },
                    }
                ],
            },
        },
    }


def job(*, defaulted: bool, team: str = "vision") -> Raw:
    """A Job of about 9.8 KB, as a user writes it or with all defaults applied."""
    roles = (("ps", 2), ("worker", 4), ("chief", 1), ("evaluator", 1))
    spec: Raw = {
        "queue": "default",
        "maxRetry": 3,
        "plugins": {"tensorflow": ["--port=2222"], "env": []},
        "policies": [{"event": "PodFailed", "action": "RestartJob"}],
        "tasks": [task(name, replicas, team) for name, replicas in roles],
    }
    if defaulted:
        spec |= {"schedulerName": "volcano", "minAvailable": 8}
        spec["plugins"]["svc"] = []
    else:
        for each in spec["tasks"]:
            del each["minAvailable"], each["maxRetry"]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "resnet", "namespace": "vision", "labels": {"app": "resnet"}},
        "spec": spec,
    }


def queue() -> Raw:
    """A Queue below another one, with amounts."""
    amounts = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": 8}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "vision"},
        "spec": {
            "weight": 4,
            "reclaimable": True,
            "parent": "research",
            "capability": amounts,
            "deserved": amounts,
            "guarantee": {"resource": {"cpu": "16"}},
        },
    }


def pod() -> Raw:
    """A pod of another scheduler, without PodGroup."""
    spec = task("web", 1)["template"]["spec"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}


def review(group: str, version: str, plural: str, kind: str, obj: Raw) -> bytes:
    """A review as kube-apiserver sends it."""
    gvk = {"group": group, "version": version, "kind": kind}
    gvr = {"group": group, "version": version, "resource": plural}
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": gvk,
        "resource": gvr,
        "requestKind": gvk,
        "requestResource": gvr,
        "name": obj["metadata"]["name"],
        "namespace": obj["metadata"].get("namespace", ""),
        "operation": "CREATE",
        "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        "object": obj,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    envelope = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(envelope, separators=(",", ":")).encode()


def cluster() -> list[Raw]:
    """A cluster of a thousand queues; the queue under review has twenty beside it that share amounts."""
    amounts = _amounts(1000)
    shares = {"capability": amounts, "deserved": amounts, "guarantee": {"resource": amounts}}
    queues = [_queue("research", shares)]
    queues += [
        _queue(f"group-{number}", {"parent": "research", "deserved": _amounts(10)})
        for number in range(20)
    ]
    queues += [_queue(f"team-{number}", {}) for number in range(1000)]
    return queues


def _queue(name: str, spec: Raw) -> Raw:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"state": "Open"},
    }


def _amounts(cpus: int) -> Raw:
    return {"cpu": str(cpus), "memory": f"{4 * cpus}Gi", "nvidia.com/gpu": cpus}


def view() -> Snapshot:
    """The same cluster as a view of admission."""
    return Snapshot.of(cluster())
