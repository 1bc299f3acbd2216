"""capacity: queues have what they deserve, by resource, and may use more while no other queue asks for it.

A queue states a limit (`spec.capability`), what it gets back when it needs it (`spec.deserved`), and what is kept for it
(`spec.guarantee`). With `enableHierarchy` queues form a tree by `spec.parent`: what a queue uses counts for all queues
above it, whose limits hold as well, and gangs belong into queues without others below them.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from pumice.api.queues import Queue
from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.explain.deficits import Deficit, deficit_text, insufficient, reserved_by
from pumice.scheduler.fairness.entitlements import Entitlements
from pumice.scheduler.fairness.over_deserved import ReclaimRequest, asked_by, over_deserved
from pumice.scheduler.fairness.queue_limits import PathLimits
from pumice.scheduler.model.axis import PODS, SCORED_CPU, SCORED_MEMORY, Bools, Ints
from pumice.scheduler.model.candidates import Candidates, Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.nodes import NodeRecord
from pumice.scheduler.model.queue_specs import UNLIMITED
from pumice.scheduler.model.queues import remainder
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.points import QueueGroups, Refusal, SortKey, Vote, any_gang
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.results import Reason
from pumice.scheduler.specs import LastingPlugin, PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause

_NOT_DESERVING = 1.0
"""Share of a queue that deserves nothing."""


class Capacity(LastingPlugin):
    """Limits, shares and victims of queues."""

    def __init__(self, arguments: Arguments) -> None:
        self._levels = max(arguments.integer("ancestorReclaimLevel"), 0)

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register everything."""
        self._in_tree = register.is_on("enableHierarchy")
        self._names: Sequence[str] = session.shares.names
        self.reopen(session)
        groups = QueueGroups(self._groups, self._names) if self._in_tree else QueueGroups()
        register.queue_order(self._key, groups=groups)
        register.allocatable(
            self._why_not_allocatable, wakes=Cause.SHARES, room=self._room, waits=self._waits
        )
        register.preemptive(self._why_not_preemptive)
        register.reclaimable(self._may_go, by=self._class_of)
        register.job_enqueueable(
            self._vote, wakes=Cause.SHARES, by=any_gang, room=self._room_to_enter
        )
        register.job_enqueued(self._enter)
        register.job_entitled(self._is_entitled, room=self._room_to_reclaim)
        if self._in_tree:
            register.victim_queue_order(self._distance)
        register.on_allocate(self._note)
        register.on_deallocate(self._note)

    def reopen(self, session: SessionView) -> bool:
        """Begin a session with what queues are entitled to now."""
        in_tree, total = self._in_tree, session.total()
        self._table = table = session.shares
        self._rights = Entitlements.of(table, total, session.away, in_tree=in_tree)
        self._held = table.tree if in_tree else table.allocated
        self._limits = PathLimits(table.names, session.jobs, self._rights, self._held, total)
        self._above = frozenset(self._rights.parents)
        self._paths = [path[::-1] for path in self._rights.paths]
        self._deserved: dict[int, tuple[tuple[int, int, int], ...]] = {}
        self._known: dict[int, float] = {}
        self._claims: Ints | None = None
        self._leaving: Ints | None = None
        rights, held = self._rights, self._held.copy()
        rows = range(len(table.names))
        session.publish("deserved", lambda: rights.deserved - rights.away * rights.named)
        session.publish("real_capacity", lambda: np.maximum(rights.real - rights.away, 0))
        session.publish("capacity", rights.capability)
        session.publish("share", lambda: np.array([self._share(row, held) for row in rows]))
        return super().reopen(session) and self._names is table.names

    # -- order -------------------------------------------------------------------------------

    def _key(self, queue: Queue) -> SortKey:
        """Priority, then the shares of the queues above it and its own."""
        known = self._known
        shares = []
        for row in self._paths[self._table.rows[queue.metadata.name]]:
            share = known.get(row)
            if share is None:
                share = known[row] = self._share(row, self._held)
            shares.append(share)
        return (-queue.spec.priority, tuple(shares))

    def _groups(self, name: str) -> list[str]:
        """Names of the queues above a queue, from the top, and its own: what it holds counts for all of them."""
        row = self._table.rows.get(name)
        return [] if row is None else [self._table.names[each] for each in self._paths[row]]

    def _share(self, row: int, held: Ints) -> float:
        """The largest part of what a queue deserves that it holds, of any resource; `held` is by row and column."""
        deserved = self._deserved.get(row)
        if deserved is None:
            columns = self._rights.named[row].nonzero()[0].tolist()
            away = self._rights.away[row, columns]
            amounts = (self._rights.deserved[row, columns] - away).tolist()
            found = zip(columns, amounts, away.tolist(), strict=True)
            deserved = self._deserved[row] = tuple(found)
        parts = [(held.item(row, column) - away) / amount for column, amount, away in deserved]
        return max(parts, default=_NOT_DESERVING)

    def _distance(self, queue: Queue, preemptor: Queue) -> int:
        """Queues that have more queues above them in common with the one that asks come first."""
        paths, rows = self._rights.paths, self._table.rows
        theirs = paths[rows[queue.metadata.name]]
        ours = paths[rows[preemptor.metadata.name]]
        return -len(set(theirs) & set(ours))

    # -- taking ------------------------------------------------------------------------------

    def _why_not_allocatable(self, queue: Queue, task: TaskInfo) -> Reason | None:
        row = self._table.rows[queue.metadata.name]
        if row in self._above:
            return self._why_not_leaf(queue.metadata.name)
        return self._limits.why_not(row, task)

    def _waits(self, queue: Queue, task: TaskInfo, leaving: Ints) -> bool:
        if leaving is not self._leaving:  # another one once pods have been evicted
            self._leaving = leaving
            self._leaving_below = self._table.below(leaving) if self._in_tree else leaving
        row = self._table.rows[queue.metadata.name]
        return self._limits.exceeded(row, task, self._leaving_below) is not None

    def _room(self, queue: Queue) -> Ints:
        return self._limits.room(self._table.rows[queue.metadata.name])

    def _note(self, task: TaskInfo, _: NodeRecord) -> None:
        """Take in that a queue, and with it those above, hold more or less than before."""
        row = self._session.jobs[task.job].holder(task).row if task.job else -1
        if row < 0:
            return
        for each in self._paths[row]:
            self._known.pop(each, None)
        if self._limits.guarantees:
            self._limits.guarantees.note(row)

    def _why_not_leaf(self, name: str) -> Reason:
        message = f"queue {name} has queues below it; gangs belong into one of those"
        return Reason("QueueNotLeaf", message, {"queue": name}, (name,))

    def _why_not_preemptive(self, queue: Queue, task: TaskInfo) -> Reason | None:
        """A queue may take back what it deserves, of at least one resource that the pod asks for."""
        name = queue.metadata.name
        if not queue.is_open:
            state = queue.status.state
            message = f"queue {name} is {state} and takes nothing back; it must be Open"
            return Reason("QueueClosed", message, {"queue": name, "state": state}, (name, state))
        row = self._table.rows[name]
        if row in self._above:
            return self._why_not_leaf(name)
        refusal = self._limits.why_over_capability(row, task, own=True)
        if refusal is not None:
            return refusal
        uses = []
        for need in task.shape.needs:
            if need.column != PODS:
                away = self._rights.away.item(row, need.column)
                deserves = max(self._rights.deserved.item(row, need.column) - away, 0)
                held = self._held.item(row, need.column) - away
                uses.append(Deficit(need.name, held, deserves, need.amount))
        if any(use.limit and use.used + use.needs <= use.limit for use in uses):
            return None
        listed = deficit_text(uses) or "the pod asks for nothing"
        message = f"queue {name} takes nothing back beyond what it deserves: {listed}"
        return Reason("QueueDeserved", message, {"queue": name}, (name,))

    def _may_go(self, preemptor: Preemptor, candidates: Candidates) -> Bools:
        full = self._full_queue(preemptor)
        return over_deserved(preemptor, candidates, self._rights, self._held, self._levels, full)

    def _class_of(self, preemptor: Preemptor) -> tuple[int | None, ReclaimRequest]:
        """Equal for pods of a queue for which the same pods may go."""
        return self._full_queue(preemptor), asked_by(preemptor, self._rights, self._held)

    def _full_queue(self, preemptor: Preemptor) -> int | None:
        """The queue that has to make room, by row."""
        row = preemptor.job.row
        full = self._limits.exceeded(row, preemptor.task) if row >= 0 else None
        return full.row if full is not None else None

    # -- entering ----------------------------------------------------------------------------

    def _vote(self, job: JobInfo) -> Vote | Reason | Refusal:
        """A gang may enter if its minimum fits beside what is held and reserved, in its queue and all above it.

        What `preempt` may evict for it does not count.
        """
        row = job.row
        if row < 0:
            return Vote.ABSTAIN
        if row in self._above:
            return self._why_not_leaf(self._table.names[row])
        claims = self._claimed()[self._rights.paths[row]] - self._session.yielding(job)
        limits = self._rights.entry[self._rights.paths[row]]
        exceeds = (claims + job.minimum > limits) & (job.minimum > 0)
        exceeds[:, [SCORED_CPU, SCORED_MEMORY]] = False
        if not exceeds.any():
            return Vote.PERMIT
        return partial(self._reason, job, row, claims, exceeds)

    def _room_to_enter(self, job: JobInfo) -> Ints:
        path = self._rights.paths[job.row]
        room: Ints = (self._rights.entry[path] - self._claimed()[path]).min(axis=0)
        room += self._session.yielding(job)
        room[[SCORED_CPU, SCORED_MEMORY]] = UNLIMITED
        return room

    def _room_to_reclaim(self, job: JobInfo) -> Ints:
        rest = self._rights.deserved[job.row] - self._claimed()[job.row]
        return np.where(self._rights.named[job.row], rest, UNLIMITED)

    def _reason(self, job: JobInfo, row: int, claims: Ints, exceeds: Bools) -> Reason:
        path = self._rights.paths[row]
        limits = self._rights.entry[path]
        place = int(exceeds.any(axis=1).argmax())
        while place + 1 < len(path) and not np.any(
            exceeds[place] & (~exceeds[place + 1] | (limits[place] < limits[place + 1]))
        ):
            place += 1  # the limit comes from above
        stated = self._rights.capability[path[place]]
        away = np.where(limits[place] < stated, self._rights.needed_away[path[place]], 0)
        shortages = [
            Deficit(
                self._session.resource(column),
                claims.item(place, column) - away.item(column),
                limits.item(place, column) - away.item(column),
                job.minimum.item(column),
            )
            for column in np.flatnonzero(exceeds[place]).tolist()
        ]
        start = f"queue resource quota insufficient: {insufficient(shortages)}; "
        rows = [each for each, above in enumerate(self._rights.paths) if path[place] in above]
        kept = reserved_by(self._session, shortages, frozenset(rows))
        return self._limits.reason(row, path[place], shortages, "used or reserved", start, kept)

    def _is_entitled(self, job: JobInfo) -> bool:
        """Whether a queue, with what a gang needs at least, holds no more than it deserves of what it names."""
        row = job.row
        if row < 0:
            return False
        asks = (job.minimum > 0) & self._rights.named[row]
        holds = self._claimed()[row] + job.minimum
        return bool(asks.any() and not np.any(asks & (holds > self._rights.deserved[row])))

    def _enter(self, job: JobInfo) -> None:
        if job.row >= 0 and job.min_resources and not job.is_broken:
            self._claimed()[self._rights.paths[job.row]] += remainder(job)

    def _claimed(self) -> Ints:
        """What queues hold and have reserved beyond it, as it was when a gang first asked, and gangs that entered since."""
        if self._claims is None:
            reserved = self._table.reserved - self._table.elastic
            if self._in_tree:
                reserved = self._table.below(reserved)
            self._claims = self._held + reserved
        return self._claims


SPEC = PluginSpec(
    name="capacity",
    summary="Queues have what they deserve and may use more while no other queue asks for it, up to their capability.",
    build=Capacity,
    arguments=(
        SchedulerArgument(
            "ancestorReclaimLevel",
            0,
            "On how many levels above its queue a pod's queues must hold more than they deserve before it is evicted for "
            "another queue.",
        ),
        SchedulerArgument(
            "capacity.DynamicResourceAllocationEnable",
            False,
            "Whether devices of ResourceClaims count.",
            is_absent=True,
        ),
        SchedulerArgument(
            "capacity.DRAConsumableCapacityEnable",
            False,
            "Whether consumable capacity of devices counts.",
            is_absent=True,
        ),
    ),
    enforces=frozenset({"capability", "deserved", "guarantee"}),
    spans_tree=True,
)
