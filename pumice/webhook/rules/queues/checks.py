"""Checks of Queues.

It must be possible to bring a queue back within its limits in steps, also if other queues exceed theirs. So an update
is refused only if it causes an excess or increases it; a smaller excess is admitted. The identity of the limit is
compared, too, and not only rule and path: a queue that moves may exceed a limit of its old and of its new parent.
"""

from functools import partial

from pumice.api import keys
from pumice.api.queues import Queue
from pumice.webhook.rules.case import Case, Check, run
from pumice.webhook.rules.queues import (
    amounts,
    capability,
    closing,
    fields,
    hierarchy_annotations,
    node_groups,
    sums,
    tree,
)
from pumice.webhook.rules.queues.amounts import Find
from pumice.webhook.rules.rule import Rule, rules_in
from pumice.webhook.rules.updates import judge_update

RULES: tuple[Rule, ...] = rules_in(
    amounts, fields, node_groups, closing, hierarchy_annotations, tree, capability, sums
)
"""Every rule about Queues."""

CHECKS: tuple[Check[Queue], ...] = (
    (fields.Q_WEIGHT, fields.fields),
    (fields.Q_NAMESPACES, fields.namespaces),
    (amounts.Q_QUANTITY, amounts.amounts),
    (fields.Q_CLUSTER_NAME, fields.clusters),
    (node_groups.Q_GROUP_NAME, node_groups.node_groups),
    (node_groups.Q_GROUP_LIMITS, node_groups.node_group_limits),
    (closing.Q_STATE, closing.state),
    (hierarchy_annotations.Q_HIER_LEN, hierarchy_annotations.hierarchy),
    (tree.Q_PARENT_MISSING, tree.place),
)

LIMITS: tuple[tuple[Rule, Find], ...] = (
    (amounts.Q_GUAR_GT_DESERVED, amounts.order),
    (tree.Q_DEPTH, tree.depth),
    (capability.Q_CAP_GT_ANCESTOR, capability.capability),
    (sums.Q_SIB_GUAR, sums.sums),
)
"""Checks of limits between Queues; they run after the other checks."""


def validate(case: Case, queue: Queue, old: Queue | None) -> None:
    """Check a Queue in any state."""
    if old is None:
        run(case, CHECKS, queue)
    elif queue.metadata.deletion_timestamp or _judged(queue) == _judged(old):
        return
    else:
        if queue.metadata.name == keys.ROOT_QUEUE and case.settings.enable_root_queue_protection:
            run(case, ((amounts.Q_ROOT_FROZEN, partial(amounts.root_frozen, old=old)),), queue)
        is_frozen = bool(case.errors)
        judge_update(case, CHECKS, queue, old)
        if is_frozen or queue.spec == old.spec:
            return
    run(case, ((rule, partial(_judge_limit, find=find, old=old)) for rule, find in LIMITS), queue)


def _judge_limit(case: Case, queue: Queue, find: Find, old: Queue | None) -> None:
    """Report limits that are exceeded, unless they were exceeded by as much before."""
    found = list(find(case, queue, old))
    if not found:
        return
    before = find(case, old, None) if old is not None else ()
    standing = {each.limit: each.amount for each in before}
    for each in found:
        if each.limit not in standing or each.amount > standing[each.limit]:
            case.report(each.rule, each.path, each.message)


def _judged(queue: Queue) -> tuple[object, ...]:
    """All fields that rules read."""
    annotations = map(queue.metadata.annotation, keys.QUEUE_ANNOTATIONS)
    return queue.spec, queue.status.state, *annotations
