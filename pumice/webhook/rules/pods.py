"""Pods: which rules apply to those that are ours to judge."""

from pumice.api.pods import Pod
from pumice.webhook.rules import disruption_budgets
from pumice.webhook.rules.case import Case, Check, run

__all__ = ["CHECKS", "validate_create"]

CHECKS: tuple[Check[Pod], ...] = (
    (disruption_budgets.POD_JDB_INT, disruption_budgets.disruption_budget),
)
"""What is judged about a Pod, in the order in which problems are told."""


def validate_create(case: Case, pod: Pod) -> None:
    """Judge a new pod; one of a scheduler that is not ours is none of our business."""
    if pod.spec.scheduler_name in case.settings.scheduler_names:
        run(case, CHECKS, pod)
