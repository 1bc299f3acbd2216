"""Queues: which rules apply when, and the few that fit nowhere else."""

from pumice.api import keys
from pumice.api.fields import did_you_mean
from pumice.api.quantities import parse_milli
from pumice.api.queues import STATES, Queue, QueueStatus
from pumice.webhook.rules import queue_amounts, queue_hierarchy, queue_tree, ratchet
from pumice.webhook.rules.case import Case, Check, run
from pumice.webhook.rules.differences import shown
from pumice.webhook.rules.rule import Rule

__all__ = ["CHECKS", "RULES", "validate_create", "validate_delete", "validate_update"]

Q_STATE = Rule(
    "Q-STATE",
    "the state of a queue exists",
    "Whatever asks whether the queue is open gets no answer.",
    "status: {state: Opened}",
    reason="FieldValueNotSupported",
)
Q_ROOT_FROZEN = Rule(
    "Q-ROOT-FROZEN",
    "the shares of the queue root do not change",
    "root stands for the whole cluster (setting `enable-root-queue-protection`).",
    "metadata: {name: root}, spec: {capability: {cpu: 10}}",
    reason="FieldValueForbidden",
)
Q_DEL_DEFAULT = Rule(
    "Q-DEL-DEFAULT",
    "the queue default is not deleted",
    "Jobs that name no queue go there.",
    "kubectl delete queue default",
    reason="FieldValueForbidden",
)
Q_DEL_ROOT = Rule(
    "Q-DEL-ROOT",
    "the queue root is not deleted",
    "All other queues are below it.",
    "kubectl delete queue root",
    reason="FieldValueForbidden",
)
Q_DEL_MISSING = Rule(
    "Q-DEL-MISSING",
    "a queue that is deleted exists",
    "There is nothing to delete.",
    "kubectl delete queue no-such-queue",
    reason="FieldValueNotFound",
)
Q_DEL_CHILDREN = Rule(
    "Q-DEL-CHILDREN",
    "a queue with queues below it is not deleted",
    "They would have no way up to root.",
    "kubectl delete queue department (with team-a and team-b below it)",
    reason="FieldValueForbidden",
)
Q_DEL_PODS = Rule(
    "Q-DEL-PODS",
    "a queue whose pods hold resources is not deleted",
    "Nobody would pay for them (setting `enable-queue-allocated-pods-check`).",
    "kubectl delete queue busy",
    reason="FieldValueForbidden",
)
Q_DEL_GROUPS = Rule(
    "Q-DEL-GROUPS",
    "a queue that is deleted holds no PodGroups",
    "Those that wait will wait for ever.",
    "kubectl delete queue busy",
    level="warn",
)

RULES = (
    Q_STATE,
    Q_ROOT_FROZEN,
    Q_DEL_DEFAULT,
    Q_DEL_ROOT,
    Q_DEL_MISSING,
    Q_DEL_CHILDREN,
    Q_DEL_PODS,
    Q_DEL_GROUPS,
)


def _state(case: Case, queue: Queue) -> None:
    """Check the state; the controller's own states are none that a new queue may have."""
    known = STATES[:2] if case.creating else STATES
    state = queue.status.state
    if state and state not in known:
        hint = did_you_mean(state, known)
        message = f'"{state}" is not a state{hint}, expected one of {", ".join(known)}'
        case.report(Q_STATE, "status.state", message)


CHECKS: tuple[Check[Queue], ...] = (
    (queue_amounts.Q_GUAR_GT_DESERVED, queue_amounts.amounts),
    (Q_STATE, _state),
    (queue_hierarchy.Q_HIER_LEN, queue_hierarchy.hierarchy),
    (queue_tree.Q_PARENT_MISSING, queue_tree.place),
)
"""What is judged about a Queue, in the order in which problems are told."""


def validate_create(case: Case, queue: Queue) -> None:
    """Judge a new Queue."""
    run(case, CHECKS, queue)


def validate_update(case: Case, queue: Queue, old: Queue) -> None:
    """Judge a change of a Queue, whatever state it is in."""
    if queue.metadata.deletion_timestamp:
        return
    if _judged(queue) == _judged(old):
        return
    if queue.metadata.name == keys.ROOT_QUEUE and case.settings.enable_root_queue_protection:
        run(case, ((Q_ROOT_FROZEN, lambda case, new: _root_frozen(case, new, old)),), queue)
    ratchet.judge_update(
        case, lambda new: run(new, CHECKS, queue), lambda stored: run(stored, CHECKS, old)
    )


def _judged(queue: Queue) -> tuple[object, ...]:
    """All that rules look at."""
    annotation = queue.metadata.annotation
    return (
        queue.spec,
        queue.status.state,
        annotation(keys.HIERARCHY),
        annotation(keys.HIERARCHY_WEIGHTS),
    )


def _root_frozen(case: Case, queue: Queue, old: Queue) -> None:
    for path, new, before in (
        ("spec.capability", queue.spec.capability, old.spec.capability),
        ("spec.deserved", queue.spec.deserved, old.spec.deserved),
        (
            "spec.guarantee.resource",
            queue_amounts.guaranteed(queue),
            queue_amounts.guaranteed(old),
        ),
    ):
        if _exact(new) != _exact(before):
            found = f"{shown(before or None)} → {shown(new or None)}"
            message = f"of the queue root must not change, found {found}"
            case.report(Q_ROOT_FROZEN, path, message)


def _exact(amounts: queue_amounts.Amounts | None) -> dict[str, object]:
    return {name: _milli(value) for name, value in (amounts or {}).items()}


def _milli(value: str | int) -> object:
    try:
        return parse_milli(value)
    except ValueError:
        return value


def validate_delete(case: Case, name: str, old: Queue | None) -> None:
    """Judge the end of a Queue.

    Args:
        case: Where problems go.
        name: Name of the queue.
        old: The queue as the API server has it; looked up when the review does not carry it.

    Source: webhook specification, section 10.6.
    """
    if name == keys.DEFAULT_QUEUE:
        message = "the queue default must stay: Jobs that name no queue go there"
        case.report(Q_DEL_DEFAULT, "", message)
        return
    if name == keys.ROOT_QUEUE:
        case.report(Q_DEL_ROOT, "", "the queue root must stay: all other queues are below it")
        return
    queue = old
    if queue is None or queue.status == QueueStatus():  # which tells of no pods, nor of none
        queue = case.queue(name) or old
    if queue is None:
        case.report(Q_DEL_MISSING, "", f'there is no queue "{name}"')
        return
    if children := case.view.children(name):
        shown = ", ".join(sorted(each.metadata.name for each in children))
        message = f'queue "{name}" has {len(children)} queues below it, delete or move them first: {shown}'
        case.report(Q_DEL_CHILDREN, "", message)
    pods = queue_tree.allocated_pods(queue)
    if pods and case.settings.enable_queue_allocated_pods_check:
        case.report(Q_DEL_PODS, "", f'{pods} pods of queue "{name}" still hold resources')
    status = queue.status
    if groups := status.pending + status.running + status.inqueue + status.unknown:
        message = f'queue "{name}" still has {groups} PodGroups; those that wait will not be placed'
        case.report(Q_DEL_GROUPS, "", message)
