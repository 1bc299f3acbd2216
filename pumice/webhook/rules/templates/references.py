"""Names of objects that a pod refers to; whether these exist is not asked."""

from collections.abc import Callable

from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.deprecated import alias
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.values import quoted

__all__ = [
    "RULES",
    "reference",
    "resource_claims",
    "runtime_class",
    "scheduling_group",
    "service_account",
]

TPL_REFERENCE = Rule(
    "TPL-REFERENCE",
    "names of service accounts, nodes, priority classes and runtime classes are object names",
    "No object can have another name.",
    "serviceAccountName: Job_Runner",
)
TPL_POD_CLAIM = Rule(
    "TPL-POD-CLAIM",
    "a resource claim has a name of its own, and comes from one ResourceClaim or one template",
    "Kubernetes refuses the pod otherwise.",
    "resourceClaims: [{name: gpu}]",
)

TPL_SCHEDULING_GROUP = Rule(
    "TPL-SCHEDULING-GROUP",
    "schedulingGroup names a PodGroup of Kubernetes",
    "Where the cluster has the feature GenericWorkload on, Kubernetes refuses the pod otherwise.",
    "schedulingGroup: {}",
)

RULES = (TPL_REFERENCE, TPL_POD_CLAIM, TPL_SCHEDULING_GROUP)

_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")


def reference(field: str) -> Callable[[Site, Raw], None]:
    """A check of a field that names an object; an empty name is left out."""

    def check(site: Site, spec: Raw) -> None:
        if spec[field] and (problem := dns_subdomain_problem(spec[field])):
            site.report(TPL_REFERENCE, problem, field)

    return check


def runtime_class(site: Site, spec: Raw) -> None:
    """Check `runtimeClassName`, which must not be empty."""
    if problem := dns_subdomain_problem(spec["runtimeClassName"]):
        site.report(TPL_REFERENCE, problem, "runtimeClassName")


def service_account(site: Site, spec: Raw) -> None:
    """Check `serviceAccount`, the old name of `serviceAccountName`, which counts where that is empty."""
    old, new = spec["serviceAccount"], spec.get("serviceAccountName")
    if not new:
        reference("serviceAccount")(site, spec)
    if old and old != new:  # where both are the same, the API server has written the old one
        alias(site, "serviceAccount", "serviceAccountName")


def scheduling_group(site: Site, spec: Raw) -> None:
    """Check `schedulingGroup`."""
    name = spec["schedulingGroup"].get("podGroupName")
    problem = "must be set, found none" if name is None else dns_subdomain_problem(name)
    if problem:
        site.report(TPL_SCHEDULING_GROUP, problem, "schedulingGroup.podGroupName")


def resource_claims(site: Site, spec: Raw) -> None:
    """Check `resourceClaims`."""
    seen: dict[str, int] = {}
    for index, claim in entries(spec["resourceClaims"]):
        field = f"resourceClaims[{index}]"
        name = claim.get("name", "")
        if (first := seen.setdefault(name, index)) != index and name:
            message = f"{quoted(name)} is already the name of resourceClaims[{first}]"
            site.report(TPL_POD_CLAIM, message, f"{field}.name")
        elif problem := dns_label_problem(name):
            site.report(
                TPL_POD_CLAIM, problem if name else "must be set, found none", f"{field}.name"
            )
        sources = [source for source in _SOURCES if source in claim]
        if len(sources) != 1:
            message = f"must have one of {' and '.join(_SOURCES)}, found {'both' if sources else 'neither'}"
            site.report(TPL_POD_CLAIM, message, field)
        for source in sources:
            if problem := dns_subdomain_problem(claim[source]):
                site.report(TPL_POD_CLAIM, problem, f"{field}.{source}")
