"""PodGroups: which checks judge them, new and changed."""

from pumice.api.podgroups import PodGroup
from pumice.webhook.rules import pod_group_checks, pod_group_parts, ratchet
from pumice.webhook.rules.case import Case, Check, run

__all__ = ["CHECKS", "validate_create", "validate_update"]

CHECKS: tuple[Check[PodGroup], ...] = (*pod_group_checks.CHECKS, *pod_group_parts.CHECKS)
"""What is judged about a PodGroup, in the order in which problems are told."""


def validate_create(case: Case, group: PodGroup) -> None:
    """Judge a new PodGroup."""
    run(case, CHECKS, group)


def validate_update(case: Case, group: PodGroup, old: PodGroup) -> None:
    """Judge a change of a PodGroup; its status is no business of admission.

    Volcano judges none, so with `strict-upstream` what is wrong only warns.
    """
    if group.metadata.deletion_timestamp or group.spec == old.spec:
        return
    case.stricter = True
    ratchet.judge_update(case, CHECKS, group, old)
