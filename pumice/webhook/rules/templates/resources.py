"""What a container asks for: requests and limits, claims, and what a change of them does."""

from pumice.api.names import dns_label_problem
from pumice.webhook.rules.resource_names import container_resource_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates import requirements
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.surroundings import Surroundings
from pumice.webhook.rules.templates.values import one_of, quoted, text

__all__ = ["RULES", "init_resize_policy", "resize_policy", "resources"]

TPL_CLAIM = Rule(
    "TPL-CLAIM",
    "resources.claims names claims of the pod, each request once",
    "Kubernetes refuses the pod otherwise.",
    "resources: {claims: [{name: gpu}]}",
    compares=True,
)
TPL_RESIZE = Rule(
    "TPL-RESIZE",
    "resizePolicy is about cpu and memory, once each, and restarts only what is restarted anyway",
    "Kubernetes refuses the pod otherwise.",
    "restartPolicy: Never, containers: [{resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]",
)

RULES = (TPL_CLAIM, TPL_RESIZE)

_judge = requirements.judge_by(container_resource_problem)
_RESIZED = ("cpu", "memory")
_POLICIES = ("NotRequired", "RestartContainer")


def resources(site: Site, container: Raw, pod: Surroundings) -> None:
    """Check `resources`."""
    found = container["resources"]
    if not isinstance(found, dict):
        return
    limits, requests = requirements.read(site, found, "resources", _judge)
    for rule, field, message in requirements.conflicts(limits, requests):
        site.report(rule, message, f"resources.{field}" if field else "resources")
    if found.get("claims"):
        _claims(site, found["claims"], pod)


def resize_policy(site: Site, container: Raw, pod: Surroundings) -> None:
    """Check `resizePolicy`."""
    seen: dict[str, int] = {}
    for index, policy in entries(container["resizePolicy"]):
        field = f"resizePolicy[{index}]"
        name = text(site, TPL_RESIZE, policy.get("resourceName"), f"{field}.resourceName")
        if name and (first := seen.setdefault(name, index)) != index:
            message = f"{quoted(name)} has a policy already at {site.path}.resizePolicy[{first}]"
            site.report(TPL_RESIZE, message, f"{field}.resourceName")
        one_of(site, TPL_RESIZE, name or None, _RESIZED, f"{field}.resourceName")
        restart = text(site, TPL_RESIZE, policy.get("restartPolicy"), f"{field}.restartPolicy")
        one_of(site, TPL_RESIZE, restart or None, _POLICIES, f"{field}.restartPolicy")
        if pod.restart_policy == "Never" and restart == "RestartContainer":
            message = "must be NotRequired where the pod's restartPolicy is Never"
            site.report(TPL_RESIZE, message, f"{field}.restartPolicy")


def init_resize_policy(site: Site, container: Raw, pod: Surroundings) -> None:
    """Check `resizePolicy` of an init container, which runs to its end and is not restarted for this."""
    resize_policy(site, container, pod)
    for index, policy in entries(container["resizePolicy"]):
        if policy.get("restartPolicy") == "RestartContainer" and pod.restart_policy != "Never":
            message = "must be NotRequired for an init container without restartPolicy Always"
            site.report(TPL_RESIZE, message, f"resizePolicy[{index}].restartPolicy")


def _claims(site: Site, found: object, pod: Surroundings) -> None:
    known = pod.claims()
    whole: set[str] = set()
    parts: dict[str, set[str]] = {}
    for index, claim in entries(found):
        field = f"resources.claims[{index}]"
        name = text(site, TPL_CLAIM, claim.get("name"), f"{field}.name")
        if not name:
            continue
        part = claim.get("request") or ""
        if not isinstance(part, str):
            continue
        if part and (problem := dns_label_problem(part)):
            site.report(TPL_CLAIM, problem, f"{field}.request")
        overlaps = part in parts.get(name, ()) if part else name in parts
        if name in whole or overlaps:
            message = f"{quoted(name)} is already claimed"
            site.report(TPL_CLAIM, message, f"{field}.name", "FieldValueDuplicate")
        if part:
            parts.setdefault(name, set()).add(part)
        else:
            whole.add(name)
        if name not in known:
            hint = site.case.did_you_mean(name, known)
            message = f"the pod has no resource claim {quoted(name)}{hint}"
            site.report(TPL_CLAIM, message, f"{field}.name", "FieldValueNotFound")
