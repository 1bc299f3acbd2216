"""All rules of admission: the one list from which pages and settings are made."""

from pumice.webhook.rules import hyper_nodes
from pumice.webhook.rules.flows import cron_jobs, job_flows, job_templates
from pumice.webhook.rules.jobs import checks as job_checks
from pumice.webhook.rules.pod_groups import checks as pod_group_checks
from pumice.webhook.rules.pods import checks as pod_checks
from pumice.webhook.rules.pods import defaults as pod_defaults
from pumice.webhook.rules.pods import foreign as pod_foreign
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

_FILES = (
    job_checks,
    queue_defaults,
    queue_amounts,
    queue_fields,
    queue_node_groups,
    queue_closing,
    queue_hierarchy,
    queue_tree,
    queue_capability,
    queue_sums,
    pod_group_checks,
    pod_foreign,
    pod_defaults,
    pod_checks,
    job_templates,
    cron_jobs,
    job_flows,
    hyper_nodes,
)

ALL: tuple[Rule, ...] = tuple(dict.fromkeys(rule for each in _FILES for rule in each.RULES))
"""Every rule, kind by kind, in the order in which problems are told."""

_BY_CODE = {rule.code: rule for rule in ALL}


def by_code(code: str) -> Rule | None:
    """Find a rule; None for the codes of the CRD schema, which are none of ours."""
    return _BY_CODE.get(code)
