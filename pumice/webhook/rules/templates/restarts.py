"""When single containers are restarted, other than the pod's restartPolicy says."""

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.surroundings import Surroundings
from pumice.webhook.rules.templates.values import one_of

__all__ = ["RULES", "restart_policy", "restart_rules"]

TPL_RESTART = Rule(
    "TPL-RESTART",
    "restartPolicy of a container is Always, Never or OnFailure, and its rules go by exit codes",
    "Kubernetes refuses the pod otherwise.",
    "initContainers: [{name: proxy, image: envoy, restartPolicy: Sometimes}]",
)

RULES = (TPL_RESTART,)

_POLICIES = ("Always", "Never", "OnFailure")
_ACTIONS = ("Restart", "RestartAllContainers")
_OPERATORS = ("In", "NotIn")
_MOST_RULES = 20
_MOST_CODES = 255


def restart_policy(site: Site, container: Raw, _pod: Surroundings) -> None:
    """Check `restartPolicy` of a container."""
    one_of(site, TPL_RESTART, container["restartPolicy"], _POLICIES, "restartPolicy")


def restart_rules(site: Site, container: Raw, _pod: Surroundings) -> None:
    """Check `restartPolicyRules`."""
    rules = container["restartPolicyRules"]
    if not rules or not isinstance(rules, list):
        return
    if container.get("restartPolicy") is None:
        site.report(TPL_RESTART, "must be set where there are rules, found none", "restartPolicy")
    if len(rules) > _MOST_RULES:
        message = f"must be at most {_MOST_RULES}, found {len(rules)}"
        site.report(TPL_RESTART, message, "restartPolicyRules")
    for index, rule in entries(rules):
        field = f"restartPolicyRules[{index}]"
        one_of(site, TPL_RESTART, rule.get("action") or "", _ACTIONS, f"{field}.action")
        codes = rule.get("exitCodes")
        if codes is None:
            site.report(TPL_RESTART, "must be set, found none", f"{field}.exitCodes")
        elif isinstance(codes, dict):
            operator = codes.get("operator") or ""
            one_of(site, TPL_RESTART, operator, _OPERATORS, f"{field}.exitCodes.operator")
            values = codes.get("values")
            if isinstance(values, list) and len(values) > _MOST_CODES:
                message = f"must be at most {_MOST_CODES}, found {len(values)}"
                site.report(TPL_RESTART, message, f"{field}.exitCodes.values")
