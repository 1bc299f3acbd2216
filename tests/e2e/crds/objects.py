"""Objects of each kind, as a user without the webhook would send them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.controlplane.cluster import ControlPlane

CRDS = Path(__file__).resolve().parents[3] / "charts/pumice/crds"

JOBS = "batch.volcano.sh/v1alpha1"
SCHEDULING = "scheduling.volcano.sh/v1beta1"
FLOWS = "flow.volcano.sh/v1alpha1"
TOPOLOGY = "topology.volcano.sh/v1alpha1"
GROUPS = {
    "Job": JOBS,
    "CronJob": JOBS,
    "PodGroup": SCHEDULING,
    "Queue": SCHEDULING,
    "JobFlow": FLOWS,
    "JobTemplate": FLOWS,
    "HyperNode": TOPOLOGY,
}
CLUSTER_WIDE = ("Queue", "HyperNode")
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
TASK = {"name": "worker", "replicas": 2, "template": TEMPLATE}
EXACT = {"exactMatch": {"name": "node-1"}}
REGEX = {"regexMatch": {"pattern": "node-.*"}}
LABELS = {"labelMatch": {"matchLabels": {"rack": "1"}}}
Raw = dict[str, Any]


def create(
    plane: ControlPlane, namespace: str, kind: str, spec: Raw | None = None, **top: Any
) -> tuple[int, Raw]:
    """Create an object called `it` and return what the server says.

    One that is in no namespace is called as the namespace is.
    """
    group = GROUPS[kind]
    place = "" if kind in CLUSTER_WIDE else f"namespaces/{namespace}/"
    name = namespace if kind in CLUSTER_WIDE else "it"
    body = {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec or {}}
    return plane.request("POST", f"/apis/{group}/{place}{kind.lower()}s", {**body, **top})


def job(plane: ControlPlane, namespace: str, **spec: Any) -> tuple[int, Raw]:
    return create(plane, namespace, "Job", {"tasks": [TASK], **spec})


def cron_job(plane: ControlPlane, namespace: str, **spec: Any) -> tuple[int, Raw]:
    whole = {"schedule": "@daily", "jobTemplate": {"spec": {"tasks": [TASK]}}, **spec}
    return create(plane, namespace, "CronJob", whole)


def hyper_node(plane: ControlPlane, namespace: str, **spec: Any) -> tuple[int, Raw]:
    whole = {"tier": 1, "members": [{"type": "Node", "selector": EXACT}], **spec}
    return create(plane, namespace, "HyperNode", whole)
