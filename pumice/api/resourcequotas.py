"""The ResourceQuota: limits for the sum of the objects of a namespace."""

from pumice.api.meta import ApiStruct, ObjectMeta

__all__ = ["ResourceQuota", "ResourceQuotaSpec", "ResourceQuotaStatus"]

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
