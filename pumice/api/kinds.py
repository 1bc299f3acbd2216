"""Every kind that Pumice names, with what an API server needs to find it.

One table serves the client, the watch caches, the embedded API server, the CRD generator and the
offline verbs, so that a plural or a scope is written down once.
"""

from typing import Any

import msgspec


class Kind(msgspec.Struct, frozen=True, cache_hash=True):
    """One resource of the Kubernetes API.

    Attributes:
        group: API group, empty for the core group.
        version: Version that Pumice reads and writes.
        kind: Name in manifests, for example `PodGroup`.
        plural: Name in paths, for example `podgroups`.
        namespaced: Whether objects live in a namespace.
        short_names: What kubectl accepts instead of the plural.
        status: Whether `/status` is a subresource of its own.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    status: bool = False

    def __hash__(self) -> int:
        """By the plural alone: kinds are looked up in every review, and a hash of all fields takes a microsecond."""
        return hash(self.plural)

    @property
    def api_version(self) -> str:
        """`apiVersion` of its manifests: `v1` or `group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def type_meta(self) -> dict[str, str]:
        """`apiVersion` and `kind` of its manifests; servers leave them out in lists."""
        return {"apiVersion": self.api_version, "kind": self.kind}

    @property
    def resource(self) -> str:
        """Name in RBAC rules and error messages: `plural` or `plural.group`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def singular(self) -> str:
        """Name of one object in output, as kubectl writes it: `singular.group`."""
        return f"{self.kind.lower()}.{self.group}" if self.group else self.kind.lower()

    @property
    def words(self) -> tuple[str, ...]:
        """What users write for the kind before a name; the usual one first."""
        return (self.kind.lower(), self.plural, *self.short_names, self.singular, self.resource)

    def collection(self, namespace: str | None = None) -> str:
        """Path of the collection; without a namespace, over all namespaces."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if self.namespaced and namespace is not None:
            return f"{root}/namespaces/{namespace}/{self.plural}"
        return f"{root}/{self.plural}"

    def path(self, name: str, namespace: str | None = None) -> str:
        """Path of one object."""
        return f"{self.collection(namespace)}/{name}"


JOB = Kind("batch.volcano.sh", "v1alpha1", "Job", "jobs", True, ("vcjob", "vj"), True)
CRON_JOB = Kind(
    "batch.volcano.sh", "v1alpha1", "CronJob", "cronjobs", True, ("cronvcjob", "cronvj"), True
)
"""Volcano's CronJob, which creates Volcano Jobs. The CronJob of group `batch` is another kind."""
COMMAND = Kind("bus.volcano.sh", "v1alpha1", "Command", "commands")
POD_GROUP = Kind(
    "scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", True, ("pg", "podgroup-v1beta1")
)
QUEUE = Kind(
    "scheduling.volcano.sh", "v1beta1", "Queue", "queues", False, ("q", "queue-v1beta1"), True
)
JOB_FLOW = Kind("flow.volcano.sh", "v1alpha1", "JobFlow", "jobflows", True, ("jf",), True)
JOB_TEMPLATE = Kind(
    "flow.volcano.sh", "v1alpha1", "JobTemplate", "jobtemplates", True, ("jt",), True
)
HYPER_NODE = Kind(
    "topology.volcano.sh", "v1alpha1", "HyperNode", "hypernodes", False, ("hn",), True
)

NAMESPACE = Kind("", "v1", "Namespace", "namespaces", False, ("ns",), True)
NODE = Kind("", "v1", "Node", "nodes", False, ("no",), True)
POD = Kind("", "v1", "Pod", "pods", True, ("po",), True)
SERVICE = Kind("", "v1", "Service", "services", True, ("svc",), True)
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps", True, ("cm",))
SECRET = Kind("", "v1", "Secret", "secrets")
EVENT = Kind("", "v1", "Event", "events", True, ("ev",))
SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts", True, ("sa",))
NETWORK_POLICY = Kind(
    "networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", True, ("netpol",)
)
INDEXED_JOB = Kind("batch", "v1", "Job", "jobs", True, ("job",), True)
"""Kubernetes' own Job. Everywhere else the word Job means Volcano's."""
JOB_SET = Kind("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets", True, (), True)
LEADER_WORKER_SET = Kind(
    "leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets", True, ("lws",), True
)
REPLICA_SET = Kind("apps", "v1", "ReplicaSet", "replicasets", True, ("rs",), True)
STATEFUL_SET = Kind("apps", "v1", "StatefulSet", "statefulsets", True, ("sts",), True)
DAEMON_SET = Kind("apps", "v1", "DaemonSet", "daemonsets", True, ("ds",), True)
REPLICATION_CONTROLLER = Kind(
    "", "v1", "ReplicationController", "replicationcontrollers", True, ("rc",), True
)
PERSISTENT_VOLUME_CLAIM = Kind(
    "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", True, ("pvc",), True
)
PERSISTENT_VOLUME = Kind("", "v1", "PersistentVolume", "persistentvolumes", False, ("pv",), True)
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", False, ("sc",))
CSI_NODE = Kind("storage.k8s.io", "v1", "CSINode", "csinodes", False)
PRIORITY_CLASS = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False, ("pc",))
RUNTIME_CLASS = Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False)
RESOURCE_QUOTA = Kind("", "v1", "ResourceQuota", "resourcequotas", True, ("quota",), True)
POD_DISRUPTION_BUDGET = Kind(
    "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True, ("pdb",), True
)
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
CRD = Kind(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    False,
    ("crd", "crds"),
    True,
)
MUTATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    False,
)
VALIDATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    False,
)

VOLCANO: tuple[Kind, ...] = (
    JOB,
    COMMAND,
    POD_GROUP,
    QUEUE,
    CRON_JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    HYPER_NODE,
)
"""The kinds whose CRDs Pumice ships."""

WIRED_OWNERS: tuple[Kind, ...] = (INDEXED_JOB, JOB_SET, LEADER_WORKER_SET)
"""The kinds of other controllers whose pods plugins can wire."""

ALL: tuple[Kind, ...] = (
    *VOLCANO,
    NAMESPACE,
    NODE,
    POD,
    SERVICE,
    CONFIG_MAP,
    SECRET,
    EVENT,
    SERVICE_ACCOUNT,
    NETWORK_POLICY,
    INDEXED_JOB,
    JOB_SET,
    LEADER_WORKER_SET,
    PRIORITY_CLASS,
    RUNTIME_CLASS,
    PERSISTENT_VOLUME_CLAIM,
    PERSISTENT_VOLUME,
    STORAGE_CLASS,
    CSI_NODE,
    RESOURCE_QUOTA,
    POD_DISRUPTION_BUDGET,
    LEASE,
    CRD,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
)

_BY_KIND = {(kind.api_version, kind.kind): kind for kind in ALL}


def of_object(manifest: dict[str, Any]) -> Kind | None:
    """Find the kind of a decoded manifest; None when it is not one that Pumice knows."""
    return _BY_KIND.get((str(manifest.get("apiVersion", "")), str(manifest.get("kind", ""))))
