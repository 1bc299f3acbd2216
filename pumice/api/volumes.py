"""What scheduling reads of volumes: claims, persistent volumes, storage classes, and how many volumes a node can attach."""

from pumice.api.meta import ApiStruct, LabelSelector, ObjectMeta
from pumice.api.pods import NodeSelector

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation of a claim that asks its provisioner for a volume that this node reaches."""
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim whose binding is complete on both sides."""
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Annotation of a volume: a component chose its claim, so it may choose another one."""

_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


class StorageRequests(ApiStruct, frozen=True):
    """How much storage a claim asks for."""

    requests: dict[str, str] | None = None


class PersistentVolumeClaimSpec(ApiStruct, frozen=True):
    """Requested storage, and the name of the bound volume."""

    volume_name: str = ""
    access_modes: list[str] | None = None
    storage_class_name: str | None = None
    resources: StorageRequests = StorageRequests()
    selector: LabelSelector | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(ApiStruct, frozen=True):
    """`Pending`, `Bound` or `Lost`."""

    phase: str = ""


class PersistentVolumeClaim(ApiStruct, frozen=True):
    """A claim to storage."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def storage_class(self) -> str:
        """Name of its StorageClass; empty for none."""
        return self.metadata.annotation(_OLD_CLASS) or self.spec.storage_class_name or ""

    @property
    def selected_node(self) -> str:
        """Node for which a provisioner has been asked for a volume; empty for none."""
        return self.metadata.annotation(SELECTED_NODE)

    @property
    def is_bound(self) -> bool:
        """True if it has a volume that belongs to it."""
        done = self.status.phase == "Bound" or BIND_COMPLETED in (self.metadata.annotations or {})
        return bool(self.spec.volume_name) and done


class VolumeNodeAffinity(ApiStruct, frozen=True):
    """Nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class VolumeClaimReference(ApiStruct, frozen=True):
    """The claim that a volume is reserved for; without a uid, any claim of this name."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class CsiVolume(ApiStruct, frozen=True):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(ApiStruct, frozen=True):
    """Capacity, access modes, claim and node affinity of a volume."""

    capacity: dict[str, str] | None = None
    access_modes: list[str] | None = None
    claim_ref: VolumeClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    csi: CsiVolume | None = None
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolumeStatus(ApiStruct, frozen=True):
    """`Pending`, `Available`, `Bound`, `Released` or `Failed`."""

    phase: str = ""


class PersistentVolume(ApiStruct, frozen=True):
    """A volume; its labels name the zone and region that it is in."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    @property
    def storage_class(self) -> str:
        """Name of its StorageClass; empty for none."""
        return self.metadata.annotation(_OLD_CLASS) or self.spec.storage_class_name


class TopologyRequirement(ApiStruct, frozen=True):
    """A label that a node must have with one of these values."""

    key: str = ""
    values: list[str] | None = None


class TopologyTerm(ApiStruct, frozen=True):
    """Requirements that must all hold."""

    match_label_expressions: list[TopologyRequirement] | None = None


class StorageClass(ApiStruct, frozen=True):
    """How claims of a class get their volumes."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: list[TopologyTerm] | None = None

    @property
    def waits(self) -> bool:
        """Whether a claim gets its volume only when a pod that mounts it has been given a node."""
        return self.volume_binding_mode == "WaitForFirstConsumer"

    @property
    def provisions(self) -> bool:
        """Whether volumes are made on demand."""
        return self.provisioner not in ("", "kubernetes.io/no-provisioner")


class DriverLimit(ApiStruct, frozen=True):
    """How many volumes of a driver a node can attach; None for no limit."""

    count: int | None = None


class CsiDriver(ApiStruct, frozen=True):
    """A CSI driver on a node."""

    name: str = ""
    allocatable: DriverLimit | None = None


class CsiNodeSpec(ApiStruct, frozen=True):
    """The CSI drivers of a node."""

    drivers: list[CsiDriver] | None = None


class CsiNode(ApiStruct, frozen=True):
    """CSI drivers of a node and their limits; it has the name of the node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CsiNodeSpec = CsiNodeSpec()
