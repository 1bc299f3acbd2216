"""The position of a queue in the tree: it has a path to `root`, without a cycle and within the depth limit."""

from collections.abc import Iterable, Iterator, Sequence

from pumice.api import keys
from pumice.api.kinds import QUEUE
from pumice.api.messages import counted
from pumice.api.quantities import MILLI
from pumice.api.queues import Queue
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.queues.amounts import Excess, milli
from pumice.webhook.rules.rule import Rule, stricter, warned
from pumice.webhook.view import AdmissionView

Q_SELF_PARENT = Rule(
    "Q-SELF-PARENT",
    "a queue is not its own parent",
    "It would have no path to root.",
    "metadata: {name: team}, spec: {parent: team}",
    compares=True,
)
Q_CYCLE = stricter(
    "Q-CYCLE",
    "a queue is not below itself",
    "Shares are divided from root downwards; queues in a cycle have no path to root.",
    "spec: {parent: child}, where queue child has this queue above it",
)
Q_ROOT_PARENT = stricter(
    "Q-ROOT-PARENT",
    "the queue root has no parent",
    "There is nothing above root.",
    "metadata: {name: root}, spec: {parent: team}",
    reason="FieldValueForbidden",
)
Q_PARENT_MISSING = Rule(
    "Q-PARENT-MISSING",
    "every queue above a queue exists",
    "A queue without a path to root has no share.",
    "spec: {parent: no-such-queue}",
    reason="FieldValueNotFound",
)
Q_PARENT_UNKNOWN = warned(
    "Q-PARENT-UNKNOWN",
    "every queue above a queue is in the given files or the cluster",
    "Without a cluster, or its state in files, it is unknown whether the parent exists.",
    "spec: {parent: department}",
    reason="FieldValueNotFound",
)
Q_DEPTH = Rule(
    "Q-DEPTH",
    "queues are nested no deeper than `max-queue-depth`",
    "Each level makes every scheduling cycle slower.",
    "a queue whose parent is on the deepest level allowed",
)
Q_DEPTH_BELOW = stricter(
    "Q-DEPTH-BELOW",
    "a queue that moves takes no queue deeper than `max-queue-depth`",
    "The queues below it move with it.",
    "spec: {parent: deep}, where this queue has queues below it",
)
Q_PARENT_BUSY = Rule(
    "Q-PARENT-BUSY",
    "a queue that runs pods does not become a parent",
    "Its pods would no longer be in a leaf queue.",
    "spec: {parent: queue-with-running-pods}",
)
Q_PARENT_GROUPS = warned(
    "Q-PARENT-GROUPS",
    "a queue with pending PodGroups does not become a parent",
    "Pods are placed in leaf queues only.",
    "spec: {parent: queue-with-waiting-jobs}",
)
Q_PARENT_CLOSED = warned(
    "Q-PARENT-CLOSED",
    "the parent is open",
    "The children of a closed queue get no resources.",
    "spec: {parent: closed-queue}",
)

_PATH = "spec.parent"

LISTED = 10
"""Items that a message lists at most."""


def first_ten(items: Iterable[str]) -> str:
    """Items separated by commas, at most ten of them."""
    shown = list(items)
    return ", ".join(shown[:LISTED]) + (", …" if len(shown) > LISTED else "")


def chained(names: Sequence[str], arrow: str) -> str:
    """Names joined by an arrow; if there are more than ten, those in the middle are left out."""
    if len(names) <= LISTED:
        return arrow.join(names)
    half = LISTED // 2
    return arrow.join([*names[:half], "…", *names[-half:]])


class Tree:
    """The tree of queues after the change: the queues of a view, in which the checked queue replaces the stored one.

    So a move is checked at its target, with all queues below; nothing is counted twice, and an outdated copy in the
    view has no effect. Searches visit a queue once, so existing cycles end them.

    Attributes:
        queue: The checked queue.
        name: Its name; empty if the API server will generate it.
    """

    __slots__ = ("_view", "name", "queue")

    def __init__(self, view: AdmissionView, queue: Queue) -> None:
        self.queue = queue
        self.name = queue.metadata.name
        self._view = view

    @property
    def parent(self) -> Queue | None:
        """The queue above it; None above root, and if the parent is unknown or the queue itself."""
        above = _parent(self.queue)
        return None if above in ("", self.name) else self._view.queue(above)

    def climb(self) -> tuple[list[Queue], str]:
        """Queues above it, nearest first and root last, and the name at which the path ends.

        That name is root, or empty above root, or an unknown queue, or a queue that the path has visited.
        """
        found: list[Queue] = []
        seen = {self.name, ""}
        name = _parent(self.queue)
        while name not in seen:
            seen.add(name)
            queue = self._view.queue(name)
            if queue is None:
                break
            found.append(queue)
            name = _parent(queue)
        return found, name

    def way(self) -> list[str] | None:
        """Names of the queues between it and root, nearest first; None if there is no path to root."""
        above, end = self.climb()
        names = [each.metadata.name for each in above if each.metadata.name != keys.ROOT_QUEUE]
        return names if end in ("", keys.ROOT_QUEUE) else None

    def is_in_circle(self) -> bool:
        """True if the path to root has a cycle."""
        above, end = self.climb()
        return end != "" and end in (self.name, *(each.metadata.name for each in above))

    def children(self, name: str) -> list[Queue]:
        """The children of a queue; queues without a parent are children of root."""
        if not name:
            return []
        known = list(self._view.children(name))
        if name == keys.ROOT_QUEUE:
            known += self._view.children("")
        hidden = (self.name, name, keys.ROOT_QUEUE)
        found = [each for each in known if each.metadata.name not in hidden]
        if name != self.name and _parent(self.queue) == name:
            found.append(self.queue)
        return found

    def height(self) -> int:
        """Number of levels below it."""
        level, height, seen = [self.name], -1, {self.name}
        while level:
            names = {child.metadata.name for each in level for child in self.children(each)}
            level, height = sorted(names - seen), height + 1
            seen |= names
        return height


def _parent(queue: Queue) -> str:
    """Name of the queue above; always empty for root."""
    if queue.metadata.name == keys.ROOT_QUEUE:
        return ""
    return queue.spec.parent or keys.ROOT_QUEUE


def allocated_pods(queue: Queue) -> int:
    """Number of pods that hold resources of a queue, from its status; 0 if the status has no valid number."""
    return (milli((queue.status.allocated or {}).get("pods")) or 0) // MILLI


def place(case: Case, queue: Queue) -> None:
    """Check the position of a queue in the tree."""
    name, parent = queue.metadata.name, queue.spec.parent
    if name == keys.ROOT_QUEUE:
        if parent:
            case.report(Q_ROOT_PARENT, _PATH, f'root must not have a parent, found "{parent}"')
    elif name and parent == name:
        case.report(Q_SELF_PARENT, _PATH, f'queue "{name}" cannot use itself as parent')
    elif parent not in ("", keys.ROOT_QUEUE):
        _way_up(case, queue)
        _check_parent(case, name, parent)


def _way_up(case: Case, queue: Queue) -> None:
    queues, end = Tree(case.view, queue).climb()
    if end in ("", keys.ROOT_QUEUE):
        return
    name, above = queue.metadata.name, [each.metadata.name for each in queues]
    if end not in (name, *above):
        _missing(case, end, above)
        return
    circle = chained([name, *above, end], " → ")
    message = f"queues are below each other in a cycle: {circle}"
    parent = queue.spec.parent
    if not case.report(Q_CYCLE, _PATH, message) and not _leads_up_as_stored(case, parent):
        limit = case.settings.max_queue_depth
        message = (
            f"exceeds the maximum allowed depth of {limit}: "
            f'no path of at most {limit} levels leads from "{parent}" to root'
        )
        case.report(Q_DEPTH, _PATH, message)


def _leads_up_as_stored(case: Case, name: str) -> bool:
    """True if the stored queue has a path to root within the limit; Volcano checks only this."""
    stored = case.view.queue(name)
    way = Tree(case.view, stored).way() if stored is not None else None
    return way is not None and len(way) + 1 < case.settings.max_queue_depth


def _missing(case: Case, name: str, above: list[str]) -> None:
    case.missing_queues.append(name)
    if case.view.knows(QUEUE):
        hint = case.did_you_mean(name, [queue.metadata.name for queue in case.view.queues()])
        whose = f' of "{above[-1]}"' if above else ""
        message = f'failed to get parent queue{whose}: parent queue "{name}" not found{hint}'
        case.report(Q_PARENT_MISSING, _PATH, message)
    else:
        where = f'"{above[-1]}" has a parent that is not known: ' if above else ""
        message = f'{where}queue "{name}" is not in the given files, so it was not checked'
        case.report(Q_PARENT_UNKNOWN, _PATH, message)


def depth(case: Case, queue: Queue, old: Queue | None) -> Iterator[Excess]:
    """Find queues beyond the depth limit: this queue and those below it."""
    if old is not None and queue.spec.parent == old.spec.parent:
        return
    tree = Tree(case.view, queue)
    above = tree.way()
    if above is None or queue.metadata.name == keys.ROOT_QUEUE:
        return
    limit, own = case.settings.max_queue_depth, len(above) + 1
    deepest = own + tree.height()
    if deepest <= limit:
        return
    way = chained([keys.ROOT_QUEUE, *reversed(above), queue.metadata.name], "/")
    if own > limit:
        message = f"level {own} ({way}) exceeds the maximum allowed depth of {limit}"
        rule = Q_DEPTH
    elif old is not None and Tree(case.view, old).is_in_circle():
        return  # the queue leaves a cycle, and all queues of the cycle move with it
    else:
        message = f"level {deepest} of the queues below {way} exceeds the maximum allowed depth of {limit}"
        rule = Q_DEPTH_BELOW
    yield Excess((), deepest - limit, rule, _PATH, message)


def _check_parent(case: Case, name: str, parent: str) -> None:
    queue = case.view.queue(parent)
    if queue is None:
        return
    if not queue.is_open:
        message = (
            f'queue "{parent}" is {queue.status.state}, so the queues below it get no new resources'
        )
        case.report(Q_PARENT_CLOSED, _PATH, message)
    if any(each.metadata.name != name for each in case.view.children(parent)):
        return
    if pods := allocated_pods(queue):
        running = counted(pods, "pod")
        message = (
            f'queue "{parent}" cannot be the parent queue of queue "{name}" because it has allocated Pods: '
            f"{running}"
        )
        case.report(Q_PARENT_BUSY, _PATH, message)
    elif groups := case.view.pod_groups_in(parent):
        waiting = counted(groups, "PodGroup")
        message = f'queue "{parent}" has {waiting} of its own, which will no longer be placed'
        case.report(Q_PARENT_GROUPS, _PATH, message)
