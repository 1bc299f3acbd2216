"""The state of a Queue, and what becomes of the queues below one that closes."""

from pumice.api.queues import STATES, Queue
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.queue_overlay import Tree
from pumice.webhook.rules.queue_wording import counted, listed
from pumice.webhook.rules.rule import Rule

__all__ = ["Q_STATE", "RULES", "state"]

Q_STATE = Rule(
    "Q-STATE",
    "the state of a queue exists",
    "Whatever asks whether the queue is open gets no answer.",
    "status: {state: Opened}",
    reason="FieldValueNotSupported",
)
Q_CLOSE_CHILDREN = Rule(
    "Q-CLOSE-CHILDREN",
    "a queue that closes has no queues below it",
    "They close with it, and open when it opens again.",
    "status: {state: Closed}, where queues are below this one",
    level="warn",
)

RULES = (Q_STATE, Q_CLOSE_CHILDREN)

_CLOSED = ("Closed", "Closing")


def state(case: Case, queue: Queue) -> None:
    """Check the state; the controller's own states are none that a new queue may have."""
    known = STATES[:2] if case.creating else STATES
    found = queue.status.state
    if found and found not in known:
        hint = case.did_you_mean(found, known)
        message = f'"{found}" is not a state{hint}, expected one of {", ".join(known)}'
        case.report(Q_STATE, "status.state", message)
    elif found in _CLOSED:
        _closing(case, queue)


def _closing(case: Case, queue: Queue) -> None:
    children = Tree(case.view, queue).children(queue.metadata.name)
    open_ = sorted(each.metadata.name for each in children if each.status.state not in _CLOSED)
    if open_:
        below = counted(len(open_), "open queue")
        message = (
            f"{below} below it will be closed too and take no new PodGroups until it opens again; "
            f"those that run go on: {listed(open_)}"
        )
        case.report(Q_CLOSE_CHILDREN, "status.state", message)
