"""Queues as the controller keeps them: a new one is opened.

A Queue is born without a state, because a status cannot be created with an object. Until somebody writes
one it counts as open, but other tools wait for the word.
"""

from pumice.api.meta import Raw
from pumice.api.queues import Queue

__all__ = ["initial_status"]


def initial_status(queue: Queue) -> Raw | None:
    """The merge patch that opens a new Queue; None when it has a state, or is being deleted."""
    meta = queue.metadata
    if queue.status.state or meta.deletion_timestamp is not None:
        return None
    # Somebody may close it at the same moment, and their word must stand.
    guard = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    return {"metadata": guard, "status": {"state": "Open"}}
