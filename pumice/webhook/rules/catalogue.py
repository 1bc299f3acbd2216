"""All rules of admission: the one list from which pages, policies and settings are made."""

from pumice.webhook.rules import hyper_nodes
from pumice.webhook.rules.flows import cron_jobs, job_flows, job_templates
from pumice.webhook.rules.jobs import checks as job_checks
from pumice.webhook.rules.pod_groups import checks as pod_group_checks
from pumice.webhook.rules.pods import checks as pod_checks
from pumice.webhook.rules.pods import defaults as pod_defaults
from pumice.webhook.rules.pods import foreign as pod_foreign
from pumice.webhook.rules.pods import resource_groups as pod_resource_groups
from pumice.webhook.rules.queues import amounts as queue_amounts
from pumice.webhook.rules.queues import capability as queue_capability
from pumice.webhook.rules.queues import closing as queue_closing
from pumice.webhook.rules.queues import defaults as queue_defaults
from pumice.webhook.rules.queues import fields as queue_fields
from pumice.webhook.rules.queues import hierarchy as queue_hierarchy
from pumice.webhook.rules.queues import node_groups as queue_node_groups
from pumice.webhook.rules.queues import sums as queue_sums
from pumice.webhook.rules.queues import tree as queue_tree
from pumice.webhook.rules.rule import Rule

__all__ = ["ALL", "by_code"]

ALL: tuple[Rule, ...] = (
    *job_checks.RULES,
    *queue_defaults.RULES,
    *queue_amounts.RULES,
    *queue_fields.RULES,
    *queue_node_groups.RULES,
    *queue_closing.RULES,
    *queue_hierarchy.RULES,
    *queue_tree.RULES,
    *queue_capability.RULES,
    *queue_sums.RULES,
    *pod_group_checks.RULES,
    *pod_foreign.RULES,
    *pod_resource_groups.RULES,
    *pod_defaults.RULES,
    *pod_checks.RULES,
    *job_templates.RULES,
    *cron_jobs.RULES,
    *job_flows.RULES,
    *hyper_nodes.RULES,
)
"""Every rule, kind by kind, in the order in which problems are told."""

_BY_CODE = {rule.code: rule for rule in ALL}


def by_code(code: str) -> Rule | None:
    """Find a rule; None for the codes of the CRD schema, which are none of ours."""
    return _BY_CODE.get(code)
