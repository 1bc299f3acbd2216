"""Features that a Kubernetes API server has and that are off unless somebody turns them on.

What needs one is refused when the pod is created. Who has turned it on turns the rule off.
"""

from pumice.webhook.rules.rule import Rule

__all__ = ["RULES", "TPL_FEATURE"]

TPL_FEATURE = Rule(
    "TPL-FEATURE",
    "a template needs no feature of Kubernetes that is off by default",
    "Kubernetes refuses the pod where the feature is off; where it is on, turn this rule off.",
    "tolerations: [{key: memory, operator: Gt, value: '64'}]",
    reason="FieldValueNotSupported",
)

RULES = (TPL_FEATURE,)
