"""proportion: queues share the cluster by weight.

What each queue deserves is computed once a session at most, and only if it changes, from what the pods of all queues hold and ask for when it begins
(`fairness/division`). What a queue holds follows every decision (`QueueTable.allocated`), also tentative ones.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from pumice.api.queues import Queue
from pumice.scheduler.explain.deficits import (
    Deficit,
    deficit_text,
    demand,
    insufficient,
    lacks,
    refusal,
    reserved_by,
    shortages,
)
from pumice.scheduler.fairness.division import TOLERANCE, QueueDivision
from pumice.scheduler.model.axis import (
    PODS,
    SCORED_CPU,
    SCORED_MEMORY,
    Bools,
    Floats,
    Ints,
)
from pumice.scheduler.model.candidates import Candidates, Preemptor, any_preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.queue_specs import UNLIMITED
from pumice.scheduler.model.queues import remainder
from pumice.scheduler.model.shapes import Need
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.points import QueueGroups, Refusal, SortKey, Vote, any_gang
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.results import Reason
from pumice.scheduler.specs import LastingPlugin, PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause


class Proportion(LastingPlugin):
    """Shares the cluster between queues by weight."""

    _known: QueueDivision | None = None

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register the checks."""
        self.reopen(session)
        register.queue_order(self._key, groups=QueueGroups())
        register.overused(self._is_overused, wakes=Cause.SHARES)
        register.allocatable(self._why_not, wakes=Cause.SHARES, room=self._room, waits=self._waits)
        register.preemptive(self._why_not, room=self._room)
        register.reclaimable(
            self._exceeding,
            by=any_preemptor,
            spares=self._none_exceeding,
            most=self._most_exceeding,
        )
        register.job_enqueueable(
            self._vote, wakes=Cause.SHARES, by=any_gang, room=self._room_to_enter
        )
        register.job_enqueued(self._enter)
        register.job_entitled(self._is_entitled, room=self._room_to_reclaim)

    def reopen(self, session: SessionView) -> bool:
        """Begin a session; what queues deserve stays as long as what it follows from does."""
        self._refusals: dict[str, Reason] = {}
        self._highest: dict[tuple[int, int], list[tuple[int, int]]] = {}
        shares, away = session.shares, session.away
        self._away: Ints = away.held
        self._needed_away: Ints = away.needed
        self._counted: Ints = shares.allocated - away.held
        self._entered: dict[int, Ints] = {}
        self._beyond: tuple[int, Bools, frozenset[int]] | None = None
        total = session.facts.total()
        division = QueueDivision.of(self._known, total, shares, away, self._counted)
        self._known = self._division = division
        self._capability = division.ceilings.limits.capability
        session.publish("deserved", lambda: division.deserved)
        session.publish("real_capacity", division.ceilings.present)
        session.publish("capacity", self._capability)
        session.publish("share", self._shares)
        self._session = session
        return True

    def _shares(self) -> Floats:
        """How much of what it deserves each queue had when the session was opened, by row."""
        counts = self._division.deserved >= TOLERANCE
        counts[:, (SCORED_CPU, SCORED_MEMORY)] = False
        parts = np.zeros(counts.shape)
        np.divide(self._counted, self._division.deserved, out=parts, where=counts)
        found: Floats = parts.max(axis=1, initial=0.0)
        return found

    # -- orders ------------------------------------------------------------------------------

    def share(self, queue: Queue) -> float:
        """How much of what it deserves a queue has, of the resource of which it has most; 1 when it has all."""
        row = self._session.shares.rows[queue.metadata.name]
        held = (self._session.shares.allocated[row] - self._away[row]).tolist()
        return max(
            (held[column] / share for column, share in self._division.parts(row)), default=0.0
        )

    def _key(self, queue: Queue) -> SortKey:
        return (-queue.spec.priority, self.share(queue))

    def _is_overused(self, queue: Queue) -> bool:
        row = self._session.shares.rows[queue.metadata.name]
        held, away, parts = (
            self._session.shares.allocated[row],
            self._away[row],
            self._division.parts(row),
        )
        for column, share in parts:
            if share > held.item(column) - away.item(column) + TOLERANCE:
                return False
        # A cluster that has nothing to share is left to the filters of nodes, which report it.
        return bool(parts) or bool(self._session.total().any())

    # -- pods --------------------------------------------------------------------------------

    def _why_not(self, queue: Queue, task: TaskInfo) -> Reason | None:
        """Why a queue may not hold a pod besides what it holds."""
        shares = self._session.shares
        row = shares.rows[queue.metadata.name]
        known = row, task.shape.number
        most = self._highest.get(known)
        if most is None:
            limits = self._division.whole[row].tolist()
            most = self._highest[known] = [
                (need.column, limits[need.column] - need.amount)
                for need in task.shape.needs
                if need.column != PODS and limits[need.column] < UNLIMITED
            ]
        held = shares.allocated[row]
        for column, amount in most:
            if held.item(column) > amount:
                return self._refuse(queue, row, task)
        return None

    def _waits(self, queue: Queue, task: TaskInfo, leaving: Ints) -> bool:
        row = self._session.shares.rows[queue.metadata.name]
        held, limits = (
            self._session.shares.allocated[row] + leaving[row],
            self._capability[row],
        )
        return any(
            held.item(need.column) + need.amount > limits.item(need.column)
            for need in task.shape.needs
            if need.column != PODS
        )

    def _room(self, queue: Queue) -> Ints:
        row = self._session.shares.rows[queue.metadata.name]
        room: Ints = self._division.whole[row] - self._session.shares.allocated[row]
        room[PODS] = UNLIMITED
        return room

    def _refuse(self, queue: Queue, row: int, task: TaskInfo) -> Reason:
        """The refusal of a gang; the first one of a turn stands for the others of that turn."""
        job = self._session.jobs[task.job]
        is_short = job.ready < job.min_member
        if is_short and job.key in self._refusals:
            return self._refusals[job.key]
        held, needs = demand(job, task)
        used = (self._session.shares.allocated[row] - held).tolist()
        shortages = [
            self._deficit(row, need, used[need.column], amount)
            for need in task.shape.needs
            if need.column != PODS
            and used[need.column] + (amount := int(needs[need.column]))
            > self._division.whole.item(row, need.column)
        ]
        name = queue.metadata.name
        reason = refusal(f"queue {name}: {deficit_text(shortages)}", shortages, queue=name)
        if is_short:
            self._refusals[job.key] = reason
        return reason

    def _deficit(self, row: int, need: Need, used: int, amount: int) -> Deficit:
        """What a queue lacks; pods on nodes that are not ready count only where its `capability` is the limit."""
        limit = self._division.whole.item(row, need.column)
        away = 0
        if limit < self._capability.item(row, need.column):
            away = self._away.item(row, need.column)
        return Deficit(need.name, used - away, limit - away, amount)

    def _exceeding(self, _preemptor: Preemptor, candidates: Candidates) -> Bools:
        """Pods of queues that hold more than they deserve, until they hold no more than that."""
        rows, allocated = candidates.queue, self._session.shares.allocated
        is_there: Bools = rows >= 0
        if candidates.are_alone:  # all pods of a queue get the same answer
            return self._exceeding_queues()[0][rows] & is_there
        held = allocated[rows] - candidates.taken_before_bundle(rows)
        exceeds: Bools = np.logical_or.reduce(held > self._division.whole[rows], axis=1)
        return exceeds & is_there

    def _none_exceeding(self, _: Preemptor, gangs: Sequence[JobInfo]) -> bool:
        rows = self._exceeding_queues()[1]
        return not rows or rows.isdisjoint([job.row for job in gangs])

    def _most_exceeding(self, _: Preemptor, candidates: Candidates) -> Ints:
        """Of a queue that holds too much of one resource, so much of that and one pod more; of others as many pods as go if the smallest are first."""
        found = np.zeros(candidates.vectors.shape[1], dtype=np.int64)
        beyond, rows = self._session.shares.allocated - self._division.whole, candidates.queue
        for row in sorted(self._exceeding_queues()[1]):
            vectors = np.sort(candidates.vectors[rows == row], axis=0)
            if not len(vectors):
                continue
            most = np.zeros_like(found)
            exceeded = np.flatnonzero(beyond[row] > 0).tolist()
            for column in exceeded:  # the one that lets the last of the pods go
                held = beyond.item(row, column)
                before = int(np.count_nonzero(vectors[:, column].cumsum() < held))
                taken = vectors[-1 - before :].sum(axis=0)
                taken[column] = min(taken[column], held - 1 + vectors[-1, column])
                np.maximum(most, taken, out=most)
            found += most
        return found

    def _exceeding_queues(self) -> tuple[Bools, frozenset[int]]:
        """Queues that hold more than they deserve, by row, and their rows; kept until the session decides something."""
        moment = len(self._session.touched)
        if self._beyond is None or self._beyond[0] != moment:
            held, may_hold = self._session.shares.allocated, self._division.whole
            found: Bools = np.logical_or.reduce(held > may_hold, axis=1)
            self._beyond = moment, found, frozenset(found.nonzero()[0].tolist())
        return self._beyond[1:]

    # -- gangs -------------------------------------------------------------------------------

    def _left(self, row: int) -> Ints:
        """What gangs may still need that enter a queue."""
        left: Ints = self._division.ceilings.highest[row] - self._held(row)
        left += self._session.shares.elastic[row]
        return left

    def _held(self, row: int) -> Ints:
        """What a queue holds and reserves."""
        shares = self._session.shares
        held: Ints = shares.allocated[row] + shares.reserved[row]
        if row in self._entered:
            held += self._entered[row]
        return held

    def _vote(self, job: JobInfo) -> Vote | Refusal:
        """Let gangs in as long as what they need at least fits below the limit of the queue."""
        left = self._left(job.row)
        if not lacks(job, left.tolist()):
            return Vote.PERMIT
        yielding = self._session.yielding(job)
        if np.count_nonzero(yielding) and not lacks(job, (left + yielding).tolist()):
            return Vote.PERMIT
        return partial(self._reason, job, left)

    def _room_to_enter(self, job: JobInfo) -> Ints:
        return self._left(job.row) + self._session.yielding(job)

    def _room_to_reclaim(self, job: JobInfo) -> Ints:
        room: Ints = self._division.rights[job.row] - self._held(job.row)
        return room

    def _reason(self, job: JobInfo, left: Ints) -> Reason:
        row, total = job.row, self._session.total()
        highest = self._division.ceilings.highest[row]
        away = np.where(highest < self._capability[row], self._needed_away[row], 0)
        limits = highest - away
        found = shortages(self._session, job, limits - left, limits)
        is_whole = all(0 < total[at] <= limits[at] for at in np.flatnonzero(job.minimum))
        name = f"queue {job.queue}" + (", which may use the whole cluster" if is_whole else "")
        plain = f"{name}: {deficit_text(found, 'used or reserved')}"
        kept = reserved_by(self._session, found, (row,))
        plain += f"; {kept}" if kept else ""
        message = f"queue resource quota insufficient: {insufficient(found)}; {plain}"
        return refusal(message, found, plain, queue=job.queue)

    def _is_entitled(self, job: JobInfo) -> bool:
        """Whether a queue, with what a gang needs at least, holds no more than its part by weight or what it deserves."""
        return not lacks(job, self._room_to_reclaim(job).tolist())

    def _enter(self, job: JobInfo) -> None:
        if job.min_resources and not job.is_broken:
            self._entered[job.row] = self._entered.get(job.row, 0) + remainder(job)


SPEC = PluginSpec(
    name="proportion",
    summary="Queues share the cluster by weight, within their guarantees and capabilities.",
    build=lambda _: Proportion(),
    enforces=frozenset({"capability", "guarantee"}),
)
