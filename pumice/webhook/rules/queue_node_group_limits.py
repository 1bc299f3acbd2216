"""The annotation that limits what a Queue may use of a node group: a JSON text, group by group."""

from collections.abc import Mapping
from typing import Any

import msgspec

from pumice.api import keys
from pumice.api.json_words import kind_of
from pumice.api.quantities import parse_milli
from pumice.api.queues import NodeGroupTerms, Queue
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.queue_amounts import Q_RESOURCE
from pumice.webhook.rules.queue_node_groups import group_name_problem
from pumice.webhook.rules.resource_names import misspelt
from pumice.webhook.rules.rule import Rule

__all__ = ["Q_GROUP_LIMITS", "RULES", "node_group_limits"]

Q_GROUP_LIMITS = Rule(
    "Q-GROUP-LIMITS",
    "limits of node groups are a JSON object of groups with resources and amounts",
    "The scheduler places no pod of a queue whose limits it cannot read.",
    f"{keys.NODE_GROUP_LIMITS}: '{{gpu: 8}}'",
    stricter=True,
)
Q_GROUP_LIMITS_UNUSED = Rule(
    "Q-GROUP-LIMITS-UNUSED",
    "limits are about node groups that the queue may use",
    "A limit on what is never used limits nothing; perhaps another group was meant.",
    f'{keys.NODE_GROUP_LIMITS}: \'{{"gpu": {{"cpu": 8}}}}\', where gpu is in required anti-affinity',
    level="warn",
)

RULES = (Q_GROUP_LIMITS, Q_GROUP_LIMITS_UNUSED)

_PATH = f"metadata.annotations[{keys.NODE_GROUP_LIMITS}]"
_FORM = '{"group1": {"cpu": "3", "memory": "8Gi"}}'


def node_group_limits(case: Case, queue: Queue) -> None:
    """Check the annotation of a queue that has it."""
    text = queue.metadata.annotation(keys.NODE_GROUP_LIMITS)
    if not text:
        return
    try:
        limits = msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        case.report(
            Q_GROUP_LIMITS, _PATH, f"must be JSON such as {_FORM}, and cannot be read: {error}"
        )
        return
    if not isinstance(limits, dict):
        message = f"must be a JSON object such as {_FORM}, found {kind_of(limits)}"
        case.report(Q_GROUP_LIMITS, _PATH, message)
        return
    for group, amounts in sorted(limits.items()):
        _group(case, queue, group, amounts)


def _group(case: Case, queue: Queue, group: str, amounts: Any) -> None:
    if problem := group_name_problem(group):
        case.report(Q_GROUP_LIMITS, _PATH, f"names of groups {problem}")
    elif why := _unused(queue, group):
        case.report(Q_GROUP_LIMITS_UNUSED, _PATH, f'group "{group}" is limited, but {why}')
    if not isinstance(amounts, Mapping):
        message = f'limits of group "{group}" must be an object such as {{"cpu": "3"}}, found {kind_of(amounts)}'
        case.report(Q_GROUP_LIMITS, _PATH, message)
        return
    for name, value in sorted(amounts.items()):
        if hint := misspelt(name, case.suggestions):
            case.report(
                Q_RESOURCE, _PATH, f'resource "{name}" of group "{group}" is not known{hint}'
            )
        try:
            amount = parse_milli(value)
        except ValueError as error:
            case.report(Q_GROUP_LIMITS, _PATH, f'{name} of group "{group}" {error}')
            continue
        if amount < 0:
            message = f'{name} of group "{group}" must be 0 or more, found {value}'
            case.report(Q_GROUP_LIMITS, _PATH, message)


def _unused(queue: Queue, group: str) -> str:
    """Why a queue never uses a group, by its own affinity; empty when it may."""
    affinity = queue.spec.affinity
    if affinity is None:  # then that of a queue above may count
        return ""
    wanted = affinity.node_group_affinity or NodeGroupTerms()
    unwanted = affinity.node_group_anti_affinity or NodeGroupTerms()
    if group in unwanted.required:
        return "it is in required anti-affinity, so it is never used"
    usable = (*wanted.required, *wanted.preferred, *unwanted.preferred)
    if wanted.required and group not in usable:
        return "it is not among the groups of required affinity, so it is never used"
    return ""
