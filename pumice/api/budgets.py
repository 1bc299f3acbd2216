"""What scheduling reads of the objects that limit pods: PodDisruptionBudgets, how many may be evicted now, and ResourceQuotas, how much a namespace may have."""

from pumice.api.meta import ApiStruct, LabelSelector, ObjectMeta


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


Resources = dict[str, str | int]


class ResourceQuotaSpec(ApiStruct, frozen=True):
    """Limits of a quota, and the pods that they apply to.

    Attributes:
        hard: Limits by resource name.
        scopes: Names of scopes; a quota with any counts only some pods.
        scope_selector: The same as an expression.
    """

    hard: Resources | None = None
    scopes: list[str] | None = None
    scope_selector: dict[str, object] | None = None


class ResourceQuotaStatus(ApiStruct, frozen=True):
    """What the API server counts.

    Attributes:
        hard: Limits that are in effect.
        used: What is used of them.
    """

    hard: Resources | None = None
    used: Resources | None = None


class ResourceQuota(ApiStruct, frozen=True):
    """A quota of a namespace."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()
