"""Objects under review: Jobs of 10 and 24 KB, a Queue, a pod; and a cluster of a thousand queues."""

import json
from typing import Any

from pumice.webhook.view import Snapshot

Raw = dict[str, Any]

MARK = "MMMMMMMM"
"""Placeholder for a number, which is another one in each review: in the value of a variable and of a label of each template."""


def task(name: str, replicas: int) -> Raw:
    """A task of a usual length: variables, mounts, volumes, tolerations."""
    return {
        "name": name,
        "replicas": replicas,
        "minAvailable": replicas,
        "maxRetry": 3,
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
        "template": {
            "metadata": {"labels": {"app": name, "run": MARK}},
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


def job(*, defaulted: bool) -> Raw:
    """A Job of about 9.8 KB, as a user writes it or with all defaults applied."""
    roles = (("ps", 2), ("worker", 4), ("chief", 1), ("evaluator", 1))
    spec: Raw = {
        "queue": "default",
        "maxRetry": 3,
        "plugins": {"tensorflow": ["--port=2222"], "env": []},
        "policies": [{"event": "PodFailed", "action": "RestartJob"}],
        "tasks": [task(name, replicas) for name, replicas in roles],
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


def distinct_job() -> Raw:
    """The same Job, defaulted, of which also no task has volumes or mounts that were there before."""
    found = job(defaulted=True)
    for number, each in enumerate(found["spec"]["tasks"], start=1):
        spec = each["template"]["spec"]
        for volume in spec["volumes"]:
            volume["persistentVolumeClaim"]["claimName"] += f"-{number}-{MARK}"
        for mount in spec["containers"][0]["volumeMounts"]:
            mount["mountPath"] += f"/{number}/{MARK}"
    return found


def applied_job(*, defaulted: bool) -> Raw:
    """The same Job as most users have it: with plugin ssh and volumes, applied by kubectl, which keeps a copy of it."""
    found = job(defaulted=defaulted)
    spec, metadata = found["spec"], found["metadata"]
    spec["plugins"]["ssh"] = []
    spec["volumes"] = [
        {"mountPath": "/logs", "volumeClaimName": "logs"},
        {
            "mountPath": "/output",
            "volumeClaim": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "100Gi"}},
            },
        },
    ]
    for each in spec["tasks"]:
        each["template"]["metadata"]["annotations"] = {"sidecar.istio.io/inject": "false"}
    annotations = {"example.com/owner": "vision", "volcano.sh/preemptable": "true"}
    metadata["annotations"] = annotations
    copied = json.dumps(found, separators=(",", ":"))
    fields: Raw = {
        "f:metadata": {
            "f:annotations": {
                ".": {},
                _LAST_APPLIED_FIELD: {},
                **{f"f:{key}": {} for key in annotations},
            },
            "f:labels": {".": {}, "f:app": {}},
        },
        "f:spec": {
            ".": {},
            "f:plugins": {".": {}, **{f"f:{name}": {} for name in spec["plugins"]}},
            **{f"f:{name}": {} for name in spec if name != "plugins"},
        },
    }
    metadata["annotations"] |= {_LAST_APPLIED: copied}
    metadata["managedFields"] = [
        {
            "manager": "kubectl-client-side-apply",
            "operation": "Update",
            "apiVersion": found["apiVersion"],
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
    ]
    return found


_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_LAST_APPLIED_FIELD = f"f:{_LAST_APPLIED}"


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
