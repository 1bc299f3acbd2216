"""Volumes that suit claims: by class, smallest first, and how many of them each node reaches.

Claims that ask for the same share a pool. Which volumes are in it changes with claims and volumes only; which of them are
taken changes with every pod that is placed, and moves just the counts of the nodes that reach the volume.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from heapq import merge

import msgspec
import numpy as np

from pumice.api.meta import LabelSelector
from pumice.api.pods import NodeSelector
from pumice.api.volumes import PersistentVolume, PersistentVolumeClaim
from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.claims import Wanted, size_of
from pumice.scheduler.model.reach import Reach, affinity_key

__all__ = ["Pool", "VolumeRecord", "suiting"]

_SELECTORS = msgspec.json.Decoder(LabelSelector)


class VolumeRecord:
    """A volume.

    Attributes:
        volume: As the API server shows it.
        size: Its capacity in milli-bytes.
        affinity: Nodes that reach it; None for all.
        key: `affinity_key` of the affinity.
        claim: `namespace/name` of the claim that it is for; empty for none.
    """

    __slots__ = ("affinity", "claim", "key", "name", "size", "volume")

    def __init__(self, volume: PersistentVolume) -> None:
        affinity = volume.spec.node_affinity
        self.volume = volume
        self.name = volume.metadata.name
        owner = volume.spec.claim_ref
        self.claim = f"{owner.namespace}/{owner.name}" if owner is not None else ""
        self.size = size_of(volume.spec.capacity)
        self.affinity: NodeSelector | None = affinity.required if affinity is not None else None
        self.key = affinity_key(self.affinity)

    def is_for(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the volume is reserved for a claim, or bound to it."""
        owner, meta = self.volume.spec.claim_ref, claim.metadata
        return (
            owner is not None
            and self.claim == f"{meta.namespace}/{meta.name}"
            and owner.uid in ("", meta.uid)
        )

    def is_large_enough(self, wanted: Wanted) -> bool:
        """Whether it has what a claim asks for that even a volume reserved for it must have."""
        spec = self.volume.spec
        return (
            self.size >= wanted.size
            and (spec.volume_mode or "Filesystem") == wanted.volume_mode
            and (spec.volume_attributes_class_name or "") == wanted.attributes_class
            and not self.volume.metadata.deletion_timestamp
        )


def suiting(wanted: Wanted, volumes: Iterable[VolumeRecord]) -> list[VolumeRecord]:
    """Those of the volumes of its class that a claim could be bound to, the smallest first.

    As in Kubernetes, a volume that is not `Available` is left out unless it is reserved for the claim. Manifests from files
    have no phase.
    """
    selector = _SELECTORS.decode(wanted.selector) if wanted.selector else None
    found = []
    for each in volumes:
        volume = each.volume
        if wanted.reserved:
            if each.name == wanted.reserved:
                found.append(each)
        elif (
            volume.spec.claim_ref is None
            and volume.status.phase in ("", "Available")
            and each.is_large_enough(wanted)
            and wanted.modes <= set(volume.spec.access_modes or ())
            and (selector is None or selector.matches(volume.metadata.labels or {}))
        ):
            found.append(each)
    return sorted(found, key=lambda each: (each.size, each.name))


class Pool:
    """The volumes that suit claims which ask for the same.

    Attributes:
        counts: How many that are free each node reaches, by row; volumes that every node reaches are not among them.
        everywhere: How many are free that every node reaches.
        is_narrow: Whether each is reached from one node at most.
    """

    __slots__ = ("_reach", "_rows", "_volumes", "_wide", "counts", "everywhere", "is_narrow")

    def __init__(
        self, volumes: Sequence[VolumeRecord], reach: Reach, taken: Container[str]
    ) -> None:
        """Count.

        Args:
            volumes: The volumes, the smallest first.
            reach: From which nodes they can be reached.
            taken: Names of volumes that are not free.
        """
        self._volumes = {each.name: each for each in volumes}
        self._reach = reach
        self.counts: Ints = np.zeros(reach.count, dtype=np.int64)
        self.everywhere = 0
        self._rows: dict[int, list[VolumeRecord]] = {}
        self._wide: list[tuple[VolumeRecord, frozenset[int] | None]] = []
        for each in volumes:
            rows = reach.rows(each.key, each.affinity)
            if rows is None or len(rows) > 1:
                self._wide.append((each, None if rows is None else frozenset(rows.tolist())))
            elif len(rows):
                self._rows.setdefault(int(rows[0]), []).append(each)
            if each.name not in taken:
                self.take(each.name, -1)
        self.is_narrow = not self._wide

    def __bool__(self) -> bool:
        return bool(self._volumes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._volumes)

    def __contains__(self, name: str) -> bool:
        return name in self._volumes

    def take(self, name: str, sign: int = 1) -> None:
        """Count a volume as taken, or as free again (-1)."""
        each = self._volumes[name]
        rows = self._reach.rows(each.key, each.affinity)
        if rows is None:
            self.everywhere -= sign
        else:
            self.counts[rows] -= sign

    def smallest(self, row: int, is_free: Callable[[str], bool]) -> str:
        """The smallest free volume that a node reaches, the first by name among equals; empty for none."""
        here = self._rows.get(row, [])
        wide = (each for each, rows in self._wide if rows is None or row in rows)
        for each in merge(here, wide, key=lambda each: (each.size, each.name)):
            if is_free(each.name):
                return each.name
        return ""
