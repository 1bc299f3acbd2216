"""The order of queues while pods are placed: a tournament, in which a decision makes a queue play again, and no other one.

Queues are the leaves of a binary tree, in which each node has the first one of the queues below it. It is asked for the first of
all after every turn of a gang, so that a turn must not cost in proportion to the number of queues: what a queue deserves in a
tree of queues changes the place of all those beside it with every pod.

Nodes follow the groups of queues. A decision about a pod of one queue changes the keys of whole groups, but not the order within a group that
the queue is not in. So only nodes between the queue and the top compare again, and keys are compared as they are then:
one comparison for each doubling of the number of queues.
"""

from collections.abc import Callable, Sequence

from pumice.api.queues import Queue
from pumice.scheduler.points import SortKey


class _TreeNode:
    """A node of the tree.

    Attributes:
        parent: The node above; None at the top.
        first: The first of the queues that wait below it; None if none does.
    """

    __slots__ = ("first", "parent")

    def __init__(self) -> None:
        self.parent: _Match | None = None
        self.first: _Leaf | None = None


class _Match(_TreeNode):
    """A node above two others."""

    __slots__ = ("left", "right")

    def __init__(self, left: _TreeNode, right: _TreeNode) -> None:
        super().__init__()
        self.left, self.right = left, right
        left.parent = right.parent = self


class _Leaf(_TreeNode):
    """A queue.

    Attributes:
        queue: The queue.
        outermost: The outermost group that it is in; set once it is in the tree.
        key: Its key when it was last compared.
        taken: The moment of that; -1 if it has none.
    """

    __slots__ = ("key", "outermost", "queue", "taken")

    def __init__(self, queue: Queue) -> None:
        super().__init__()
        self.queue = queue
        self.outermost: _QueueGroup
        self.key: SortKey = None
        self.taken = -1


class _QueueGroup:
    """A group of queues.

    Attributes:
        groups: Groups in it, by name.
        nodes: Its queues and the tops of the groups in it.
        top: The node above all of these; None before it is known.
        changed: The moment of the last decision about a queue in it.
    """

    __slots__ = ("changed", "groups", "nodes", "top")

    def __init__(self) -> None:
        self.groups: dict[str, _QueueGroup] = {}
        self.nodes: list[_TreeNode] = []
        self.top: _TreeNode | None = None
        self.changed = 0


class QueueTournament:
    """Queues that wait for their turn; the one with the smallest key, as it is then, comes first.

    The interface is that of `PriorityQueue`. Keys end with a name, so there are no ties, and a queue that waits alone needs none.
    """

    def __init__(
        self,
        key: Callable[[Queue], SortKey],
        decided: Sequence[str],
        path: Callable[[str], Sequence[str]] | None = None,
        epochs: Sequence[Callable[[], int]] = (),
    ) -> None:
        """No queues.

        Args:
            key: Place of a queue.
            decided: Names of queues, one more with each decision about a pod of a queue; grows at the end.
            path: Names of the groups that a queue is in, from the outermost inwards; None if there are none.
            epochs: Numbers that change when any key may have changed otherwise.
        """
        self._key = key
        self._decided = decided
        self._read = len(decided)
        self._path = path or _no_groups
        self._epochs = epochs
        self._seen: list[int] = []
        self._leaves: dict[str, _Leaf] = {}
        self._new: list[_Leaf] = []
        self._root = _QueueGroup()
        self._top: _TreeNode | None = None
        self._moved: dict[str, None] = {}
        self._moment = 1
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    def push(self, queue: Queue) -> None:
        """Add a queue that does not wait."""
        name = queue.metadata.name
        leaf = self._leaves.get(name)
        if leaf is None:
            leaf = self._leaves[name] = _Leaf(queue)
            self._new.append(leaf)
            self._top = None
        leaf.queue, leaf.first = queue, leaf
        self._waiting += 1
        self._moved[name] = None

    def first(self) -> Queue:
        """The first queue, which goes on waiting.

        Raises:
            IndexError: No queue waits.
        """
        top: _TreeNode | None
        if len(self._leaves) == 1:
            (top,) = self._leaves.values()
        else:
            if self._top is None or self._moved or self._epochs or self._read != len(self._decided):
                self._settle()
            top = self._top
        leaf = top.first if top is not None else None
        if leaf is None:
            raise IndexError("no queue waits")
        return leaf.queue

    def pop(self) -> Queue:
        """Take out the first queue.

        Raises:
            IndexError: No queue waits.
        """
        queue = self.first()
        self._leaves[queue.metadata.name].first = None
        self._waiting -= 1
        self._moved[queue.metadata.name] = None
        return queue

    # -- the tree ----------------------------------------------------------------------------

    def _settle(self) -> None:
        """Let the queues play about which anything was decided, or that came or went."""
        if self._epochs and self._seen != (epochs := [each() for each in self._epochs]):
            self._seen, self._top = epochs, None
        if self._top is None:
            self._build()
            return
        if not self._moved and self._read == len(self._decided):
            return
        moved, self._moved = self._moved, {}
        moved.update(dict.fromkeys(self._decided[self._read :]))
        self._read = len(self._decided)
        self._moment += 1
        starts = [start for name in moved if (start := self._changed(name)) is not None]
        for start in starts:
            self._play(start)

    def _build(self) -> None:
        """Make all nodes, and let all queues play."""
        self._moved.clear()
        self._read = len(self._decided)
        self._moment += 1
        for leaf in self._leaves.values():
            leaf.taken = -1
        for leaf in self._new:
            self._enter(leaf)
        self._new.clear()
        groups = [self._root]
        for group in groups:  # grows: groups before those in them
            groups.extend(group.groups.values())
        for group in reversed(groups):
            tops = [inner.top for inner in group.groups.values() if inner.top is not None]
            group.top = self._joined([*group.nodes, *tops])
        self._top = self._root.top

    def _enter(self, leaf: _Leaf) -> None:
        """Put a queue that was never there into its groups; a queue without groups is one by itself."""
        group, outermost = self._root, None
        for name in self._path(leaf.queue.metadata.name):
            group = group.groups.get(name) or group.groups.setdefault(name, _QueueGroup())
            outermost = outermost or group
        leaf.outermost = outermost or _QueueGroup()
        group.nodes.append(leaf)

    def _joined(self, nodes: list[_TreeNode]) -> _TreeNode | None:
        """The node above all of these, by halves."""
        while len(nodes) > 1:
            halves = zip(nodes[::2], nodes[1::2], strict=False)
            pairs = [_Match(left, right) for left, right in halves]
            for pair in pairs:
                self._compare(pair)
            nodes = [*pairs, *nodes[2 * len(pairs) :]]
        return nodes[0] if nodes else None

    def _changed(self, name: str) -> _TreeNode | None:
        """Note that a decision has changed keys of a queue's groups; the node from which on it plays again."""
        leaf = self._leaves.get(name)
        if leaf is not None:
            leaf.outermost.changed = self._moment
            return leaf
        group, found = self._root, None
        for each in self._path(name):  # it does not wait itself, but others in its groups may
            inner = group.groups.get(each)
            if inner is None:
                break
            inner.changed = self._moment
            group, found = inner, inner.top
        return found

    def _play(self, node: _TreeNode) -> None:
        """Compare on all nodes above a node."""
        above = node.parent
        while above is not None:
            self._compare(above)
            above = above.parent

    def _compare(self, pair: _Match) -> None:
        left, right = pair.left.first, pair.right.first
        if left is None or right is None:
            pair.first = left or right
            return
        for leaf in (left, right):
            if leaf.taken < leaf.outermost.changed:  # until then its key stays as it is
                leaf.key = self._key(leaf.queue)
                leaf.taken = self._moment
        pair.first = left if left.key < right.key else right


def _no_groups(_: str) -> Sequence[str]:
    return ()
