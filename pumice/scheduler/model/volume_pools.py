"""Volumes that suit claims: by class, smallest first, and the number that each node reaches.

Claims that ask for the same share a pool. Which volumes are in it changes with claims and volumes only; which of them are
taken changes with every pod that is placed, and moves just the counts of the nodes that reach the volume.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Container, Iterable, Iterator, Sequence

import msgspec
import numpy as np

from pumice.api.meta import LabelSelector
from pumice.api.pods import NodeSelector
from pumice.api.volumes import PersistentVolume, PersistentVolumeClaim
from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.claims import WantedVolume, size_of
from pumice.scheduler.model.node_selection import NodeSelection, affinity_key

_SELECTORS = msgspec.json.Decoder(LabelSelector)


class VolumeRecord:
    """A volume.

    Attributes:
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
        return owner is not None and self.claim == meta.key and owner.uid in ("", meta.uid)

    def is_large_enough(self, wanted: WantedVolume) -> bool:
        """Whether it has what a claim asks for that even a volume reserved for it must have."""
        spec = self.volume.spec
        return (
            self.size >= wanted.size
            and (spec.volume_mode or "Filesystem") == wanted.volume_mode
            and (spec.volume_attributes_class_name or "") == wanted.attributes_class
            and not self.volume.metadata.deletion_timestamp
        )


def suiting(wanted: WantedVolume, volumes: Iterable[VolumeRecord]) -> list[VolumeRecord]:
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


class _VolumeGroup:
    """Volumes of a pool that the same nodes reach.

    Attributes:
        rows: Rows of these nodes; None for all.
        volumes: The volumes, the smallest first.
    """

    def __init__(self, rows: Ints | None) -> None:
        self.rows = None if rows is None else frozenset(rows.tolist())
        self.volumes: list[VolumeRecord] = []
        self._places: dict[str, int] = {}
        self._free: list[int] = []  # ascending

    def add(self, volume: VolumeRecord) -> None:
        """Add a volume that is not smaller than those before it, as taken."""
        self._places[volume.name] = len(self.volumes)
        self.volumes.append(volume)

    def mark(self, name: str, *, free: bool) -> None:
        """Count a volume as free, or as taken."""
        place = self._places[name]
        if free:
            insort(self._free, place)
        else:
            del self._free[bisect_left(self._free, place)]

    def smallest(self, besides: Collection[str]) -> VolumeRecord | None:
        """The smallest free volume, the first by name among equals, of those that are not named."""
        free = (self.volumes[place] for place in self._free)
        return next((each for each in free if each.name not in besides), None)


class VolumePool:
    """The volumes for claims with equal requests.

    Attributes:
        counts: How many that are free each node reaches, by row; volumes that every node reaches are not among them.
        everywhere: How many are free that every node reaches.
        is_narrow: Whether each is reached from one node at most.
    """

    def __init__(
        self, volumes: Sequence[VolumeRecord], reach: NodeSelection, taken: Container[str]
    ) -> None:
        """Count volumes, the smallest first, of which those that are taken are not free."""
        self._reach = reach
        self.counts: Ints = np.zeros(reach.count, dtype=np.int64)
        self.everywhere = 0
        self._groups: dict[bytes, _VolumeGroup] = {}
        self._of: dict[str, VolumeRecord] = {}
        for each in volumes:
            group = self._groups.get(each.key)
            if group is None:
                rows = reach.rows(each.key, each.affinity)
                group = self._groups[each.key] = _VolumeGroup(rows)
            group.add(each)
            self._of[each.name] = each
            if each.name not in taken:
                self.take(each.name, -1)
        self._by_row: dict[int, list[_VolumeGroup]] = {}
        self._wide: list[_VolumeGroup] = []
        for group in self._groups.values():
            if group.rows is None or len(group.rows) > 1:
                self._wide.append(group)
            else:
                for row in group.rows:
                    self._by_row.setdefault(row, []).append(group)
        self.is_narrow = not self._wide

    def __bool__(self) -> bool:
        return bool(self._of)

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __contains__(self, name: str) -> bool:
        return name in self._of

    def take(self, name: str, sign: int = 1) -> None:
        """Count a volume as taken, or as free again (-1)."""
        each = self._of[name]
        self._groups[each.key].mark(name, free=sign < 0)
        rows = self._reach.rows(each.key, each.affinity)
        if rows is None:
            self.everywhere -= sign
        else:
            self.counts[rows] -= sign

    def smallest(self, row: int, besides: Collection[str] = ()) -> str:
        """The smallest free volume that a node reaches, besides some by name, the first by name among equals; empty for none."""
        groups = [each for each in self._wide if each.rows is None or row in each.rows]
        found = (each.smallest(besides) for each in (*groups, *self._by_row.get(row, ())))
        best = min(
            (each for each in found if each is not None),
            key=lambda each: (each.size, each.name),
            default=None,
        )
        return "" if best is None else best.name
