"""The queue controller: the state of a queue, the state of the queues below it, and its counts of PodGroups.

Whether a queue is closed follows from the whole tree and not from the order of events. A queue is closed by its user, or by
a queue above it that its user closed; the annotation `volcano.sh/closed-by-parent` tells the two apart. So a restart loses
nothing, and a queue that its user closed stays closed when the queues above it open.
"""

from pumice.controller.queues.counts import GroupCounts
from pumice.controller.queues.plan import (
    COUNTS,
    ObservedQueue,
    climb,
    own_status,
    parent_of,
    plan_queue,
)

__all__ = [
    "COUNTS",
    "GroupCounts",
    "ObservedQueue",
    "climb",
    "own_status",
    "parent_of",
    "plan_queue",
]
