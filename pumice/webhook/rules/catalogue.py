"""All rules of admission: the one list from which pages, policies and settings are made."""

from pumice.webhook.rules import (
    dependencies,
    disruption_budgets,
    job_counts,
    job_defaults,
    job_names,
    job_plugins,
    job_updates,
    lifecycle_policies,
    network_topology,
    numa,
    partitions,
    pod_groups,
    pod_templates,
    queue_amounts,
    queue_hierarchy,
    queue_references,
    queue_tree,
    queues,
    volumes,
)
from pumice.webhook.rules.rule import Rule

__all__ = ["ALL", "by_code"]

ALL: tuple[Rule, ...] = (
    *job_counts.RULES,
    *job_names.RULES,
    *job_defaults.RULES,
    *job_updates.RULES,
    *lifecycle_policies.RULES,
    *pod_templates.RULES,
    *numa.RULES,
    *partitions.RULES,
    *network_topology.RULES,
    *job_plugins.RULES,
    *volumes.RULES,
    *dependencies.RULES,
    *queue_references.RULES,
    *queue_amounts.RULES,
    *queue_hierarchy.RULES,
    *queue_tree.RULES,
    *queues.RULES,
    *pod_groups.RULES,
    *disruption_budgets.RULES,
)
"""Every rule, kind by kind, in the order in which problems are told."""

_BY_CODE = {rule.code: rule for rule in ALL}


def by_code(code: str) -> Rule | None:
    """Find a rule; None for the codes of the CRD schema, which are none of ours."""
    return _BY_CODE.get(code)
