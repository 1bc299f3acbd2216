"""PodGroups for pods that other controllers make: ReplicaSets, StatefulSets, batch Jobs and all others.

`owners` reads the owners of pods, `groups` builds the PodGroup of an owner, and `plans` plans the writes.
"""

from pumice.controller.workloads.owners import (
    OWNER_KINDS,
    OwnedGang,
    Workload,
    gang_of,
    group_named_by,
)
from pumice.controller.workloads.plans import ObservedGroup, plan_group

__all__ = [
    "OWNER_KINDS",
    "ObservedGroup",
    "OwnedGang",
    "Workload",
    "gang_of",
    "group_named_by",
    "plan_group",
]
