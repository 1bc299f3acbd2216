"""Names of objects that a pod refers to; whether these exist is not asked."""

from pumice.api.names import dns_subdomain_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.doubtful import TPL_DEPRECATED, TPL_DOUBTFUL
from pumice.webhook.rules.templates.shapes import (
    name,
    present,
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
TPL_SCHEDULING_GROUP = Rule(
    "TPL-SCHEDULING-GROUP",
    "schedulingGroup names a PodGroup of Kubernetes",
    "Where the cluster has the feature GenericWorkload on, Kubernetes refuses the pod otherwise.",
    "schedulingGroup: {}",
)

_pod_group = name(TPL_SCHEDULING_GROUP, dns_subdomain_problem)
_reference = name(TPL_REFERENCE, dns_subdomain_problem, empty=True)


def _service_account(site: Site, old: str, field: str, spec: Raw) -> None:
    """Check `serviceAccount`, the old name of `serviceAccountName`, which counts where that is empty."""
    new = spec.get("serviceAccountName")
    if not new:
        _reference(site, old, field, spec)
    if old and old != new:  # where both are the same, the API server has written the old one
        site.report(TPL_DEPRECATED, "is deprecated; use serviceAccountName instead", field)


ROWS = (
    Row("serviceAccountName|nodeName|priorityClassName", _reference),
    Row("serviceAccount", _service_account),
    Row("runtimeClassName", name(TPL_REFERENCE, dns_subdomain_problem)),
    Row("schedulingGroup.podGroupName", present(TPL_SCHEDULING_GROUP, _pod_group), None),
    Row("imagePullSecrets", unique(TPL_DOUBTFUL, "name")),
    Row(
        "imagePullSecrets[].name",
        required(TPL_DOUBTFUL, message="names no secret", reason=None),
        "",
    ),
)
"""Fields of a pod's spec."""
