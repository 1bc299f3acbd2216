"""The tree of queues: every queue has a way up to `root`, short and not in a circle.

The tree is the one of the view with the queue under judgement laid over it. No walk looks at a queue
twice, so a circle that is already there ends it.
"""

from pumice.api import keys
from pumice.api.fields import did_you_mean
from pumice.api.quantities import MILLI, parse_milli
from pumice.api.queues import Queue
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

__all__ = ["Q_PARENT_MISSING", "RULES", "allocated_pods", "place"]

Q_SELF_PARENT = Rule(
    "Q-SELF-PARENT",
    "a queue is not its own parent",
    "It would have no way up to root.",
    "metadata: {name: team}, spec: {parent: team}",
    compares=True,
)
Q_CYCLE = Rule(
    "Q-CYCLE",
    "a queue is not below itself",
    "Shares are divided from root downwards; a circle hangs in the air.",
    "spec: {parent: child}, where queue child has this queue above it",
    stricter=True,
)
Q_ROOT_PARENT = Rule(
    "Q-ROOT-PARENT",
    "the queue root has no parent",
    "There is nothing above root.",
    "metadata: {name: root}, spec: {parent: team}",
    reason="FieldValueForbidden",
    stricter=True,
)
Q_PARENT_MISSING = Rule(
    "Q-PARENT-MISSING",
    "every queue above a queue exists",
    "A queue without a way up to root has no share.",
    "spec: {parent: no-such-queue}",
    reason="FieldValueNotFound",
)
Q_PARENT_UNKNOWN = Rule(
    "Q-PARENT-UNKNOWN",
    "every queue above a queue is among the objects at hand",
    "Without a cluster, or its state in files, nobody can tell whether the parent exists.",
    "spec: {parent: department}",
    reason="FieldValueNotFound",
    level="warn",
)
Q_DEPTH = Rule(
    "Q-DEPTH",
    "queues are nested no deeper than `max-queue-depth`",
    "Every level costs each scheduling cycle, and nobody oversees so many.",
    "a queue whose parent is on the deepest level allowed",
)
Q_DEPTH_BELOW = Rule(
    "Q-DEPTH-BELOW",
    "a queue that moves takes no queue deeper than `max-queue-depth`",
    "The queues below it move with it.",
    "spec: {parent: deep}, where this queue has queues below it",
    stricter=True,
)
Q_PARENT_BUSY = Rule(
    "Q-PARENT-BUSY",
    "a queue that runs pods does not become a parent",
    "Its pods would be in no leaf queue any more.",
    "spec: {parent: queue-with-running-pods}",
)
Q_PARENT_CLOSED = Rule(
    "Q-PARENT-CLOSED",
    "the parent is open",
    "What a closed queue's children ask for is not given to them.",
    "spec: {parent: closed-queue}",
    level="warn",
)

RULES = (
    Q_SELF_PARENT,
    Q_CYCLE,
    Q_ROOT_PARENT,
    Q_PARENT_MISSING,
    Q_PARENT_UNKNOWN,
    Q_DEPTH,
    Q_DEPTH_BELOW,
    Q_PARENT_BUSY,
    Q_PARENT_CLOSED,
)

_PATH = "spec.parent"


def allocated_pods(queue: Queue) -> int:
    """Pods that hold resources of a queue, by its status; 0 when it says nothing readable."""
    try:
        return parse_milli((queue.status.allocated or {}).get("pods", 0)) // MILLI
    except ValueError:
        return 0


def place(case: Case, queue: Queue) -> None:
    """Check where a queue stands in the tree.

    Source: webhook specification, section 10.4; section 15, item 12.
    """
    name, parent = queue.metadata.name, queue.spec.parent
    if name == keys.ROOT_QUEUE:
        if parent:
            case.report(Q_ROOT_PARENT, _PATH, f'root has no parent, found "{parent}"')
    elif parent == name:
        case.report(Q_SELF_PARENT, _PATH, f'"{name}" cannot be its own parent')
    elif parent not in ("", keys.ROOT_QUEUE):
        above = _above(case, name, parent)
        if above is not None:
            _depth(case, queue, above)
        _parent(case, name, parent)


def _above(case: Case, name: str, parent: str) -> list[str] | None:
    """Queues above, nearest first; None when the way up does not lead to root."""
    above: list[str] = []
    here = parent
    while here not in ("", keys.ROOT_QUEUE):
        if here == name or here in above:
            shown = " → ".join([name, *above, here])
            case.report(Q_CYCLE, _PATH, f"queues are below each other in a circle: {shown}")
            return None
        queue = case.queue(here)
        if queue is None:
            _missing(case, here, above)
            return None
        above.append(here)
        here = queue.spec.parent
    return above


def _missing(case: Case, name: str, above: list[str]) -> None:
    where = f'"{above[-1]}" has a parent that does not exist: ' if above else ""
    if case.view.complete:
        hint = did_you_mean(name, [queue.metadata.name for queue in case.view.queues()])
        case.report(Q_PARENT_MISSING, _PATH, f'{where}there is no queue "{name}"{hint}')
    else:
        message = f'{where}queue "{name}" is not in the given files, so it was not looked at'
        case.report(Q_PARENT_UNKNOWN, _PATH, message)


def _depth(case: Case, queue: Queue, above: list[str]) -> None:
    limit, depth = case.settings.max_queue_depth, len(above) + 1
    way = "/".join([keys.ROOT_QUEUE, *reversed(above), queue.metadata.name])
    if depth > limit:
        message = f"would be on level {depth} ({way}), at most {limit} are allowed"
        case.report(Q_DEPTH, _PATH, message)
        return
    deepest = depth + _height(case, queue.metadata.name, limit)
    if deepest > limit:
        message = f"queues below it would be on level {deepest} (under {way}), at most {limit} are allowed"
        case.report(Q_DEPTH_BELOW, _PATH, message)


def _height(case: Case, name: str, limit: int) -> int:
    """Levels below a queue, looked at no further than matters."""
    level, height, seen = [name], 0, {name}
    while level and height <= limit:
        below = [
            child.metadata.name
            for each in level
            for child in case.view.children(each)
            if child.metadata.name not in seen
        ]
        seen.update(below)
        level = below
        height += bool(below)
    return height


def _parent(case: Case, name: str, parent: str) -> None:
    queue = case.view.queue(parent)
    if queue is None:
        return
    if not queue.is_open:
        message = f'queue "{parent}" is {queue.status.state}, so nothing below it gets anything new'
        case.report(Q_PARENT_CLOSED, _PATH, message)
    children = [each for each in case.view.children(parent) if each.metadata.name != name]
    if not children and (pods := allocated_pods(queue)):
        message = f'queue "{parent}" runs {pods} pods of its own, so it cannot become a parent'
        case.report(Q_PARENT_BUSY, _PATH, message)
