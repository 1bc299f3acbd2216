"""Claims, volumes and classes as the API server shows them, and which claims wait.

A claim of a class with `volumeBindingMode: WaitForFirstConsumer` waits until a pod that mounts it has been given a node.

https://kubernetes.io/docs/concepts/storage/persistent-volumes/ and
https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode.
"""

from collections.abc import Callable

from pumice.api.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.scheduler.model.affinity_terms import is_too_long
from pumice.scheduler.model.attachments import Attached
from pumice.scheduler.model.claims import EXCLUSIVE, WantedVolume
from pumice.scheduler.model.volume_pools import VolumeRecord


class ClaimObjects:
    """All claims, volumes and classes; what is public is to be read only.

    Attributes:
        version: Grows with every change that matters to placement.
        claims: Claims by `namespace/name`.
        by_class: Volumes by the name of their class, and their own.
        owners: Claims that name a volume, bound or not, in the order of their events.
    """

    def __init__(self, on_change: Callable[[str], None]) -> None:
        """Begin without objects; `on_change` is told the key of a claim after it, its class or its volume has changed."""
        self._on_change = on_change
        self.claims: dict[str, PersistentVolumeClaim] = {}
        self.volumes: dict[str, VolumeRecord] = {}
        self.classes: dict[str, StorageClass] = {}
        self.by_class: dict[str, dict[str, VolumeRecord]] = {}
        self._reserved: dict[str, dict[str, VolumeRecord]] = {}
        """Volumes whose `claimRef` names a claim, by the claim."""
        self.owners: dict[str, dict[str, None]] = {}
        self.waiting: set[str] = set()
        self._wants: dict[str, WantedVolume] = {}
        self.version = 0

    # -- events ------------------------------------------------------------------------------

    def set_claim(self, claim: PersistentVolumeClaim) -> bool:
        """Add or update a claim; True if a relevant field changed."""
        key = claim.metadata.key
        old = self.claims.get(key)
        self.claims[key] = claim
        if old is not None and _says_the_same(old, claim):
            return False
        if old is not None:
            self._disown(old.spec.volume_name, key)
        if claim.spec.volume_name:
            self.owners.setdefault(claim.spec.volume_name, {})[key] = None
        if old is not None and old.metadata.uid != claim.metadata.uid:
            self.waiting.discard(key)
            self._on_change(key)
        self._reconsider(key)
        return self._changed()

    def remove_claim(self, namespace: str, name: str) -> bool:
        """Remove a claim."""
        key = f"{namespace}/{name}"
        claim = self.claims.pop(key, None)
        if claim is None:
            return False
        self._disown(claim.spec.volume_name, key)
        self._reconsider(key)
        return self._changed()

    def _disown(self, volume: str, key: str) -> None:
        """Note that a claim does not name a volume any more; others may do so still."""
        owners = self.owners.get(volume, {})
        owners.pop(key, None)
        if not owners:
            self.owners.pop(volume, None)

    def set_volume(self, volume: PersistentVolume) -> bool:
        """Add or update a volume; True if a relevant field changed."""
        name = volume.metadata.name
        known = self.volumes.get(name)
        record = self.volumes[name] = VolumeRecord(volume)
        if known is not None:
            self._unlist(known)
        self.by_class.setdefault(volume.storage_class, {})[name] = record
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
        record = self.volumes.pop(name, None)
        if record is None:
            return False
        self._unlist(record)
        self._volume_changed(name)
        return self._changed()

    def _unlist(self, record: VolumeRecord) -> None:
        named = self.by_class[record.volume.storage_class]
        del named[record.name]
        if not named:
            del self.by_class[record.volume.storage_class]
        reserved = self._reserved.get(record.claim, {})
        if reserved.pop(record.name, None) is not None:
            self._wants.pop(record.claim, None)
        if not reserved:
            self._reserved.pop(record.claim, None)

    def set_class(self, storage_class: StorageClass) -> bool:
        """Add or update a StorageClass; True if a relevant field changed."""
        name = storage_class.metadata.name
        old = self.classes.get(name)
        self.classes[name] = storage_class
        if old is not None and _facts(old) == _facts(storage_class):
            return False
        self._reconsider_class(name)
        return self._changed()

    def remove_class(self, name: str) -> bool:
        """Remove a StorageClass."""
        if self.classes.pop(name, None) is None:
            return False
        self._reconsider_class(name)
        return self._changed()

    def _changed(self) -> bool:
        self.version += 1
        return True

    def _reconsider(self, key: str) -> None:
        """Decide again whether a claim waits, after it or its class has changed."""
        claim = self.claims.get(key)
        self._wants.pop(key, None)
        waits = claim is not None and self._is_waiting(claim)
        (self.waiting.add if waits else self.waiting.discard)(key)
        self._on_change(key)

    def _reconsider_class(self, name: str) -> None:
        for key, claim in self.claims.items():
            if claim.storage_class == name:
                self._reconsider(key)

    def _is_waiting(self, claim: PersistentVolumeClaim) -> bool:
        found = self.classes.get(claim.storage_class)
        return (
            found is not None
            and found.waits
            and not claim.spec.volume_name
            and claim.status.phase != "Lost"
            and not is_too_long(claim.spec.selector)
        )

    def _volume_changed(self, name: str) -> None:
        for owner in self.owners.get(name, ()):
            self._on_change(owner)

    # -- queries ---------------------------------------------------------------------------

    def volume_of(self, key: str) -> VolumeRecord | None:
        """The volume that a claim names, if it is known."""
        claim = self.claims.get(key)
        return self.volumes.get(claim.spec.volume_name) if claim is not None else None

    def is_exclusive(self, key: str) -> bool:
        """Whether one pod at a time may use a claim."""
        claim = self.claims.get(key)
        return claim is not None and EXCLUSIVE in (claim.spec.access_modes or ())

    def attached(self, key: str) -> Attached | None:
        """A claim's volume as nodes count it; of a claim that waits, the one that is to be."""
        claim = self.claims.get(key)
        if claim is None:
            return None
        if claim.spec.volume_name:
            record = self.volumes.get(claim.spec.volume_name)
            csi = record.volume.spec.csi if record is not None else None
            return (csi.driver, csi.volume_handle) if csi is not None else None
        found = self.classes.get(claim.storage_class)
        return (found.provisioner, f"claim {key}") if found is not None else None

    def wanted(self, key: str) -> WantedVolume:
        """What a claim that is known asks for."""
        found = self._wants.get(key)
        if found is None:
            claim = self.claims[key]
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
