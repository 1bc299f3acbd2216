"""What scheduling reads of volumes: claims, and the persistent volumes that they are bound to."""

from pumice.api.meta import ApiStruct, ObjectMeta
from pumice.api.pods import NodeSelector

__all__ = [
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimStatus",
    "PersistentVolumeSpec",
    "VolumeNodeAffinity",
]


class PersistentVolumeClaimSpec(ApiStruct, frozen=True):
    """What a claim asks for, and the volume that it has got."""

    volume_name: str = ""
    access_modes: list[str] | None = None


class PersistentVolumeClaimStatus(ApiStruct, frozen=True):
    """`Pending`, `Bound` or `Lost`."""

    phase: str = ""


class PersistentVolumeClaim(ApiStruct, frozen=True):
    """A claim to storage."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class VolumeNodeAffinity(ApiStruct, frozen=True):
    """Nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiStruct, frozen=True):
    """Where a volume can be used."""

    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(ApiStruct, frozen=True):
    """A volume; its labels name the zone and region that it is in."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
