"""All rules of admission: the one list from which pages and settings are made."""

from pumice.webhook.rules import (
    cron_jobs,
    disruption_budgets,
    embedded_jobs,
    foreign_pods,
    hyper_nodes,
    job_flows,
    jobs,
    pod_group_checks,
    pod_group_parts,
    queue_amounts,
    queue_capability,
    queue_clusters,
    queue_defaults,
    queue_deletion,
    queue_fields,
    queue_hierarchy,
    queue_node_group_limits,
    queue_node_groups,
    queue_root,
    queue_states,
    queue_sums,
    queue_tree,
    queue_tree_resources,
    resource_groups,
    scheduling_gates,
)
from pumice.webhook.rules.rule import Rule

__all__ = ["ALL", "by_code"]

ALL: tuple[Rule, ...] = (
    *jobs.RULES,
    *queue_defaults.RULES,
    *queue_root.RULES,
    *queue_fields.RULES,
    *queue_amounts.RULES,
    *queue_clusters.RULES,
    *queue_node_groups.RULES,
    *queue_node_group_limits.RULES,
    *queue_states.RULES,
    *queue_hierarchy.RULES,
    *queue_tree.RULES,
    *queue_capability.RULES,
    *queue_sums.RULES,
    *queue_tree_resources.RULES,
    *queue_deletion.RULES,
    *pod_group_checks.RULES,
    *pod_group_parts.RULES,
    *foreign_pods.RULES,
    *resource_groups.RULES,
    *scheduling_gates.RULES,
    *disruption_budgets.RULES,
    *embedded_jobs.RULES,
    *cron_jobs.RULES,
    *job_flows.RULES,
    *hyper_nodes.RULES,
)
"""Every rule, kind by kind, in the order in which problems are told."""

_BY_CODE = {rule.code: rule for rule in ALL}


def by_code(code: str) -> Rule | None:
    """Find a rule; None for the codes of the CRD schema, which are none of ours."""
    return _BY_CODE.get(code)
