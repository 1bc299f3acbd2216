"""A reservation: one gang, and the nodes that only it may use until it runs.

The state keeps it between sessions, and a condition of the gang's PodGroup keeps it between processes:

    type: Reserved, status: "True", reason: NodesReserved, message: "since 2026-01-02T03:04:05Z: n1, n2"
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from pumice.api.messages import listed
from pumice.api.meta import format_time, parse_time
from pumice.api.podgroups import PodGroupCondition
from pumice.scheduler.model.axis import SCORED_CPU, SCORED_MEMORY, Bools, Ints
from pumice.scheduler.model.free_room import least, places
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo

WAITING = frozenset({SchedulingStatus.PENDING, SchedulingStatus.PIPELINED})
"""Pods for which nodes are reserved; a pipelined pod is included, because terminating pods still hold its place."""

MAX_NODES = 500
"""Maximum number of reserved nodes; the condition names all of them."""

CONDITION = "Reserved"
"""Type of the condition."""

_NODES = "NodesReserved"

ENDED = {
    "Ready": "the gang has its nodes",
    "TimedOut": "the gang has not become ready in time; other gangs may use the nodes",
    "Refused": "its queue or a quota has no room for the gang; other gangs may use the nodes",
    "BehindInQueue": "another gang is ahead of it in its queue, which takes gangs in order; other gangs may use the nodes",
    "TooLarge": "the nodes could not hold the gang any more if they were empty; other gangs may use them",
    "Released": "no nodes are reserved for the gang any more",
}
"""Why a reservation has ended, with the message of its condition."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes that only one gang may use.

    Attributes:
        gang: Key of the gang.
        uid: uid of its PodGroup.
        since: When it was chosen, UNIX seconds.
        nodes: Names of the nodes, in the order in which they were reserved.
        is_complete: Whether the pods of its minimum have been there. A gang gets its pods after it has entered its queue.
    """

    gang: str
    uid: str
    since: float
    nodes: tuple[str, ...] = field(default=())
    is_complete: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, job: JobInfo, now: float) -> "Reservation":
        """A reservation for a gang, without nodes."""
        uid = job.group.metadata.uid if job.group is not None else ""
        return cls(job.key, uid, now)

    def is_for(self, job: JobInfo | None) -> bool:
        """True if it is for a gang whose PodGroup still has the same uid."""
        return (
            job is not None
            and job.group is not None
            and (job.key, job.group.metadata.uid) == (self.gang, self.uid)
        )


def reserved_condition(
    conditions: Sequence[PodGroupCondition],
    reservation: Reservation | None,
    why_ended: str,
    *,
    cycle: str,
    now: float,
) -> Sequence[PodGroupCondition]:
    """Conditions of a PodGroup with what is reserved for its gang at a moment, UNIX seconds, in a session; the same object if nothing changes.

    Why the last reservation has ended, a key of `ENDED`, matters if the conditions so far say that nodes are reserved.
    """
    before = None
    for each in conditions:
        if each.type == CONDITION:
            before = each
    if reservation is not None and reservation.nodes:
        message = f"since {format_time(reservation.since)}: {listed(reservation.nodes)}"
        after = PodGroupCondition(type=CONDITION, status="True", reason=_NODES, message=message)
    elif why_ended == "TimedOut" or (before is not None and before.status == "True"):
        after = PodGroupCondition(
            type=CONDITION, status="False", reason=why_ended, message=ENDED[why_ended]
        )
    else:
        return conditions
    if before is not None and (before.status, before.reason, before.message) == (
        after.status,
        after.reason,
        after.message,
    ):
        return conditions
    stamped = msgspec.structs.replace(
        after, transition_id=cycle, last_transition_time=format_time(now)
    )
    return [*(each for each in conditions if each.type != CONDITION), stamped]


def restored(job: JobInfo, nodes: Collection[str]) -> Reservation | None:
    """The reservation in the condition of a gang's PodGroup, without nodes that do not exist."""
    for condition in job.status.conditions or ():
        if (condition.type, condition.status, condition.reason) != (CONDITION, "True", _NODES):
            continue
        start, _, names = condition.message.partition("Z: ")
        since = parse_time(f"{start.removeprefix('since ')}Z")
        listed = {name.strip(): None for name in names.split(",", MAX_NODES)[:MAX_NODES]}
        there = set(nodes)
        known = tuple(name for name in listed if name in there)
        if since is not None and known:
            return replace(Reservation.of(job, since), nodes=known)
    return None


def timed_out(job: JobInfo) -> str | None:
    """When a gang stopped being the target because its time was over, from its PodGroup; None if it was not."""
    for each in job.status.conditions or ():
        if (each.type, each.status, each.reason) == (CONDITION, "False", "TimedOut"):
            return each.last_transition_time or ""
    return None


def lack(
    job: JobInfo, room: Ints, nodes: Bools, usable: Callable[[TaskInfo], Bools]
) -> list[TaskInfo] | None:
    """What nodes lack to hold the pods of a gang that do not run yet, or its `minResources` if there are none; None for nothing.

    The pods are one of each shape of which too few fit; none if only all nodes together have too little of some resource.
    `room` is what all nodes have for it, by row and column; a pod may use the `usable` nodes, which could hold it if nothing else were there.
    """
    firsts, counts = waiting_shapes(job)
    short = room[nodes].sum(axis=0) < wanted(job, counts)
    short[[SCORED_CPU, SCORED_MEMORY]] = False
    tasks = [
        task
        for shape, task in firsts.items()
        if places([least((shape,))], room[nodes & usable(task)]).sum() < counts[shape]
    ]
    return tasks if tasks or short.any() else None


def waiting_shapes(job: JobInfo) -> tuple[dict[PodShape, TaskInfo], Counter[PodShape]]:
    """The first pod that does not run yet of each shape, and how many there are."""
    firsts: dict[PodShape, TaskInfo] = {}
    counts: Counter[PodShape] = Counter()
    for task in job.tasks.values():
        if task.status in WAITING:
            firsts.setdefault(task.shape, task)
            counts[task.shape] += 1
    return firsts, counts


def wanted(job: JobInfo, counts: Mapping[PodShape, int]) -> Ints:
    """What the pods of a gang ask for that do not run yet, or its `minResources` if there are none."""
    if not counts:
        return job.minimum
    found: Ints = np.sum([shape.vector * count for shape, count in counts.items()], axis=0)
    return found
