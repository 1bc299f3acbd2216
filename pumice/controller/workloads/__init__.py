"""PodGroups for pods that other controllers make: ReplicaSets, StatefulSets, batch Jobs and all others.

`owners` reads the owners of pods, `groups` builds the PodGroup of an owner, and `plans` plans the writes.
"""

from pumice.controller.workloads.owners import (
    OWNER_KINDS,
    GroupedPods,
    Workload,
    group_named_by,
    unit_of,
)
from pumice.controller.workloads.plans import ObservedGroup, plan_group

__all__ = [
    "OWNER_KINDS",
    "GroupedPods",
    "ObservedGroup",
    "Workload",
    "group_named_by",
    "plan_group",
    "unit_of",
]
