"""PodGroups for pods that other controllers make: ReplicaSets, StatefulSets, batch Jobs and all others.

`owners` reads who makes pods, `groups` says what the PodGroup of such an owner asks for, and `plans` what is to be done about it.
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
