"""The queues above a queue, and the one of them that closes it."""

from collections.abc import Callable, Iterable

from pumice.api import keys
from pumice.api.queues import Queue

__all__ = ["CLOSED_STATES", "climb", "closed_by_user", "closing_one", "is_marked", "parent_of"]

CLOSED_STATES = ("Closed", "Closing")


def parent_of(queue: Queue) -> str:
    """Name of the queue above it; empty for `root`."""
    return "" if queue.metadata.name == keys.ROOT_QUEUE else queue.spec.parent or keys.ROOT_QUEUE


def is_marked(queue: Queue) -> bool:
    """True for a queue that is closed only because of a queue above it."""
    return queue.metadata.annotation(keys.CLOSED_BY_PARENT) == "true"


def closed_by_user(queue: Queue) -> bool:
    """True for a queue that is closed by its user."""
    return queue.status.state in CLOSED_STATES and not is_marked(queue)


def climb(queue: Queue, get: Callable[[str], Queue | None]) -> tuple[tuple[Queue, ...], str]:
    """The queues above a queue, nearest first, and the name of the one that does not exist.

    In a cycle the search stops at the first repeated queue. Queue `root` may be missing: nothing depends on it.

    Args:
        queue: The queue.
        get: Looks a queue up.
    """
    found: list[Queue] = []
    seen = {queue.metadata.name}
    while (name := parent_of(queue)) and name not in seen:
        seen.add(name)
        above = get(name)
        if above is None:
            return tuple(found), "" if name == keys.ROOT_QUEUE else name
        found.append(above)
        queue = above
    return tuple(found), ""


def closing_one(above: Iterable[Queue]) -> Queue | None:
    """The nearest queue above that its user has closed; it closes all queues below."""
    return next(filter(closed_by_user, above), None)
