"""Requests of pods and claims for volumes: names of claims, and when two claims are equivalent."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from pumice.api.pods import PodVolume
from pumice.api.quantities import QuantityError, parse_milli
from pumice.api.volumes import PersistentVolumeClaim

EXCLUSIVE = "ReadWriteOncePod"
"""Access mode of claims that one pod at a time may use."""
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

_ENCODER = msgspec.json.Encoder(order="deterministic")


def claim_names(pod: str, volumes: Sequence[PodVolume] | None) -> Iterator[tuple[str, bool]]:
    """Names of the claims that a pod mounts, and whether each is of a generic ephemeral volume, which is named `<pod>-<volume>`."""
    for volume in volumes or ():
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name, False
        elif volume.ephemeral is not None:
            yield f"{pod}-{volume.name}", True


class WantedVolume(NamedTuple):
    """The request of a claim; volumes suit claims with equal requests equally well.

    Attributes:
        size: In milli-bytes.
        selector: Its label selector, encoded; empty for none.
        volume_mode: `Filesystem` or `Block`.
        reserved: Volume that is reserved for it; empty for none.
        node: Node for which its provisioner has been asked; empty for none.
    """

    size: int
    storage_class: str
    modes: frozenset[str]
    selector: bytes
    volume_mode: str
    attributes_class: str
    reserved: str
    node: str

    @classmethod
    def of(cls, claim: PersistentVolumeClaim, reserved: str) -> "WantedVolume":
        """What a claim asks for that has a volume reserved, or none."""
        spec = claim.spec
        return cls(
            size_of(spec.resources.requests),
            claim.storage_class,
            frozenset(spec.access_modes or ()),
            b"" if spec.selector is None else _ENCODER.encode(spec.selector),
            spec.volume_mode or "Filesystem",
            spec.volume_attributes_class_name or "",
            reserved,
            claim.selected_node,
        )


def size_of(amounts: dict[str, str] | None) -> int:
    """The storage among amounts, in milli-bytes; 0 where none can be read."""
    text = (amounts or {}).get("storage")
    if text is None:
        return 0
    try:
        return parse_milli(text)
    except QuantityError:
        return 0
