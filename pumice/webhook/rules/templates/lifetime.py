"""How long pods and containers run, whether they start again, and what a pod may push aside."""

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates import resources
from pumice.webhook.rules.templates.doubtful import TPL_DOUBTFUL
from pumice.webhook.rules.templates.shapes import at_most, one_of, present, refused, within
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.table import Check, Row, compiled

__all__ = ["CONTAINER_ROWS", "INIT_ROWS", "ROWS"]

TPL_RESTART = refused(
    "TPL-RESTART",
    "restartPolicy of a container is Always, Never or OnFailure; an init container with rules has one",
    "initContainers: [{name: proxy, image: envoy, restartPolicy: Sometimes}]",
)
TPL_RESTART_RULES = Rule(
    "TPL-RESTART-RULES",
    "restartPolicyRules go by exit codes, and come with a restartPolicy",
    "Kubernetes takes the template, and then refuses each of its pods.",
    "containers: [{name: main, image: busybox, restartPolicyRules: [{action: Restart}]}]",
    stricter=True,
)
TPL_RESTART_POLICY = Rule(
    "TPL-RESTART-POLICY",
    "restartPolicy is Always, OnFailure or Never",
    "Kubernetes knows no other.",
    "restartPolicy: Sometimes",
    reason="FieldValueNotSupported",
)
TPL_DEADLINE = refused(
    "TPL-DEADLINE",
    "activeDeadlineSeconds is from 1 to 2147483647",
    "activeDeadlineSeconds: 0",
)
TPL_PREEMPTION = Rule(
    "TPL-PREEMPTION",
    "preemptionPolicy is PreemptLowerPriority or Never",
    "Kubernetes knows no other.",
    "preemptionPolicy: Sometimes",
    reason="FieldValueNotSupported",
)
TPL_PRIORITY = Rule(
    "TPL-PRIORITY",
    "priority and preemptionPolicy are left to the priority class",
    "Kubernetes refuses a pod whose own ones differ from those of its class.",
    "priority: 1000",
    level="warn",
)
TPL_OVERHEAD = Rule(
    "TPL-OVERHEAD",
    "overhead comes from a runtime class",
    "Kubernetes takes the template, and then refuses each of its pods.",
    "overhead: {cpu: 250m}",
    reason="FieldValueForbidden",
    stricter=True,
    compares=True,
)

_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_USUAL_PREEMPTION = "PreemptLowerPriority"
_LONGEST = 2**31 - 1
_ACTIONS = ("Restart", "RestartAllContainers")
_MOST_RULES = 20
_MOST_CODES = 255


def _preemption(site: Site, policy: str, field: str, _: Raw) -> None:
    if policy in _PREEMPTION_POLICIES and policy != _USUAL_PREEMPTION:
        message = f"{policy} must be the policy of the pod's priority class; leave it to the class"
        site.report(TPL_PRIORITY, message, field)


def _priority(site: Site, priority: int, field: str, _: Raw) -> None:
    """Check `priority`: without a priority class it is 0, and with one that of the class."""
    if priority:
        message = (
            f"{priority} must be the value of the pod's priority class; name the class instead"
        )
        site.report(TPL_PRIORITY, message, field)


def _overhead(site: Site, found: Raw, field: str, spec: Raw) -> None:
    """Check `overhead`: that it comes with a runtime class, whose it must be, and that a class can have it."""
    if not spec.get("runtimeClassName"):
        message = "must not be set without runtimeClassName, whose overhead it is"
        site.report(TPL_OVERHEAD, message, field)
    limits = resources.amounts(site, found, field, resources.of_container)
    for rule, _, message in resources.conflicts(limits, {}):
        site.report(rule, message, field)


def _grace_period(site: Site, seconds: int, field: str, _: Raw) -> None:
    if seconds < 0:
        site.report(TPL_DOUBTFUL, f"counts as 1 where it is below 0, found {seconds}", field)


def _with_policy(rule: Rule) -> Check:
    """Restart rules that must have a policy, to which they are exceptions."""

    def check(site: Site, rules: list[Raw], _: str, container: Raw) -> None:
        if rules and "restartPolicy" not in container:
            site.report(rule, "must be set where there are rules, found none", "restartPolicy")

    return check


_exit_codes = compiled(
    (
        Row("operator", one_of(TPL_RESTART_RULES, ("In", "NotIn")), ""),
        Row("values", at_most(TPL_RESTART_RULES, _MOST_CODES)),
    )
)


ROWS = (
    Row("restartPolicy", one_of(TPL_RESTART_POLICY, ("Always", "OnFailure", "Never"), empty=True)),
    Row("activeDeadlineSeconds", within(TPL_DEADLINE, 1, _LONGEST)),
    Row("terminationGracePeriodSeconds", _grace_period),
    Row("preemptionPolicy", one_of(TPL_PREEMPTION, _PREEMPTION_POLICIES)),
    Row("preemptionPolicy", _preemption),
    Row("priority", _priority),
    Row("overhead", _overhead),
)
"""Fields of a pod's spec."""

_RULE_ROWS = (
    Row("restartPolicy", one_of(TPL_RESTART, ("Always", "Never", "OnFailure"))),
    Row("restartPolicyRules", at_most(TPL_RESTART_RULES, _MOST_RULES)),
    Row("restartPolicyRules[].action", one_of(TPL_RESTART_RULES, _ACTIONS), ""),
    Row("restartPolicyRules[].exitCodes", present(TPL_RESTART_RULES, _exit_codes), None),
)
CONTAINER_ROWS = (Row("restartPolicyRules", _with_policy(TPL_RESTART_RULES)), *_RULE_ROWS)
"""Fields of a regular container."""

INIT_ROWS = (Row("restartPolicyRules", _with_policy(TPL_RESTART)), *_RULE_ROWS)
"""Fields of an init container, of whose rules Volcano, too, wants a `restartPolicy`."""
