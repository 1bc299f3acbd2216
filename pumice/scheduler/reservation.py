"""A reservation: one gang, and the nodes that only it may use until it runs.

It outlives sessions in the state, and processes in a condition of the gang's PodGroup:

    type: Reserved, status: "True", reason: NodesReserved, message: "since 2026-01-02T03:04:05Z: n1, n2"
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from pumice.api.meta import format_time, parse_time
from pumice.api.podgroups import PodGroupCondition
from pumice.scheduler.model.jobs import Job

__all__ = ["CONDITION", "ENDED", "Reservation", "reserved_condition", "restored"]

CONDITION = "Reserved"
"""Type of the condition."""

_NODES = "NodesReserved"

ENDED = {
    "Ready": "the gang has its nodes",
    "TimedOut": "the gang has not become ready in time; other gangs may use the nodes",
    "Released": "no nodes are reserved for the gang any more",
}
"""Why a reservation has ended, and what its condition says then."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes that only one gang may use.

    Attributes:
        gang: Key of the gang.
        uid: uid of its PodGroup.
        since: When it was chosen, UNIX seconds.
        nodes: Names of the nodes, in the order in which they were reserved.
    """

    gang: str
    uid: str
    since: float
    nodes: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, job: Job, now: float) -> "Reservation":
        """A reservation for a gang, without nodes."""
        uid = job.group.metadata.uid if job.group is not None else ""
        return cls(job.key, uid, now)

    def with_node(self, name: str) -> "Reservation":
        """The reservation with one more node."""
        return replace(self, nodes=(*self.nodes, name))

    def is_for(self, job: Job | None) -> bool:
        """Whether it is for a gang that is still the same."""
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
) -> list[PodGroupCondition]:
    """Conditions of a PodGroup with what is reserved for its gang.

    Args:
        conditions: Conditions so far.
        reservation: The reservation for the gang; None if there is none.
        why_ended: Key of `ENDED`; matters if the conditions so far say that nodes are reserved.
        cycle: Identity of the session.
        now: The moment, UNIX seconds.
    """
    before = next((each for each in conditions if each.type == CONDITION), None)
    if reservation is not None and reservation.nodes:
        message = f"since {format_time(reservation.since)}: {', '.join(reservation.nodes)}"
        after = PodGroupCondition(type=CONDITION, status="True", reason=_NODES, message=message)
    elif before is not None and before.status == "True":
        after = PodGroupCondition(
            type=CONDITION, status="False", reason=why_ended, message=ENDED[why_ended]
        )
    else:
        return list(conditions)
    if before is not None and (before.status, before.reason, before.message) == (
        after.status,
        after.reason,
        after.message,
    ):
        return list(conditions)
    stamped = msgspec.structs.replace(
        after, transition_id=cycle, last_transition_time=format_time(now)
    )
    return [*(each for each in conditions if each.type != CONDITION), stamped]


def restored(jobs: Iterable[Job], nodes: Sequence[str]) -> Reservation | None:
    """The reservation that a PodGroup tells of; the oldest, and among equals the first by name.

    Args:
        jobs: Gangs.
        nodes: Names of the nodes that there are; others are left out.
    """
    found = [each for job in jobs if (each := _told(job, nodes)) is not None]
    return min(found, key=lambda each: (each.since, each.gang), default=None)


def _told(job: Job, nodes: Sequence[str]) -> Reservation | None:
    for condition in job.status.conditions or ():
        if (condition.type, condition.status, condition.reason) != (CONDITION, "True", _NODES):
            continue
        start, _, names = condition.message.partition("Z: ")
        since = parse_time(f"{start.removeprefix('since ')}Z")
        listed = dict.fromkeys(name.strip() for name in names.split(","))
        known = tuple(name for name in listed if name in set(nodes))
        if since is not None and known:
            return replace(Reservation.of(job, since), nodes=known)
    return None
