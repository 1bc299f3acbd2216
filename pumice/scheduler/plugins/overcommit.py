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
from pumice.scheduler.model.axis import Floats, Ints
from pumice.scheduler.model.jobs import JobInfo
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

    _total: Ints | None = None
    _limit: Ints

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
        self._free: Ints | None = None
        self._known: tuple[JobInfo | None, Ints, list[int]] | None = None
        self._has_target = False
        return super().reopen(session)

    def _limits(self) -> Ints:
        """What may be used and reserved, by column."""
        total = self._session.facts.total()
        if self._total is not total:
            limit: Floats = np.floor(total * self._factor + _TOLERANCE)
            self._total, self._limit = total, limit.astype(np.int64)
        return self._limit

    def _rest(self) -> Ints:
        """What of that was not used and reserved when a gang first asked, without what has entered since."""
        if self._free is None:
            shares = self._session.shares
            reserved: Ints = np.add.reduce(shares.reserved) - shares.lacking
            self._free = self._limits() - self._session.used() - reserved
        return self._free

    def _left(self, job: JobInfo) -> tuple[Ints, list[int]]:
        """What is left for a gang, by column, also as plain numbers."""
        target = self._session.target
        if target is job or self._has_target or (target is not None and not target.is_pending):
            target = None
        if self._known is None or self._known[0] is not target:
            left = self._rest()
            if target is not None:
                left = left - remainder(target)
            self._known = target, left, left.tolist()
        return self._known[1:]

    def _vote(self, job: JobInfo) -> Vote | Refusal:
        """Let a gang in that has room; what may be evicted for it counts as room."""
        left, amounts = self._left(job)
        if not lacks(job, amounts):
            return Vote.PERMIT
        yielding = self._session.yielding(job)
        if np.count_nonzero(yielding) and not lacks(job, (left + yielding).tolist()):
            return Vote.PERMIT
        if self._session.may_take_back(job):
            return Vote.PERMIT
        return partial(self._reason, job, left)

    def _room(self, job: JobInfo) -> Ints:
        room: Ints = self._left(job)[0] + self._session.yielding(job)
        return np.maximum(room, self._session.room_to_take_back(job), out=room)

    def _reason(self, job: JobInfo, left: Ints) -> Reason:
        found = shortages(self._session, job, self._limits() - left, self._limits())
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
            self._free = self._rest() - remainder(job)


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
