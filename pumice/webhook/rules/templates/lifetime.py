"""How long a pod runs, whether it starts again, and what it may push aside."""

from pumice.webhook.rules.resource_names import container_resource_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates import requirements
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.values import one_of

__all__ = [
    "RULES",
    "active_deadline",
    "overhead",
    "preemption_policy",
    "priority",
    "restart_policy",
]

TPL_RESTART_POLICY = Rule(
    "TPL-RESTART-POLICY",
    "restartPolicy is Always, OnFailure or Never",
    "Kubernetes knows no other.",
    "restartPolicy: Sometimes",
    reason="FieldValueNotSupported",
)
TPL_DEADLINE = Rule(
    "TPL-DEADLINE",
    "activeDeadlineSeconds is from 1 to 2147483647",
    "Kubernetes refuses the pod otherwise.",
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

RULES = (TPL_RESTART_POLICY, TPL_DEADLINE, TPL_PREEMPTION, TPL_PRIORITY, TPL_OVERHEAD)

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_USUAL_PREEMPTION = "PreemptLowerPriority"
_LONGEST = 2**31 - 1
_judge = requirements.judge_by(container_resource_problem)


def restart_policy(site: Site, spec: Raw) -> None:
    """Check `restartPolicy`; an empty one is left out."""
    one_of(
        site, TPL_RESTART_POLICY, spec["restartPolicy"] or None, _RESTART_POLICIES, "restartPolicy"
    )


def active_deadline(site: Site, spec: Raw) -> None:
    """Check `activeDeadlineSeconds`."""
    seconds = spec["activeDeadlineSeconds"]
    if not 1 <= seconds <= _LONGEST:
        message = f"must be from 1 to {_LONGEST}, found {seconds}"
        site.report(TPL_DEADLINE, message, "activeDeadlineSeconds")


def preemption_policy(site: Site, spec: Raw) -> None:
    """Check `preemptionPolicy`."""
    policy, field = spec["preemptionPolicy"], "preemptionPolicy"
    one_of(site, TPL_PREEMPTION, policy, _PREEMPTION_POLICIES, field)
    if policy in _PREEMPTION_POLICIES and policy != _USUAL_PREEMPTION:
        message = f"{policy} must be the policy of the pod's priority class; leave it to the class"
        site.report(TPL_PRIORITY, message, field)


def priority(site: Site, spec: Raw) -> None:
    """Check `priority`: without a priority class it is 0, and with one that of the class."""
    if spec["priority"]:
        message = f"{spec['priority']} must be the value of the pod's priority class; name the class instead"
        site.report(TPL_PRIORITY, message, "priority")


def overhead(site: Site, spec: Raw) -> None:
    """Check `overhead`: that it comes with a runtime class, whose it must be, and that a class can have it."""
    if not spec.get("runtimeClassName"):
        message = "must not be set without runtimeClassName, whose overhead it is"
        site.report(TPL_OVERHEAD, message, "overhead")
    limits = requirements.amounts(site, spec["overhead"], "overhead", _judge)
    for rule, _, message in requirements.conflicts(limits, {}):
        site.report(rule, message, "overhead")
