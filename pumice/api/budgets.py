"""What scheduling reads of PodDisruptionBudgets: which pods they protect, and how many of them may be evicted now."""

from pumice.api.meta import ApiStruct, LabelSelector, ObjectMeta

__all__ = [
    "PodDisruptionBudget",
    "PodDisruptionBudgetSpec",
    "PodDisruptionBudgetStatus",
]


class PodDisruptionBudgetSpec(ApiStruct, frozen=True):
    """The protected pods: none without a selector, all pods of the namespace with an empty one."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(ApiStruct, frozen=True):
    """What the disruption controller has counted."""

    disruptions_allowed: int = 0


class PodDisruptionBudget(ApiStruct, frozen=True):
    """A limit on how many pods may be evicted at a time."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
