"""Node groups of a queue: which ones it uses and avoids, and how much of each it may use.

A group is a value of the node label `volcano.sh/nodegroup-name`. The existence of nodes is not checked: they may join
the cluster at any time. The limits are an annotation, a JSON object with one entry for each group.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from pumice.api import keys
from pumice.api.json_words import kind_of
from pumice.api.names import label_value_problem
from pumice.api.queues import NodeGroupTerms, Queue, QueueAffinity
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.queues.amounts import Q_RESOURCE
from pumice.webhook.rules.resource_names import amount_problem, misspelt
from pumice.webhook.rules.rule import stricter, warned

Q_GROUP_NAME = stricter(
    "Q-GROUP-NAME",
    "names of node groups are label values, and none is empty",
    f"A node is in a group by its label {keys.NODE_GROUP}; no node can carry another name.",
    "nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [gpu nodes]}",
)
Q_GROUP_DUP = stricter(
    "Q-GROUP-DUP",
    "no node group is twice in a list",
    "The position in a list of preferences is the priority of a group; it can have only one.",
    "nodeGroupAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [gpu, cpu, gpu]}",
    reason="FieldValueDuplicate",
)
Q_GROUP_BOTH = stricter(
    "Q-GROUP-BOTH",
    "no node group is both required and forbidden",
    "A group in required affinity and in required anti-affinity must be used and must not.",
    "nodeGroupAffinity and nodeGroupAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [gpu]}",
    reason="FieldValueForbidden",
)
Q_GROUP_PREFERENCE = warned(
    "Q-GROUP-PREFERENCE",
    "a preference for or against a node group can have an effect",
    "A preference that contradicts a requirement or another preference has no effect.",
    "nodeGroupAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [gpu]}, where gpu is in required anti-affinity",
)


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WANTED = "spec.affinity.nodeGroupAffinity"
_UNWANTED = "spec.affinity.nodeGroupAntiAffinity"


def group_name_problem(name: str) -> str | None:
    """Explain why a string is not a valid name of a node group; None if it is."""
    return label_value_problem(name) if name else "must not be empty"


def node_groups(case: Case, queue: Queue) -> None:
    """Check the lists of `spec.affinity`, each by itself and against each other."""
    if queue.spec.affinity is None:
        return
    wanted, unwanted = _terms(queue)
    for path, terms in ((_WANTED, wanted), (_UNWANTED, unwanted)):
        _names(case, f"{path}.{_REQUIRED}", terms.required)
        _names(case, f"{path}.{_PREFERRED}", terms.preferred)
    required, preferred = set(wanted.required), set(wanted.preferred)
    forbidden = set(unwanted.required)
    never = f"is never used, because nodeGroupAntiAffinity.{_REQUIRED} has it"
    for index, group in enumerate(unwanted.required):
        if group in required:
            message = f'"{group}" is in nodeGroupAffinity.{_REQUIRED} too, so it is required and forbidden'
            case.report(Q_GROUP_BOTH, f"{_UNWANTED}.{_REQUIRED}[{index}]", message)
    for index, group in enumerate(wanted.preferred):
        if group in forbidden:
            message = f'"{group}" {never}'
            case.report(Q_GROUP_PREFERENCE, f"{_WANTED}.{_PREFERRED}[{index}]", message)
    for index, group in enumerate(unwanted.preferred):
        path = f"{_UNWANTED}.{_PREFERRED}[{index}]"
        if group in forbidden:
            message = f'"{group}" {never}; Volcano takes the preference for a permission'
            case.report(Q_GROUP_PREFERENCE, path, message)
        elif group in preferred:
            message = f'"{group}" is in nodeGroupAffinity.{_PREFERRED} too; it is used last'
            case.report(Q_GROUP_PREFERENCE, path, message)


def _terms(queue: Queue) -> tuple[NodeGroupTerms, NodeGroupTerms]:
    """Affinity and anti-affinity of a queue to node groups."""
    affinity = queue.spec.affinity or QueueAffinity()
    return (
        affinity.node_group_affinity or NodeGroupTerms(),
        affinity.node_group_anti_affinity or NodeGroupTerms(),
    )


def _names(case: Case, path: str, groups: Sequence[str]) -> None:
    first: dict[str, int] = {}
    for index, group in enumerate(groups):
        if problem := group_name_problem(group):
            case.report(Q_GROUP_NAME, f"{path}[{index}]", problem)
        elif group in first:
            message = f'"{group}" is at position [{first[group]}] of the list already'
            case.report(Q_GROUP_DUP, f"{path}[{index}]", message)
        else:
            first[group] = index


Q_GROUP_LIMITS = stricter(
    "Q-GROUP-LIMITS",
    "limits of node groups are a JSON object: group, resource, quantity",
    "The scheduler places no pod of a queue whose limits it cannot read.",
    f"{keys.NODE_GROUP_LIMITS}: '{{gpu: 8}}'",
)
Q_GROUP_LIMITS_UNUSED = warned(
    "Q-GROUP-LIMITS-UNUSED",
    "limits are about node groups that the queue may use",
    "A limit on a group that is never used has no effect; another group may have been meant.",
    f'{keys.NODE_GROUP_LIMITS}: \'{{"gpu": {{"cpu": 8}}}}\', where gpu is in required anti-affinity',
)

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
        message = f"must be JSON such as {_FORM}, and cannot be read: {error}"
        case.report(Q_GROUP_LIMITS, _PATH, message)
        return
    if not isinstance(limits, dict):
        message = f"must be a JSON object such as {_FORM}, found {kind_of(limits)}"
        case.report(Q_GROUP_LIMITS, _PATH, message)
        return
    for group, amounts in sorted(limits.items()):
        _group(case, queue, group, amounts)


def _group(case: Case, queue: Queue, group: str, amounts: Any) -> None:
    if problem := group_name_problem(group):
        case.report(Q_GROUP_LIMITS, _PATH, f"invalid name of a group: {problem}")
    elif why := _unused(queue, group):
        case.report(Q_GROUP_LIMITS_UNUSED, _PATH, f'group "{group}" is limited, but {why}')
    if not isinstance(amounts, dict):
        message = f'limits of group "{group}" must be an object such as {{"cpu": "3"}}, found {kind_of(amounts)}'
        case.report(Q_GROUP_LIMITS, _PATH, message)
        return
    for name, value in sorted(amounts.items()):
        if hint := misspelt(name, case.suggestions):
            case.report(
                Q_RESOURCE, _PATH, f'resource "{name}" of group "{group}" is not known{hint}'
            )
        if problem := amount_problem(value):
            case.report(Q_GROUP_LIMITS, _PATH, f'{name} of group "{group}": {problem}')


def _unused(queue: Queue, group: str) -> str:
    """Why a queue never uses a group, by its own affinity; empty if it may use it, or if that of a queue above counts."""
    wanted, unwanted = _terms(queue)
    if group in unwanted.required:
        return "it is in required anti-affinity, so it is never used"
    usable = (*wanted.required, *wanted.preferred, *unwanted.preferred)
    if wanted.required and group not in usable:
        return "it is not among the groups of required affinity, so it is never used"
    return ""
