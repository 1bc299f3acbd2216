"""Names of objects that a pod refers to; whether these exist is not asked."""

from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.doubtful import TPL_DEPRECATED, TPL_DOUBTFUL
from pumice.webhook.rules.templates.shapes import (
    name,
    one_of_two,
    present,
    quoted,
    refused,
    required,
    unique,
)
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.table import Row

__all__ = ["ROWS"]

TPL_REFERENCE = Rule(
    "TPL-REFERENCE",
    "names of service accounts, nodes, priority classes and runtime classes are object names",
    "No object can have another name.",
    "serviceAccountName: Job_Runner",
)
TPL_POD_CLAIM = refused(
    "TPL-POD-CLAIM",
    "a resource claim has a name of its own, and comes from one ResourceClaim or one template",
    "resourceClaims: [{name: gpu}]",
)
TPL_SCHEDULING_GROUP = Rule(
    "TPL-SCHEDULING-GROUP",
    "schedulingGroup names a PodGroup of Kubernetes",
    "Where the cluster has the feature GenericWorkload on, Kubernetes refuses the pod otherwise.",
    "schedulingGroup: {}",
)

_CLAIM_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")
_claim_name = required(TPL_POD_CLAIM, dns_label_problem, reason=None)
_claim_source = one_of_two(
    TPL_POD_CLAIM, *_CLAIM_SOURCES, f"one of {' and '.join(_CLAIM_SOURCES)}", empty=False
)
_claimed = name(TPL_POD_CLAIM, dns_subdomain_problem)
_pod_group = name(TPL_SCHEDULING_GROUP, dns_subdomain_problem)
_reference = name(TPL_REFERENCE, dns_subdomain_problem, empty=True)


def _service_account(site: Site, old: str, field: str, spec: Raw) -> None:
    """Check `serviceAccount`, the old name of `serviceAccountName`, which counts where that is empty."""
    new = spec.get("serviceAccountName")
    if not new:
        _reference(site, old, field, spec)
    if old and old != new:  # where both are the same, the API server has written the old one
        site.report(TPL_DEPRECATED, "is deprecated; use serviceAccountName instead", field)


def _resource_claims(site: Site, claims: list[Raw], field: str, _: Raw) -> None:
    seen: dict[str, int] = {}
    for index, claim in enumerate(claims):
        called, where = claim.get("name", ""), f"{field}[{index}]"
        if (first := seen.setdefault(called, index)) != index and called:
            message = f"{quoted(called)} is already the name of {field}[{first}]"
            site.report(TPL_POD_CLAIM, message, f"{where}.name")
        else:
            _claim_name(site, called, f"{where}.name", claim)
        _claim_source(site, claim, where, claim)
        for source in _CLAIM_SOURCES:
            if source in claim:
                _claimed(site, claim[source], f"{where}.{source}", claim)


ROWS = (
    Row("serviceAccountName|nodeName|priorityClassName", _reference),
    Row("serviceAccount", _service_account),
    Row("runtimeClassName", name(TPL_REFERENCE, dns_subdomain_problem)),
    Row("schedulingGroup.podGroupName", present(TPL_SCHEDULING_GROUP, _pod_group), None),
    Row("resourceClaims", _resource_claims),
    Row("imagePullSecrets", unique(TPL_DOUBTFUL, "name")),
    Row(
        "imagePullSecrets[].name",
        required(TPL_DOUBTFUL, message="names no secret", reason=None),
        "",
    ),
)
"""Fields of a pod's spec."""
