"""The tree of queues as it would be: a view with the queue under judgement laid over it.

So a move is judged by where it leads, with all that is below the queue; nothing is counted twice; and
a copy in the view that is a moment behind does no harm. No walk looks at a queue twice, so a circle
that is already there ends it.
"""

from pumice.api import keys
from pumice.api.queues import Queue
from pumice.webhook.view import AdmissionView


class Tree:
    """The queues of a view, one of them as it would be.

    Attributes:
        queue: The queue under judgement.
    """

    __slots__ = ("_view", "queue")

    def __init__(self, view: AdmissionView, queue: Queue) -> None:
        self.queue = queue
        self._view = view

    @property
    def name(self) -> str:
        """Name of the queue under judgement; empty when the API server has yet to make one up."""
        return self.queue.metadata.name

    @property
    def parent(self) -> Queue | None:
        """The queue above it; None above root, and where the parent is not known or is itself."""
        above = _parent(self.queue)
        return None if above in ("", self.name) else self._view.queue(above)

    def climb(self) -> tuple[list[Queue], str]:
        """Queues above it, nearest first and root last, and the name at which the way up ends.

        Unless that is root, or nothing above root, it is a queue that is not known, or one that the way has passed.
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
        """Queues above it, nearest first and root last, as far as the way up is known."""
        return self.climb()[0]

    def way(self) -> list[str] | None:
        """Names of the queues between it and root, nearest first; None when no way leads to root."""
        above, end = self.climb()
        names = [each.metadata.name for each in above if each.metadata.name != keys.ROOT_QUEUE]
        return names if end in ("", keys.ROOT_QUEUE) else None

    def is_in_circle(self) -> bool:
        """Whether the way up comes back to where it has been."""
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
    """Name of the queue above, empty for root: whatever it says, nothing is above it."""
    if queue.metadata.name == keys.ROOT_QUEUE:
        return ""
    return queue.spec.parent or keys.ROOT_QUEUE
