"""Tolerations: which taints of nodes a pod puts up with, and for how long."""

import re

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.features import TPL_FEATURE
from pumice.webhook.rules.templates.labels import key_problem, value_problem
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.values import one_of, quoted

__all__ = ["RULES", "tolerations"]

TPL_TOLERATION = Rule(
    "TPL-TOLERATION",
    "a toleration has the operator Equal or Exists; without a key it has Exists, and with Exists no value",
    "Kubernetes refuses the pod otherwise.",
    "tolerations: [{key: gpu, operator: Exists, value: a100}]",
)
TPL_TOLERATION_EFFECT = Rule(
    "TPL-TOLERATION-EFFECT",
    "a toleration has an effect that exists; with tolerationSeconds that is NoExecute",
    "Only NoExecute drives pods away, so only there is something to put off.",
    "tolerations: [{key: gpu, effect: NoSchedule, tolerationSeconds: 60}]",
)

RULES = (TPL_TOLERATION, TPL_TOLERATION_EFFECT)

_OPERATORS = ("Equal", "Exists")
_COMPARISONS = ("Gt", "Lt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)


def tolerations(site: Site, spec: Raw) -> None:
    """Check `tolerations`."""
    for index, toleration in entries(spec["tolerations"]):
        _match(site, toleration, f"tolerations[{index}]")
        effect = toleration.get("effect", "")
        if effect:
            one_of(site, TPL_TOLERATION_EFFECT, effect, _EFFECTS, f"tolerations[{index}].effect")
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            message = f'must be "NoExecute" with tolerationSeconds, found {quoted(effect)}'
            site.report(TPL_TOLERATION_EFFECT, message, f"tolerations[{index}].effect")


def _match(site: Site, toleration: Raw, field: str) -> None:
    """Check key, operator and value, which belong together."""
    key, value = toleration.get("key", ""), toleration.get("value", "")
    operator = toleration.get("operator") or "Equal"
    if key and (problem := key_problem(key)):
        site.report(TPL_TOLERATION, problem, f"{field}.key")
    if operator in _COMPARISONS:
        message = f"{operator} needs the feature TaintTolerationComparisonOperators"
        site.report(TPL_FEATURE, message, f"{field}.operator")
        if not _INTEGER.fullmatch(value) or not _LOWEST <= int(value) <= _HIGHEST:
            message = f"must be a whole number for {operator}, found {quoted(value)}"
            site.report(TPL_TOLERATION, message, f"{field}.value")
    elif operator not in _OPERATORS:
        one_of(site, TPL_TOLERATION, operator, _OPERATORS, f"{field}.operator")
    elif operator == "Exists":
        if value:
            message = f"must be empty with operator Exists, found {quoted(value)}"
            site.report(TPL_TOLERATION, message, f"{field}.value")
    elif problem := value_problem(value):
        site.report(TPL_TOLERATION, problem, f"{field}.value")
    if not key and operator in (*_COMPARISONS, "Equal"):
        message = f"must be Exists where there is no key, found {operator}"
        site.report(TPL_TOLERATION, message, f"{field}.operator")
