"""The tree of queues after the change: a view in which the checked queue replaces the stored one.

So a move is checked at its target, with all queues below; nothing is counted twice, and an outdated copy in the view
has no effect. Searches visit a queue once, so existing cycles end them.
"""

from pumice.api import keys
from pumice.api.queues import Queue
from pumice.webhook.view import AdmissionView


class Tree:
    """The queues of a view, with one queue after its change.

    Attributes:
        queue: The checked queue.
    """

    __slots__ = ("_view", "queue")

    def __init__(self, view: AdmissionView, queue: Queue) -> None:
        self.queue = queue
        self._view = view

    @property
    def name(self) -> str:
        """Name of the checked queue; empty if the API server will generate it."""
        return self.queue.metadata.name

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

    def above(self) -> list[Queue]:
        """Queues above it, nearest first and root last, as far as they are known."""
        return self.climb()[0]

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


def _parent(queue: Queue) -> str:
    """Name of the queue above; always empty for root."""
    if queue.metadata.name == keys.ROOT_QUEUE:
        return ""
    return queue.spec.parent or keys.ROOT_QUEUE
