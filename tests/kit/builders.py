"""Test objects in one line: a case shows only what it is about.

Every builder returns a raw manifest, as users write it; extend them, do not go around them.
"""

from typing import Any

Raw = dict[str, Any]


def task(
    name: str = "worker",
    replicas: int | None = 1,
    *,
    cpu: str | None = None,
    memory: str | None = None,
    spec: Raw | None = None,
    annotations: dict[str, str] | None = None,
    **fields: Any,
) -> Raw:
    """A task of a Job with one container; `spec` is merged into the pod's spec."""
    container: Raw = {"name": "main", "image": "busybox:1.36"}
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    if requests:
        container["resources"] = {"requests": requests}
    template: Raw = {"spec": {"containers": [container]} | (spec or {})}
    if annotations:
        template["metadata"] = {"annotations": annotations}
    result: Raw = {"template": template} | fields
    if name:
        result["name"] = name
    if replicas is not None:
        result["replicas"] = replicas
    return result


def job(
    name: str = "train",
    tasks: list[Raw] | None = None,
    *,
    namespace: str = "default",
    uid: str = "",
    annotations: dict[str, str] | None = None,
    plugins: dict[str, list[str]] | None = None,
    status: Raw | None = None,
    **spec: Any,
) -> Raw:
    """A Volcano Job; keyword arguments are fields of its spec."""
    metadata: Raw = {"name": name, "namespace": namespace}
    if uid:
        metadata["uid"] = uid
    if annotations:
        metadata["annotations"] = annotations
    manifest: Raw = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"tasks": [task()] if tasks is None else tasks} | spec,
    }
    if plugins is not None:
        manifest["spec"]["plugins"] = plugins
    if status is not None:
        manifest["status"] = status
    return manifest


def queue(
    name: str = "default", *, state: str = "Open", annotations: Raw | None = None, **spec: Any
) -> Raw:
    """A Queue; keyword arguments are fields of its spec."""
    metadata: Raw = {"name": name}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": metadata,
        "spec": {"weight": 1} | spec,
        "status": {"state": state} if state else {},
    }


def pod_group(
    name: str = "pg",
    min_member: int = 1,
    *,
    namespace: str = "default",
    queue: str = "default",
    phase: str = "",
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Raw:
    """A PodGroup; keyword arguments are fields of its spec."""
    metadata: Raw = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    if annotations:
        metadata["annotations"] = annotations
    manifest: Raw = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"minMember": min_member, "queue": queue} | spec,
    }
    if phase:
        manifest["status"] = {"phase": phase}
    return manifest


def pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    group: str = "",
    role: str = "",
    node: str = "",
    phase: str = "Pending",
    cpu: str | None = None,
    memory: str | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Raw:
    """A pod of our scheduler; keyword arguments are fields of its spec."""
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    notes = dict(annotations or {})
    if group:
        notes["scheduling.k8s.io/group-name"] = group
    if role:
        notes["volcano.sh/task-spec"] = role
    container: Raw = {"name": "main", "image": "busybox:1.36", "resources": {"requests": requests}}
    body: Raw = {"schedulerName": "volcano", "containers": [container]} | spec
    if node:
        body["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": labels or {},
            "annotations": notes,
        },
        "spec": body,
        "status": {"phase": phase},
    }


def bare_pod(name: str = "p", *, namespace: str = "default", **spec: Any) -> Raw:
    """A pod as any user writes it: with no more than it must have; keyword arguments are fields of its spec."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "image"}]} | spec,
    }


def node(
    name: str = "node1",
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    *,
    labels: dict[str, str] | None = None,
    taints: list[Raw] | None = None,
    unschedulable: bool = False,
    **resources: str,
) -> Raw:
    """A ready node; further keyword arguments are extended resources (pass names with a slash by `**{...}`)."""
    amounts = {"cpu": cpu, "memory": memory, "pods": pods} | resources
    spec: Raw = {}
    if taints:
        spec["taints"] = taints
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | (labels or {})},
        "spec": spec,
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
