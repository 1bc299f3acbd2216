"""Claims to volumes: which of a pod's are bound, and on which nodes their volumes can be used.

A claim is bound by others (a provisioner, an administrator); a pod whose claims are all bound is placed on a node from
which their volumes can be reached: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#node-affinity.
"""

from collections.abc import Iterator, Sequence

from pumice.api.pods import NodeSelector, PodVolume
from pumice.api.volumes import PersistentVolume, PersistentVolumeClaim

__all__ = ["ZONES", "ClaimTable", "Zone", "claim_names"]

BOUND = "Bound"
EXCLUSIVE = "ReadWriteOncePod"
ZONES = {
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels of a volume that a node must have, too, with one of their values (`a__b` stands for a or b); where it has not the
label it may have its successor. A node without any of them is in no zone and may be used."""

Zone = tuple[str, frozenset[str]]
"""A label, and its values of which a node must have one."""


def claim_names(pod: str, volumes: Sequence[PodVolume] | None) -> Iterator[str]:
    """Names of the claims that a pod mounts; a generic ephemeral volume has one named `<pod>-<volume>`."""
    for volume in volumes or ():
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod}-{volume.name}"


class ClaimTable:
    """All claims and volumes.

    Attributes:
        version: Grows with every change that matters to placement.
    """

    __slots__ = ("_assumes_bound", "_claims", "_volumes", "version")

    def __init__(self, *, assumes_bound: bool = False) -> None:
        """Make a table.

        Args:
            assumes_bound: Whether a claim that is not known counts as bound, to a volume that every node reaches:
                for simulations, whose files rarely hold claims.
        """
        self._assumes_bound = assumes_bound
        self._claims: dict[str, PersistentVolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self.version = 0

    # -- events ------------------------------------------------------------------------------

    def set_claim(self, claim: PersistentVolumeClaim) -> bool:
        """Take in a claim; True when something that matters changed."""
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        old = self._claims.get(key)
        self._claims[key] = claim
        return self._changed(
            old is None
            or old.spec != claim.spec
            or old.status.phase != claim.status.phase
            or old.metadata.deletion_timestamp != claim.metadata.deletion_timestamp
        )

    def remove_claim(self, namespace: str, name: str) -> bool:
        """Forget a claim."""
        return self._changed(self._claims.pop(f"{namespace}/{name}", None) is not None)

    def set_volume(self, volume: PersistentVolume) -> bool:
        """Take in a volume; True when something that matters changed."""
        old = self._volumes.get(volume.metadata.name)
        self._volumes[volume.metadata.name] = volume
        return self._changed(
            old is None or old.spec != volume.spec or old.metadata.labels != volume.metadata.labels
        )

    def remove_volume(self, name: str) -> bool:
        """Forget a volume."""
        return self._changed(self._volumes.pop(name, None) is not None)

    def _changed(self, changed: bool) -> bool:
        self.version += changed
        return changed

    # -- questions ---------------------------------------------------------------------------

    def problem(self, key: str) -> str | None:
        """Why a pod with this claim, `namespace/name`, cannot be placed on any node; None when it can."""
        claim = self._claims.get(key)
        name = key.partition("/")[2]
        if claim is None:
            return None if self._assumes_bound else f'persistentvolumeclaim "{name}" not found'
        if claim.metadata.deletion_timestamp:
            return f'persistentvolumeclaim "{name}" is being deleted'
        phase = claim.status.phase or "Pending"
        if phase != BOUND:
            return (
                f'persistentvolumeclaim "{name}" is {phase}, must be Bound: Pumice does not bind claims; use a '
                "storage class with volumeBindingMode Immediate, or bind the claim beforehand"
            )
        if EXCLUSIVE in (claim.spec.access_modes or ()):
            return (
                f'persistentvolumeclaim "{name}" has access mode {EXCLUSIVE}, which Pumice does not support; '
                "use ReadWriteOnce"
            )
        if claim.spec.volume_name not in self._volumes and not self._assumes_bound:
            volume = claim.spec.volume_name
            return f'persistentvolume "{volume}" of persistentvolumeclaim "{name}" not found'
        return None

    def affinity(self, key: str) -> NodeSelector | None:
        """Nodes from which the volume of a claim can be reached; None when all of them."""
        volume = self._volume(key)
        affinity = volume.spec.node_affinity if volume is not None else None
        return affinity.required if affinity is not None else None

    def zones(self, key: str) -> list[Zone]:
        """Labels that nodes need for the volume of a claim."""
        volume = self._volume(key)
        labels = (volume.metadata.labels if volume is not None else None) or {}
        return [(name, frozenset(labels[name].split("__"))) for name in ZONES if name in labels]

    def _volume(self, key: str) -> PersistentVolume | None:
        claim = self._claims.get(key)
        return self._volumes.get(claim.spec.volume_name) if claim is not None else None
