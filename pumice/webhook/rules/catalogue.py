"""All rules of admission: the list from which docs and settings are generated."""

from pumice.webhook.rules import hyper_nodes
from pumice.webhook.rules.flows import cron_jobs, job_flows, job_templates
from pumice.webhook.rules.jobs import checks as job_checks
from pumice.webhook.rules.pod_groups import checks as pod_group_checks
from pumice.webhook.rules.pods import checks as pod_checks
from pumice.webhook.rules.pods import defaults as pod_defaults
from pumice.webhook.rules.pods import foreign as pod_foreign
from pumice.webhook.rules.queues import (
    amounts,
    capability,
    closing,
    defaults,
    fields,
    hierarchy,
    node_groups,
    sums,
    tree,
)
from pumice.webhook.rules.rule import Rule, rules_in

_OF_QUEUES = rules_in(
    defaults, amounts, fields, node_groups, closing, hierarchy, tree, capability, sums
)
_OF_PODS = rules_in(pod_group_checks, pod_foreign, pod_defaults, pod_checks)
_OF_OTHERS = rules_in(job_templates, cron_jobs, job_flows, hyper_nodes)

ALL: tuple[Rule, ...] = (*job_checks.RULES, *_OF_QUEUES, *_OF_PODS, *_OF_OTHERS)
"""Every rule by kind, in the order in which problems are reported."""

_BY_CODE = {rule.code: rule for rule in ALL}


def by_code(code: str) -> Rule | None:
    """Find a rule; None for codes of the CRD schema, which are not rules."""
    return _BY_CODE.get(code)
