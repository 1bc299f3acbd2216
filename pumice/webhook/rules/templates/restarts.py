"""When single containers are restarted, other than the pod's restartPolicy says."""

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.surroundings import Surroundings
from pumice.webhook.rules.templates.values import one_of

__all__ = ["RULES", "init_restart_rules", "restart_policy", "restart_rules"]

TPL_RESTART = Rule(
    "TPL-RESTART",
    "restartPolicy of a container is Always, Never or OnFailure; an init container with rules has one",
    "Kubernetes refuses the pod otherwise.",
    "initContainers: [{name: proxy, image: envoy, restartPolicy: Sometimes}]",
)
TPL_RESTART_RULES = Rule(
    "TPL-RESTART-RULES",
    "restartPolicyRules go by exit codes, and come with a restartPolicy",
    "Kubernetes takes the template, and then refuses each of its pods.",
    "containers: [{name: main, image: busybox, restartPolicyRules: [{action: Restart}]}]",
    stricter=True,
)

RULES = (TPL_RESTART, TPL_RESTART_RULES)

_POLICIES = ("Always", "Never", "OnFailure")
_ACTIONS = ("Restart", "RestartAllContainers")
_OPERATORS = ("In", "NotIn")
_MOST_RULES = 20
_MOST_CODES = 255
_NO_POLICY = "must be set where there are rules, found none"


def restart_policy(site: Site, container: Raw, _pod: Surroundings) -> None:
    """Check `restartPolicy` of a container."""
    one_of(site, TPL_RESTART, container["restartPolicy"], _POLICIES, "restartPolicy")


def init_restart_rules(site: Site, container: Raw, pod: Surroundings) -> None:
    """Check `restartPolicyRules` of an init container, of which Volcano, too, wants a `restartPolicy`."""
    if container["restartPolicyRules"] and container.get("restartPolicy") is None:
        site.report(TPL_RESTART, _NO_POLICY, "restartPolicy")
        container = container | {"restartPolicy": ""}
    restart_rules(site, container, pod)


def restart_rules(site: Site, container: Raw, _pod: Surroundings) -> None:
    """Check `restartPolicyRules`."""
    rules = container["restartPolicyRules"]
    if not rules or not isinstance(rules, list):
        return
    if container.get("restartPolicy") is None:
        site.report(TPL_RESTART_RULES, _NO_POLICY, "restartPolicy")
    if len(rules) > _MOST_RULES:
        message = f"must have at most {_MOST_RULES}, found {len(rules)}"
        site.report(TPL_RESTART_RULES, message, "restartPolicyRules")
    for index, rule in entries(rules):
        field = f"restartPolicyRules[{index}]"
        one_of(site, TPL_RESTART_RULES, rule.get("action") or "", _ACTIONS, f"{field}.action")
        codes = rule.get("exitCodes")
        if codes is None:
            site.report(TPL_RESTART_RULES, "must be set, found none", f"{field}.exitCodes")
        elif isinstance(codes, dict):
            operator = codes.get("operator") or ""
            one_of(site, TPL_RESTART_RULES, operator, _OPERATORS, f"{field}.exitCodes.operator")
            values = codes.get("values")
            if isinstance(values, list) and len(values) > _MOST_CODES:
                message = f"must have at most {_MOST_CODES}, found {len(values)}"
                site.report(TPL_RESTART_RULES, message, f"{field}.exitCodes.values")
