"""What a container asks for: requests and limits, claims, and what a change of them does."""

from pumice.api.names import dns_label_problem
from pumice.webhook.rules.templates import requirements
from pumice.webhook.rules.templates.shapes import NOT_SET, one_of, quoted, refused, required, unique
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.table import Row

__all__ = ["ROWS", "init_resize_policy"]

TPL_CLAIM = refused(
    "TPL-CLAIM",
    "resources.claims names claims of the pod, each request once",
    "resources: {claims: [{name: gpu}]}",
    compares=True,
)
TPL_RESIZE = refused(
    "TPL-RESIZE",
    "resizePolicy is about cpu and memory, once each, and restarts only what is restarted anyway",
    "restartPolicy: Never, containers: [{resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]",
)

_NONE: Raw = {}
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")


def _resources(site: Site, found: Raw, field: str, _: Raw) -> None:
    limits, requests = found.get("limits", _NONE), found.get("requests", _NONE)
    if not requirements.are_plain(tuple(limits.items()), tuple(requests.items())):
        readable = requirements.read(site, found, field, requirements.of_container)
        for rule, member, message in requirements.conflicts(*readable):
            site.report(rule, message, f"{field}.{member}" if member else field)
    if "claims" in found:
        _claims(site, found["claims"], f"{field}.claims")


def _resize_restart(site: Site, policy: str, field: str, _: Raw) -> None:
    if policy == "RestartContainer" and site.pod.restart_policy == "Never":
        message = "must be NotRequired where the pod's restartPolicy is Never"
        site.report(TPL_RESIZE, message, field)


def init_resize_policy(site: Site, policy: Raw, field: str, _: Raw) -> None:
    """Check `resizePolicy` of an init container, which runs to its end and is not restarted for this."""
    restart = policy.get("restartPolicy")
    if restart == "RestartContainer" and site.pod.restart_policy != "Never":
        message = "must be NotRequired for an init container without restartPolicy Always"
        site.report(TPL_RESIZE, message, f"{field}.restartPolicy")


def _claims(site: Site, claims: list[Raw], field: str) -> None:
    known = {claim.get("name", "") for claim in site.pod.spec.get("resourceClaims", ())} - {""}
    whole: set[str] = set()
    parts: dict[str, set[str]] = {}
    for index, claim in enumerate(claims):
        name, part = claim.get("name", ""), claim.get("request", "")
        where = f"{field}[{index}].name"
        if not name:
            site.report(TPL_CLAIM, NOT_SET, where, "FieldValueRequired")
            continue
        if part and (problem := dns_label_problem(part)):
            site.report(TPL_CLAIM, problem, f"{field}[{index}].request")
        overlaps = part in parts.get(name, ()) if part else name in parts
        if name in whole or overlaps:
            message = f"{quoted(name)} is already claimed"
            site.report(TPL_CLAIM, message, where, "FieldValueDuplicate")
        if part:
            parts.setdefault(name, set()).add(part)
        else:
            whole.add(name)
        if name not in known:
            hint = site.case.did_you_mean(name, known)
            message = f"the pod has no resource claim {quoted(name)}{hint}"
            site.report(TPL_CLAIM, message, where, "FieldValueNotFound")


_one_policy = unique(TPL_RESIZE, "resourceName", words="has a policy already at", whole=True)
ROWS = (
    Row("resources", _resources),
    Row("resizePolicy", _one_policy),
    Row("resizePolicy[].resourceName|restartPolicy", required(TPL_RESIZE), ""),
    Row("resizePolicy[].resourceName", one_of(TPL_RESIZE, ("cpu", "memory"), empty=True)),
    Row("resizePolicy[].restartPolicy", one_of(TPL_RESIZE, _RESIZE_POLICIES, empty=True)),
    Row("resizePolicy[].restartPolicy", _resize_restart),
)
"""Fields of a container."""
