"""The kinds that the server knows without a CRD, one row each.

Pods, nodes, namespaces, services, CRDs and a few more have rules of their own; objects of other kinds are stored
unchanged. Kinds without a controller here (Deployment and so on) are included, so that charts and manifests with them
can be applied.
"""

from collections.abc import Sequence

from pumice.api import kinds
from pumice.api.kinds import Kind
from pumice.embedded.crds import CrdStrategy
from pumice.embedded.naming import path_segment_problem
from pumice.embedded.resources import STATUS, Resource, Subresource
from pumice.embedded.strategies import Strategy
from pumice.embedded.strategies_core import (
    ConfigMapStrategy,
    EventStrategy,
    NamespaceStrategy,
    NodeStrategy,
    PriorityClassStrategy,
    RuntimeClassStrategy,
    SecretStrategy,
    ServiceStrategy,
)
from pumice.embedded.strategies_pods import PodStrategy, WorkloadStrategy
from pumice.embedded.subresources import SCALE

POD_FIELDS = (
    "spec.host",
    "spec.hostNetwork",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.nominatedNodeName",
    "status.phase",
    "status.podIP",
)
EVENT_FIELDS = (
    "involvedObject.apiVersion",
    "involvedObject.fieldPath",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.resourceVersion",
    "involvedObject.uid",
    "reason",
    "reportingComponent",
    "source",
    "type",
)

BINDING = Subresource("binding", kind="Binding", version="v1", verbs=("create",))
EVICTION = Subresource("eviction", kind="Eviction", group="policy", version="v1", verbs=("create",))
LOG = Subresource("log", verbs=("get",))
ATTACH = Subresource("attach", kind="PodAttachOptions", version="v1", verbs=("create", "get"))
EXEC = Subresource("exec", kind="PodExecOptions", version="v1", verbs=("create", "get"))
PORT_FORWARD = Subresource(
    "portforward", kind="PodPortForwardOptions", version="v1", verbs=("create", "get")
)
EPHEMERAL = Subresource("ephemeralcontainers")
FINALIZE = Subresource("finalize", verbs=("update",))
_SCALE = Subresource("scale", kind=SCALE.kind, group=SCALE.group, version=SCALE.version)
_SCALED = ("ReplicationController", "Deployment", "ReplicaSet", "StatefulSet")
_SPECS = {
    ("apps", "ReplicaSet"): ("minReadySeconds", "replicas"),
    ("apps", "Deployment"): (
        *("minReadySeconds", "paused", "progressDeadlineSeconds", "replicas"),
        *("revisionHistoryLimit", "strategy"),
    ),
    ("batch", "Job"): (
        *("activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "completionMode"),
        *("completions", "managedBy", "manualSelector", "maxFailedIndexes", "parallelism"),
        *("podFailurePolicy", "podReplacementPolicy", "successPolicy", "suspend"),
        "ttlSecondsAfterFinished",
    ),
}
"""Kinds of which pods are made, with the fields of their specs beside selector and template (Kubernetes 1.36)."""

_NO_PODS = (
    "this cluster makes no pods of a {}: no controller acts on it; "
    "it makes pods of Deployments, ReplicaSets, batch Jobs and Volcano's Jobs"
)


def _row(
    kind: Kind,
    strategy: Strategy | None = None,
    *,
    categories: Sequence[str] = (),
    subresources: Sequence[Subresource] = (),
    fields: Sequence[str] = (),
    warning: str = "",
) -> Resource:
    status = (STATUS,) if kind.status else ()
    return Resource(
        kind=kind,
        strategy=strategy or Strategy(has_status=kind.status),
        singular=kind.kind.lower(),
        list_kind=f"{kind.kind}List",
        categories=tuple(categories),
        subresources=(*status, *subresources),
        fields=tuple(fields),
        warning=warning,
    )


def _plain(
    group: str,
    version: str,
    kind: str,
    plural: str,
    *short: str,
    namespaced: bool = True,
    status: bool = False,
    rbac: bool = False,
    categories: Sequence[str] = (),
    makes_pods: bool = True,
) -> Resource:
    row = Kind(group, version, kind, plural, namespaced, short, status)
    if rbac:
        return _row(row, Strategy(name_problem=path_segment_problem), categories=categories)
    strategy = Strategy(has_status=status, has_generation=status)
    if (fields := _SPECS.get((group, kind))) is not None:
        strategy = WorkloadStrategy(*fields, ends=group == "batch")
    warning = "" if makes_pods else _NO_PODS.format(kind)
    below = (_SCALE,) if kind in _SCALED else ()
    return _row(row, strategy, categories=categories, subresources=below, warning=warning)


def builtin_resources() -> list[Resource]:
    """All rows, created for each server."""
    return [*_ruled(), *_kept(), *_access()]


def _ruled() -> list[Resource]:
    """Kinds of which more is known than their names."""
    return [
        _row(
            kinds.NAMESPACE, NamespaceStrategy(), subresources=(FINALIZE,), fields=("status.phase",)
        ),
        _row(kinds.NODE, NodeStrategy(), fields=("spec.unschedulable",)),
        _row(
            kinds.POD,
            PodStrategy(),
            categories=("all",),
            subresources=(BINDING, EVICTION, ATTACH, EXEC, LOG, PORT_FORWARD, EPHEMERAL),
            fields=POD_FIELDS,
        ),
        _row(
            kinds.SERVICE,
            ServiceStrategy(),
            categories=("all",),
            fields=("spec.clusterIP", "spec.type"),
        ),
        _row(kinds.CONFIG_MAP, ConfigMapStrategy()),
        _row(kinds.SECRET, SecretStrategy(), fields=("type",)),
        _row(kinds.EVENT, EventStrategy(), fields=EVENT_FIELDS),
        _row(kinds.SERVICE_ACCOUNT),
        _row(kinds.NETWORK_POLICY, Strategy(has_generation=True)),
        _row(kinds.PRIORITY_CLASS, PriorityClassStrategy()),
        _row(kinds.RUNTIME_CLASS, RuntimeClassStrategy()),
        _row(kinds.LEASE, Strategy(unconditional_update=False)),
        _row(kinds.CRD, CrdStrategy()),
        _row(
            kinds.MUTATING_WEBHOOKS, Strategy(has_generation=True), categories=("api-extensions",)
        ),
        _row(
            kinds.VALIDATING_WEBHOOKS, Strategy(has_generation=True), categories=("api-extensions",)
        ),
    ]


def _kept() -> list[Resource]:
    """Kinds whose objects are stored unchanged."""
    return [
        _plain("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", status=True),
        _plain(
            "", "v1", "PersistentVolume", "persistentvolumes", "pv", namespaced=False, status=True
        ),
        _plain("", "v1", "ResourceQuota", "resourcequotas", "quota", status=True),
        _plain("", "v1", "LimitRange", "limitranges", "limits"),
        _plain("", "v1", "Endpoints", "endpoints", "ep"),
        _plain(
            "",
            "v1",
            "ReplicationController",
            "replicationcontrollers",
            "rc",
            status=True,
            categories=("all",),
            makes_pods=False,
        ),
        *(
            _plain(
                group,
                "v1",
                kind,
                plural,
                *short,
                status=True,
                categories=("all",),
                makes_pods=(group, kind) in _SPECS,
            )
            for group, kind, plural, *short in (
                ("apps", "Deployment", "deployments", "deploy"),
                ("apps", "ReplicaSet", "replicasets", "rs"),
                ("apps", "StatefulSet", "statefulsets", "sts"),
                ("apps", "DaemonSet", "daemonsets", "ds"),
                ("batch", "Job", "jobs"),
                ("batch", "CronJob", "cronjobs", "cj"),
            )
        ),
        _plain("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", status=True),
        _plain("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
        _plain("storage.k8s.io", "v1", "StorageClass", "storageclasses", "sc", namespaced=False),
        _plain("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False),
    ]


def _access() -> list[Resource]:
    """Kinds of access control, which has no effect here; their names may hold colons."""
    return [
        _plain("rbac.authorization.k8s.io", "v1", kind, plural, namespaced=namespaced, rbac=True)
        for kind, plural, namespaced in (
            ("Role", "roles", True),
            ("RoleBinding", "rolebindings", True),
            ("ClusterRole", "clusterroles", False),
            ("ClusterRoleBinding", "clusterrolebindings", False),
        )
    ]
