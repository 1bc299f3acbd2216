"""overcommit: gangs enter their queues as long as the cluster, counted a little larger than it is, has room for their minimum.

Without it every gang would enter at once, and the pods of all of them would be created and wait. What `preempt` and
`reclaim` may evict for a gang counts as room, because they look for victims only for gangs that have entered.

What a gang lacks that has lost pods is counted in its queue alone: a tenant could hold room of others by deleting pods.

What the gang needs for which nodes are reserved counts as taken for all others. Otherwise gangs would enter that may not use
these nodes, and keep it out.
"""

from functools import partial

import numpy as np

from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.explain.deficits import (
    deficit_text,
    insufficient,
    lacks,
    refusal,
    reserved_by,
    shortages,
)
from pumice.scheduler.model.axis import PODS, Floats, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.queue_specs import UNLIMITED
from pumice.scheduler.model.queues import remainder
from pumice.scheduler.points import Refusal, Vote, any_gang
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.results import Reason
from pumice.scheduler.specs import LastingPlugin, PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause

_FACTOR = "overcommit-factor"
_DEFAULT = 1.2
_TOLERANCE = 0.1


class Overcommit(LastingPlugin):
    """Votes on gangs that want to enter their queue."""

    def __init__(self, arguments: Arguments) -> None:
        factor = arguments.number(_FACTOR)
        self._factor = factor if factor >= 1.0 else _DEFAULT

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register the vote."""
        self.reopen(session)
        register.job_enqueueable(
            self._vote, wakes=Cause.SHARES, by=any_gang, room=self._room, is_about_nodes=True
        )
        register.job_enqueued(self._enter)

    def reopen(self, session: SessionView) -> bool:
        """Begin a session, in which nothing has entered yet."""
        self._limit: Ints | None = None
        self._known: tuple[JobInfo | None, Ints, list[int]] | None = None
        self._entered: Ints | int = 0
        self._has_target = False
        return super().reopen(session)

    def _limits(self) -> Ints:
        """What may be used and reserved, by column."""
        if self._limit is None:
            limit: Floats = np.floor(self._session.total() * self._factor + _TOLERANCE)
            self._limit = limit.astype(np.int64)
            shares = self._session.shares
            self._used: Ints = self._session.used() + shares.reserved.sum(axis=0) - shares.lacking
        return self._limit

    def _taken(self, job: JobInfo) -> tuple[Ints, list[int]]:
        """What counts as used or reserved when a gang asks, and what is left, by column."""
        limits, target = self._limits(), self._session.target
        if target is job or self._has_target or (target is not None and not target.is_pending):
            target = None
        if self._known is None or self._known[0] is not target:
            taken: Ints = self._used + self._entered
            if target is not None:
                taken += remainder(target)
            self._known = target, taken, (limits - taken).tolist()
        return self._known[1:]

    def _vote(self, job: JobInfo) -> Vote | Refusal:
        """Let a gang in that has room; what may be evicted for it counts as room."""
        taken, left = self._taken(job)
        if not lacks(job, left):
            return Vote.PERMIT
        yielding = self._session.yielding(job)
        if np.count_nonzero(yielding) and not shortages(
            self._session, job, taken - yielding, self._limits()
        ):
            return Vote.PERMIT
        if self._session.may_take_back(job):
            return Vote.PERMIT
        return partial(self._reason, job, taken)

    def _room(self, job: JobInfo) -> Ints:
        room: Ints = self._limits() - self._taken(job)[0] + self._session.yielding(job)
        room[PODS] = UNLIMITED
        return np.maximum(room, self._session.room_to_take_back(job))

    def _reason(self, job: JobInfo, taken: Ints) -> Reason:
        found = shortages(self._session, job, taken, self._limits())
        numbers = deficit_text(found, "used or reserved")
        kept = reserved_by(self._session, found)
        numbers += f"; {kept}" if kept else ""
        plain = f"up to {self._factor * 100:g}% of the cluster may be booked: {numbers}"
        names, what = insufficient(found), "not enough room in the cluster"
        if not any(each.left for each in found):
            names, what = (
                names.replace("insufficient", "overused"),
                "resource in cluster is overused",
            )
        return refusal(f"{what}: {names}; {plain}", found, plain)

    def _enter(self, job: JobInfo) -> None:
        if not job.min_resources:
            return
        self._has_target |= job is self._session.target
        if not job.is_broken:
            self._known = None
            self._entered = self._entered + remainder(job)


SPEC = PluginSpec(
    name="overcommit",
    summary="Gangs enter their queues only as far as the cluster, overbooked by a factor, has room for their minimum.",
    build=Overcommit,
    arguments=(
        SchedulerArgument(
            _FACTOR,
            _DEFAULT,
            "How many times the cluster may be booked; a value below 1 counts as 1.2.",
        ),
    ),
)
