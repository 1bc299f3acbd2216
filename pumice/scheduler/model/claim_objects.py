"""Claims, volumes and classes as the API server shows them: which claims wait, and why others cannot be used.

A claim of a class with `volumeBindingMode: WaitForFirstConsumer` waits until a pod that mounts it has been given a node.

https://kubernetes.io/docs/concepts/storage/persistent-volumes/ and
https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode.
"""

from pumice.api.meta import ObjectMeta
from pumice.api.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.scheduler.model.attachments import Attached
from pumice.scheduler.model.claims import EXCLUSIVE, ZONES, WantedVolume, Zone
from pumice.scheduler.model.terms import LONGEST, is_too_long
from pumice.scheduler.model.volume_pools import VolumeRecord

__all__ = ["ClaimObjects"]


class ClaimObjects:
    """All claims, volumes and classes.

    Attributes:
        version: Grows with every change that matters to placement.
    """

    def __init__(self, *, assumes_bound: bool = False) -> None:
        """Make an empty table.

        Args:
            assumes_bound: Whether a claim that is not known counts as bound, to a volume that every node reaches:
                for simulations, whose files rarely hold claims.
        """
        self._assumes_bound = assumes_bound
        self._claims: dict[str, PersistentVolumeClaim] = {}
        self._volumes: dict[str, VolumeRecord] = {}
        self._classes: dict[str, StorageClass] = {}
        self._by_class: dict[str, dict[str, VolumeRecord]] = {}
        self._reserved: dict[str, dict[str, VolumeRecord]] = {}
        """Volumes whose `claimRef` names a claim, by the claim."""
        self._owners: dict[str, dict[str, None]] = {}
        """Claims that name a volume, in the order of their events."""
        self._waiting: set[str] = set()
        self._wants: dict[str, WantedVolume] = {}
        self._pods: dict[str, tuple[str, str]] = {}
        """Name and uid of the pods that claims of generic ephemeral volumes are for."""
        self.version = 0

    def _claim_changed(self, key: str) -> None:
        """Follow a change of a claim, of its class or of its volume."""

    # -- events ------------------------------------------------------------------------------

    def set_claim(self, claim: PersistentVolumeClaim) -> bool:
        """Add or update a claim; True if a relevant field changed."""
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        old = self._claims.get(key)
        self._claims[key] = claim
        if old is not None and _says_the_same(old, claim):
            return False
        if old is not None:
            self._disown(old.spec.volume_name, key)
        if claim.spec.volume_name:
            self._owners.setdefault(claim.spec.volume_name, {})[key] = None
        if old is not None and old.metadata.uid != claim.metadata.uid:
            self._waiting.discard(key)
            self._claim_changed(key)
        self._reconsider(key)
        return self._changed()

    def remove_claim(self, namespace: str, name: str) -> bool:
        """Remove a claim."""
        key = f"{namespace}/{name}"
        claim = self._claims.pop(key, None)
        if claim is None:
            return False
        self._disown(claim.spec.volume_name, key)
        self._reconsider(key)
        return self._changed()

    def _disown(self, volume: str, key: str) -> None:
        """Note that a claim does not name a volume any more; others may do so still."""
        owners = self._owners.get(volume, {})
        owners.pop(key, None)
        if not owners:
            self._owners.pop(volume, None)

    def set_volume(self, volume: PersistentVolume) -> bool:
        """Add or update a volume; True if a relevant field changed."""
        name = volume.metadata.name
        known = self._volumes.get(name)
        record = self._volumes[name] = VolumeRecord(volume)
        if known is not None:
            self._unlist(known)
        self._by_class.setdefault(volume.storage_class, {})[name] = record
        if record.claim:
            self._reserved.setdefault(record.claim, {})[name] = record
            self._wants.pop(record.claim, None)
        if known is not None:
            old = known.volume
            if (
                old.spec == volume.spec
                and old.storage_class == volume.storage_class
                and old.status == volume.status
                and old.metadata.labels == volume.metadata.labels
                and old.metadata.deletion_timestamp == volume.metadata.deletion_timestamp
            ):
                return False
        self._volume_changed(name)
        return self._changed()

    def remove_volume(self, name: str) -> bool:
        """Remove a volume."""
        record = self._volumes.pop(name, None)
        if record is None:
            return False
        self._unlist(record)
        self._volume_changed(name)
        return self._changed()

    def _unlist(self, record: VolumeRecord) -> None:
        named = self._by_class[record.volume.storage_class]
        del named[record.name]
        if not named:
            del self._by_class[record.volume.storage_class]
        reserved = self._reserved.get(record.claim, {})
        if reserved.pop(record.name, None) is not None:
            self._wants.pop(record.claim, None)
        if not reserved:
            self._reserved.pop(record.claim, None)

    def set_class(self, storage_class: StorageClass) -> bool:
        """Add or update a StorageClass; True if a relevant field changed."""
        name = storage_class.metadata.name
        old = self._classes.get(name)
        self._classes[name] = storage_class
        if old is not None and _facts(old) == _facts(storage_class):
            return False
        self._reconsider_class(name)
        return self._changed()

    def remove_class(self, name: str) -> bool:
        """Remove a StorageClass."""
        if self._classes.pop(name, None) is None:
            return False
        self._reconsider_class(name)
        return self._changed()

    def _changed(self) -> bool:
        self.version += 1
        return True

    def _reconsider(self, key: str) -> None:
        """Decide again whether a claim waits, after it or its class has changed."""
        claim = self._claims.get(key)
        self._wants.pop(key, None)
        waits = claim is not None and self._is_waiting(claim)
        (self._waiting.add if waits else self._waiting.discard)(key)
        self._claim_changed(key)

    def _reconsider_class(self, name: str) -> None:
        for key, claim in self._claims.items():
            if claim.storage_class == name:
                self._reconsider(key)

    def _is_waiting(self, claim: PersistentVolumeClaim) -> bool:
        found = self._classes.get(claim.storage_class)
        return (
            found is not None
            and found.waits
            and not claim.spec.volume_name
            and claim.status.phase != "Lost"
            and not is_too_long(claim.spec.selector)
        )

    def _volume_changed(self, name: str) -> None:
        for owner in self._owners.get(name, ()):
            self._claim_changed(owner)

    def naming(self, volume: str) -> list[str]:
        """Claims that name a volume, bound or not."""
        return list(self._owners.get(volume, ()))

    # -- questions: a claim --------------------------------------------------------------------

    def problem(self, key: str) -> str | None:
        """Why a pod with this claim, `namespace/name`, cannot be placed on any node; None when it can."""
        claim = self._claims.get(key)
        name = key.partition("/")[2]
        pod = self._pods.get(key)
        if claim is None:
            if self._assumes_bound:
                return None
            if pod is not None:
                return (
                    "waiting for ephemeral volume controller to create the "
                    f'persistentvolumeclaim "{name}"'
                )
            return (
                f'persistentvolumeclaim "{name}" not found; create it in the namespace of the pod'
            )
        if claim.status.phase == "Lost":
            return (
                f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume '
                f'"{claim.spec.volume_name}"; delete the claim and create it again'
            )
        if claim.metadata.deletion_timestamp:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if pod is not None and pod[1] and not _is_owned(claim.metadata, pod[1]):
            return (
                f"PVC {key} was not created for pod {key.partition('/')[0]}/{pod[0]} "
                "(pod is not owner); delete or rename the claim"
            )
        if claim.is_bound:
            volume = claim.spec.volume_name
            if volume in self._volumes or self._assumes_bound:
                return None
            return f'persistentvolume "{volume}" of persistentvolumeclaim "{name}" not found'
        if key in self._waiting:
            return None
        return (
            f'pod has unbound immediate PersistentVolumeClaims: persistentvolumeclaim "{name}" '
            f"{self._why_immediate(claim)}"
        )

    def _why_immediate(self, claim: PersistentVolumeClaim) -> str:
        name = claim.storage_class
        if claim.spec.volume_name:
            return self._why_not_named(claim)
        if is_too_long(claim.spec.selector):
            return (
                f"has a selector of more than {LONGEST // 1024} KiB, which is not read; shorten it"
            )
        if not name:
            return "has no storage class; create a PersistentVolume that suits it"
        found = self._classes.get(name)
        if found is None:
            return f'names storage class "{name}", which does not exist; create the class'
        if not found.provisions:
            return f'waits for a PersistentVolume of storage class "{name}" that suits it'
        return f'waits for its provisioner "{found.provisioner}"'

    def _why_not_named(self, claim: PersistentVolumeClaim) -> str:
        """Why a claim is not bound that names its volume itself; the first that names one gets it."""
        volume = self._volumes.get(claim.spec.volume_name)
        if volume is None or not volume.claim or volume.is_for(claim):
            return f'waits for persistentvolume "{claim.spec.volume_name}"'
        if volume.claim == f"{claim.metadata.namespace}/{claim.metadata.name}":
            return (
                f'names persistentvolume "{volume.name}", which is for a deleted persistentvolumeclaim '
                "of the same name; remove the uid from the volume's claimRef, or name another volume"
            )
        return (
            f'names persistentvolume "{volume.name}", which is for persistentvolumeclaim '
            f'"{volume.claim}"; name another volume'
        )

    def zones(self, key: str) -> list[Zone]:
        """Labels that nodes need for the volume of a bound claim; as in kube-scheduler, none for that of an ephemeral volume."""
        if key in self._pods:
            return []
        record = self._volume(key)
        labels = (record.volume.metadata.labels if record is not None else None) or {}
        return [(name, frozenset(labels[name].split("__"))) for name in ZONES if name in labels]

    def _volume(self, key: str) -> VolumeRecord | None:
        claim = self._claims.get(key)
        return self._volumes.get(claim.spec.volume_name) if claim is not None else None

    def _is_exclusive(self, key: str) -> bool:
        claim = self._claims.get(key)
        return claim is not None and EXCLUSIVE in (claim.spec.access_modes or ())

    def _attached(self, key: str) -> Attached | None:
        """A claim's volume as nodes count it; of a claim that waits, the one that is to be."""
        claim = self._claims.get(key)
        if claim is None:
            return None
        if claim.spec.volume_name:
            record = self._volumes.get(claim.spec.volume_name)
            csi = record.volume.spec.csi if record is not None else None
            return (csi.driver, csi.volume_handle) if csi is not None else None
        found = self._classes.get(claim.storage_class)
        return (found.provisioner, f"claim {key}") if found is not None else None

    def _wanted(self, key: str) -> WantedVolume:
        found = self._wants.get(key)
        if found is None:
            claim = self._claims[key]
            found = WantedVolume.of(claim, "")
            reserved = [
                name
                for name, each in self._reserved.get(key, {}).items()
                if each.is_for(claim)
                and each.is_large_enough(found)
                and each.volume.storage_class == found.storage_class
            ]
            if reserved:
                found = found._replace(reserved=min(reserved))
            self._wants[key] = found
        return found

    def claim(self, key: str) -> PersistentVolumeClaim:
        """A claim that is known."""
        return self._claims[key]


def _says_the_same(old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> bool:
    return (
        old.spec == new.spec
        and old.metadata.uid == new.metadata.uid
        and old.status.phase == new.status.phase
        and old.is_bound == new.is_bound
        and old.selected_node == new.selected_node
        and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        and old.metadata.owner_references == new.metadata.owner_references
        and old.storage_class == new.storage_class
    )


def _facts(storage_class: StorageClass) -> tuple[object, ...]:
    return (
        storage_class.provisioner,
        storage_class.volume_binding_mode,
        storage_class.allowed_topologies,
    )


def _is_owned(meta: ObjectMeta, uid: str) -> bool:
    return any(each.controller and each.uid == uid for each in meta.owner_references or ())
