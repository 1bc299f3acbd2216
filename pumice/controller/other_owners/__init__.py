"""PodGroups for pods that other controllers make: ReplicaSets, StatefulSets, batch Jobs and all others.

`owners` reads the owners of pods, and `plan` builds the PodGroup of an owner and plans
the writes. `wiring` plans the objects that job plugins want for such pods.
"""

from pumice.controller.other_owners.owners import (
    OWNER_KINDS,
    OwnedGang,
    PodOwner,
    gang_of,
)
from pumice.controller.other_owners.plan import ObservedGroup, plan_group

__all__ = [
    "OWNER_KINDS",
    "ObservedGroup",
    "OwnedGang",
    "PodOwner",
    "gang_of",
    "plan_group",
]
