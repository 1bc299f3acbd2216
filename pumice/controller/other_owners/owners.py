"""Owners of pods, as far as their PodGroups depend on them.

The pods of one controlling owner are one gang and have one PodGroup, `podgroup-<uid of the owner>`. A pod without a
controlling owner is a gang by itself. For Kubernetes' own kinds of owners, annotations and numbers of pods are watched.
For other kinds, mostly custom resources, annotations are looked up, and the number of pods is not known.
"""

from dataclasses import dataclass

import msgspec

from pumice.api import kinds
from pumice.api.kinds import Kind
from pumice.api.meta import ApiStruct, ObjectMeta, controller_of, number_in

OWNER_KINDS: tuple[Kind, ...] = (
    kinds.REPLICA_SET,
    kinds.STATEFUL_SET,
    kinds.DAEMON_SET,
    kinds.REPLICATION_CONTROLLER,
    kinds.INDEXED_JOB,
)
"""Owners that are watched."""

GROUP_PREFIX = "podgroup-"

DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
"""Annotation of a Deployment's ReplicaSet: the replicas of the Deployment, of which the ReplicaSet may have only a part."""

_READ = ("volcano.sh/", "scheduling.volcano.sh/", DESIRED_REPLICAS)
_BY_NAME = {(kind.api_version, kind.kind): kind for kind in OWNER_KINDS}


class PodOwnerMeta(ApiStruct, frozen=True):
    """Identity of an object, and those of its annotations on which its PodGroup depends."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None
    annotations: dict[str, str] | None = None

    def __post_init__(self) -> None:
        """Drop annotations that are never read: kubectl's copy of the manifest is larger than the rest."""
        found = self.annotations or {}
        read = {key: text for key, text in found.items() if key.startswith(_READ)}
        msgspec.structs.force_setattr(self, "annotations", read or None)


class PodOwnerSpec(ApiStruct, frozen=True):
    """Number of pods of an owner, and its update strategy."""

    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    pod_management_policy: str = ""


class PodOwner(ApiStruct, frozen=True):
    """An owner of pods: a ReplicaSet, StatefulSet, DaemonSet, ReplicationController or batch Job, or the metadata of any other."""

    metadata: PodOwnerMeta = PodOwnerMeta()
    spec: PodOwnerSpec = PodOwnerSpec()

    def size(self, kind: Kind) -> int | None:
        """Number of its pods; None for a DaemonSet, where it depends on the nodes, and for owners of other kinds."""
        spec = self.spec
        if kind == kinds.DAEMON_SET or kind not in OWNER_KINDS:
            return None
        if kind != kinds.INDEXED_JOB:
            return 1 if spec.replicas is None else spec.replicas
        if spec.suspend:
            return 0
        parallel = 1 if spec.parallelism is None else spec.parallelism
        return parallel if spec.completions is None else min(parallel, spec.completions)

    def whole_size(self, kind: Kind) -> int | None:
        """`size` after a rolling update: a Deployment divides its replicas over several ReplicaSets until then."""
        desired = number_in((self.metadata.annotations or {}).get(DESIRED_REPLICAS))
        size = self.size(kind)
        return size if size is None or desired is None else max(size, desired)


@dataclass(frozen=True, slots=True)
class OwnedGang:
    """Pods that have one PodGroup.

    Attributes:
        kind: Kind of the owner; `Pod` for a pod without one.
        name: Name of the owner.
        namespace: Its namespace.
        uid: Its uid.
    """

    kind: Kind
    name: str
    namespace: str
    uid: str

    @property
    def group_name(self) -> str:
        """Name of the PodGroup."""
        return f"{GROUP_PREFIX}{self.uid}"

    @property
    def is_watched(self) -> bool:
        """True if the owner is of a kind that is watched."""
        return self.kind in OWNER_KINDS

    @property
    def is_looked_up(self) -> bool:
        """True if the annotations of the owner are looked up. Those of a pod are not, because it has a PodGroup of its own."""
        return not self.is_watched and (self.kind.group, self.kind.kind) != ("", kinds.POD.kind)


def gang_of(meta: ObjectMeta) -> OwnedGang:
    """The gang that a pod belongs to: that of its controlling owner, or itself."""
    owner = controller_of(meta)
    if owner is None:
        return OwnedGang(kinds.POD, meta.name, meta.namespace, meta.uid)
    known = _BY_NAME.get((owner.api_version, owner.kind))
    if known is None:
        group, _, version = owner.api_version.rpartition("/")
        known = Kind(group, version, owner.kind, f"{owner.kind.lower()}s")
    return OwnedGang(known, owner.name, meta.namespace, owner.uid)
