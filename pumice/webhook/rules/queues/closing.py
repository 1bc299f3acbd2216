"""The state of a queue, and its deletion.

A queue can be closed only if its children are closed. A queue can be deleted if no queue is below it, no pod runs in
it, and it is neither `root` nor `default`.
"""

from pumice.api import keys
from pumice.api.fields import FieldError
from pumice.api.messages import counted
from pumice.api.queues import STATES, Queue, QueueStatus
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.queues.tree import Tree, allocated_pods, first_ten
from pumice.webhook.rules.rule import Rule, stricter, warned

Q_STATE = Rule(
    "Q-STATE",
    "the state of a queue exists",
    "The scheduler and the controller act only on known states.",
    "status: {state: Opened}",
    reason="FieldValueNotSupported",
)
Q_CLOSE_CHILDREN = warned(
    "Q-CLOSE-CHILDREN",
    "a queue that closes has no queues below it",
    "They close with it, and open when it opens again.",
    "status: {state: Closed}, where queues are below this one",
)


_CLOSED = ("Closed", "Closing")


def state(case: Case, queue: Queue) -> None:
    """Check the state; a new queue may not have a state that only the controller sets."""
    known = STATES[:2] if case.creating else STATES
    found = queue.status.state
    if found and found not in known:
        hint = case.did_you_mean(found, known)
        message = f'queue state must be in ({", ".join(known)}), found "{found}"{hint}'
        case.report(Q_STATE, "status.state", message)
    elif found in _CLOSED:
        below = Tree(case.view, queue).children(queue.metadata.name)
        open_ = sorted(each.metadata.name for each in below if each.status.state not in _CLOSED)
        if open_:
            message = (
                f"{counted(len(open_), 'open queue')} below it will be closed too and accept no new PodGroups until it "
                f"opens again; running PodGroups continue: {first_ten(open_)}"
            )
            case.report(Q_CLOSE_CHILDREN, "status.state", message)


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
    "They would have no path to root.",
    "kubectl delete queue department (with team-a and team-b below it)",
    reason="FieldValueForbidden",
)
Q_DEL_PODS = Rule(
    "Q-DEL-PODS",
    "a queue whose pods hold resources is not deleted",
    "Their resources would count in no queue (setting `enable-queue-allocated-pods-check`).",
    "kubectl delete queue busy",
    reason="FieldValueForbidden",
)
Q_DEL_RUNNING = warned(
    "Q-DEL-RUNNING",
    "the pods of a queue that is deleted hold no resources",
    "Their resources would count in no queue. With the setting, Q-DEL-PODS refuses the deletion.",
    "kubectl delete queue busy (without the setting `enable-queue-allocated-pods-check`)",
    reason="FieldValueForbidden",
)
Q_DEL_GROUPS = stricter(
    "Q-DEL-GROUPS",
    "a queue that is deleted while it is open holds no PodGroups that are not completed",
    "Pending PodGroups wait until there is a queue of this name again, and pods that run are charged to `default`. Of a "
    "queue that is closed, or is closing, this is only a warning.",
    "kubectl delete queue busy",
    reason="FieldValueForbidden",
)


_KEPT = {
    keys.DEFAULT_QUEUE: (Q_DEL_DEFAULT, "Jobs that name no queue go there"),
    keys.ROOT_QUEUE: (Q_DEL_ROOT, "all other queues are below it"),
}


def validate_delete(case: Case, name: str, old: Queue | None) -> None:
    """Check the deletion of a Queue; if the review lacks the Queue, it is looked up."""
    if name in _KEPT:
        rule, why = _KEPT[name]
        case.report(rule, "", f"`{name}` queue can not be deleted: {why}")
        return
    # An empty status does not say whether there are pods.
    unknown = old is None or old.status == QueueStatus()
    queue = (case.queue(name) or old) if unknown else old
    if queue is None:
        case.report(Q_DEL_MISSING, "", f'queue.scheduling.volcano.sh "{name}" not found')
        return
    children = [each for each in case.view.children(name) if each.metadata.name != name]
    if children:
        names = first_ten(sorted(each.metadata.name for each in children))
        message = (
            f'queue "{name}" can not be deleted because it has child queues ({len(children)}): {names}; delete '
            "or move them first"
        )
        case.report(Q_DEL_CHILDREN, "", message)
    if pods := allocated_pods(queue):
        held = f"{counted(pods, 'pod')} with resources"
        if case.settings.enable_queue_allocated_pods_check:
            message = f'queue "{name}" cannot be deleted because it has allocated Pods: {held}'
            case.report(Q_DEL_PODS, "", message)
        else:
            case.report(Q_DEL_RUNNING, "", f'queue "{name}" still has {held}')
    # The counters of its status lag behind, so that they are not asked.
    if groups := case.view.pod_groups_in(name):
        _has_groups(case, queue, f'queue "{name}" still has {counted(groups, "PodGroup")}')


def _has_groups(case: Case, queue: Queue, found: str) -> None:
    if queue.status.state in _CLOSED:
        message = (
            f"{found}: those that wait do so until there is a queue of this name, and pods that run "
            f"are charged to {keys.DEFAULT_QUEUE}"
        )
        error = FieldError("", message, Q_DEL_GROUPS.code, Q_DEL_GROUPS.reason)
        case.add(error, "warn")
    else:
        message = f"{found}; close it, and wait until they are completed or delete them"
        case.report(Q_DEL_GROUPS, "", message)
