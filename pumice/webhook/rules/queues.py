"""Queues: which rules apply when."""

from collections.abc import Iterator
from functools import partial

from pumice.api import keys
from pumice.api.queues import Queue
from pumice.webhook.rules import (
    queue_amounts,
    queue_capability,
    queue_clusters,
    queue_fields,
    queue_hierarchy,
    queue_node_group_limits,
    queue_node_groups,
    queue_root,
    queue_states,
    queue_sums,
    queue_tree,
    ratchet,
)
from pumice.webhook.rules.case import Case, Check, run
from pumice.webhook.rules.queue_deletion import validate_delete
from pumice.webhook.rules.queue_excess import Find, judge
from pumice.webhook.rules.rule import Rule

__all__ = ["CHECKS", "LIMITS", "validate_create", "validate_delete", "validate_update"]

CHECKS: tuple[Check[Queue], ...] = (
    (queue_fields.Q_WEIGHT, queue_fields.fields),
    (queue_amounts.Q_QUANTITY, queue_amounts.amounts),
    (queue_clusters.Q_CLUSTER_NAME, queue_clusters.clusters),
    (queue_node_groups.Q_GROUP_NAME, queue_node_groups.node_groups),
    (queue_node_group_limits.Q_GROUP_LIMITS, queue_node_group_limits.node_group_limits),
    (queue_states.Q_STATE, queue_states.state),
    (queue_hierarchy.Q_HIER_LEN, queue_hierarchy.hierarchy),
    (queue_tree.Q_PARENT_MISSING, queue_tree.place),
)
"""What is judged about a Queue, in the order in which problems are told."""

LIMITS: tuple[tuple[Rule, Find], ...] = (
    (queue_amounts.Q_GUAR_GT_DESERVED, queue_amounts.order),
    (queue_tree.Q_DEPTH, queue_tree.depth),
    (queue_capability.Q_CAP_GT_ANCESTOR, queue_capability.capability),
    (queue_sums.Q_SIB_GUAR, queue_sums.sums),
)
"""What a Queue may have no more of than something else; the rest is told first."""


def validate_create(case: Case, queue: Queue) -> None:
    """Judge a new Queue."""
    run(case, CHECKS, queue)
    run(case, _limits(None), queue)


def validate_update(case: Case, queue: Queue, old: Queue) -> None:
    """Judge a change of a Queue, whatever state it is in."""
    if queue.metadata.deletion_timestamp:
        return
    if _judged(queue) == _judged(old):
        return
    if queue.metadata.name == keys.ROOT_QUEUE and case.settings.enable_root_queue_protection:
        run(case, ((queue_root.Q_ROOT_FROZEN, partial(queue_root.root_frozen, old=old)),), queue)
    is_frozen = bool(case.errors)
    ratchet.judge_update(case, CHECKS, queue, old)
    if not is_frozen and _limited(queue) != _limited(old):
        run(case, _limits(old), queue)


def _limits(old: Queue | None) -> Iterator[Check[Queue]]:
    """The limits as checks, for an update of a stored queue or for a new one."""
    for rule, find in LIMITS:
        yield rule, partial(judge, find=find, old=old)


def _judged(queue: Queue) -> tuple[object, ...]:
    """All that rules look at."""
    annotation = queue.metadata.annotation
    return (
        queue.spec,
        queue.status.state,
        annotation(keys.HIERARCHY),
        annotation(keys.HIERARCHY_WEIGHTS),
        annotation(keys.NODE_GROUP_LIMITS),
    )


def _limited(queue: Queue) -> tuple[object, ...]:
    """All that limits are about."""
    spec = queue.spec
    return spec.parent, spec.capability, spec.deserved, spec.guarantee
