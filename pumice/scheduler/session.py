"""A session: one cycle's view of the state, the plugins' answers combined, and what has been decided.

How answers are combined is Volcano's: orders are decided by the first plugin
that sees a difference, checks must all agree, votes count tier by tier.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence, Set
from itertools import groupby, islice
from typing import Any, TypeVar

import numpy as np

from pumice.api.meta import parse_time
from pumice.api.queues import Queue
from pumice.scheduler.board import Board
from pumice.scheduler.boards import Boards
from pumice.scheduler.line import Line
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo
from pumice.scheduler.nominations import Nominations
from pumice.scheduler.outcomes import JobError, JobOutcome, Turn
from pumice.scheduler.points import (
    Extension,
    Extensions,
    FilterPoint,
    FilterResult,
    PodClass,
    SortKey,
    Vote,
)
from pumice.scheduler.reservation import Reservation, lack
from pumice.scheduler.results import Event, Reason
from pumice.scheduler.retries import Gains, Prospects
from pumice.scheduler.state import ClusterState
from pumice.scheduler.statement import Outbox, Statement
from pumice.scheduler.touched_rows import TouchedRows
from pumice.scheduler.victims import EvictionFailure, Reversed
from pumice.scheduler.view import SessionView

__all__ = ["Session"]

T = TypeVar("T")

_LISTED = 5
"""Resources that a reason names at most."""

_OUTDATED = 3
"""Gangs that a session tries only because their reasons tell of nodes that have changed."""


class Session:
    """State, plugins and decisions of one cycle.

    Attributes:
        state: The cluster; only statements change it.
        now: The moment, UNIX seconds.
        view: What plugins see.
        extensions: What plugins have registered.
        outcomes: What happened to jobs, by key.
        events: What to tell the owners.
        outbox: What has been committed.
        entered: Jobs that were let into their queue.
        pipelined: Pods that are promised a place, and the node.
        opened: Pods whose gate is to be taken away, because nothing but a node is missing.
        nominations: Room that is held for pods for which others were evicted in earlier cycles.
        nominated: Pods for which this session has evicted others.
        errors: Unexpected exceptions, by the job that they concern.
        decided: Pods that were tried: placed, promised a place or refused.
        preemptions: How often victims were looked for, for the sake of a gang.
        ended: Why the reservation of a job has ended, by its key.
        prospects: What the jobs that wait can expect, by arithmetic.
        spared: Why evictions did not help a job, by its key and the action.
        peers_epoch: Changes of pods, nodes and namespaces that matter to other pods, when the session began.
        skipped: Jobs that were not tried, because there are too few places for them, as before.
    """

    def __init__(self, state: ClusterState, actions: frozenset[str], now: float) -> None:
        """Begin a session without plugins; see `opening.open_session`.

        Args:
            state: The cluster, settled.
            actions: Names of the configured actions.
            now: The moment, UNIX seconds.
        """
        self.state = state
        self.now = now
        self.outbox = Outbox()
        self.outcomes: dict[str, JobOutcome] = {}
        self.events: list[Event] = []
        self.entered: dict[str, JobInfo] = {}
        self.pipelined: dict[str, str] = {}
        self.opened: set[str] = set()
        self.errors: dict[str, Exception] = {}
        self.decided = 0
        self.preemptions = 0
        self.spared: dict[str, dict[str, EvictionFailure]] = {}
        self.skipped: set[str] = set()
        self.peers_epoch = state.peers.epoch
        self._statements: list[Statement] = []
        self._kept: list[Statement] = []
        self.ended: dict[str, str] = {}
        self._impossible: dict[int, Reason | None] = {}
        self._created: dict[str, float] = {}
        self.touched = TouchedRows(releases=bool(state.nodes.rows().releasing.any()))
        self.nominations = Nominations(
            state.nominees.values(), state.jobs, state.nodes, self.touched
        )
        self.nominated: set[str] = set()
        self.extensions = Extensions()
        gains, state.gains = state.gains, Gains(state.nodes)
        self._changes_reasons = gains.any_gang or gains.changes_reasons
        self.prospects = Prospects(gains, state.nodes, self.touched, self._suiting)
        free = [job for key, job in state.waiting.items() if key not in state.quarantined]
        self._anew = self._outdated(free)
        waiting = self.prospects.to_try(free, self._anew)
        self.view = SessionView(state, now, actions, self.events, waiting, self.touched.log)
        self.view.entitled = self.extensions.job_entitled
        self._boards = Boards(state, self.view, self.extensions, self.touched)
        self._to_try = frozenset(job.key for job in waiting)
        self.extensions.filters.append(
            Extension(-1, "", FilterPoint(self._readiness, "fixed", by_rules=True))
        )

    def outcome(self, job: JobInfo) -> JobOutcome:
        """What happened to a job so far."""
        found = self.outcomes.get(job.key)
        if found is None:
            found = self.outcomes[job.key] = JobOutcome()
        return found

    # -- who takes part ----------------------------------------------------------------------

    def is_pending(self, job: JobInfo) -> bool:
        """Whether a job has not been let into its queue, in this session neither."""
        return job.is_pending and job.key not in self.entered

    def queue_of(self, job: JobInfo) -> Queue | None:
        """The queue of a job if that is open or the job has pods in it, or None after noting why there is none."""
        queue = self.state.queues.get(job.queue)
        if queue is not None and (queue.is_open or job.holding):
            return queue
        details = {"queue": job.queue}
        if queue is None:
            reason, state = "QueueNotFound", ""
            message = f"queue {job.queue} does not exist; create it or name another in spec.queue"
        else:
            reason, state = "QueueClosed", queue.status.state
            message = f"queue {job.queue} is {state} and takes nothing in; it must be Open"
            details["state"] = state
        outcome = self.outcome(job)
        outcome.refusal = Reason(reason, message, details, (job.queue, state))
        outcome.has_no_queue = True
        return None

    # -- orders ------------------------------------------------------------------------------

    def queue_key(self, queue: Queue) -> SortKey:
        """Place of a queue among queues; the older and then the name decide in the end."""
        self.touched.keys_taken += 1
        keys = [each.call(queue) for each in self.extensions.queue_order]
        name = queue.metadata.name
        created = self._created.get(name)
        if created is None:
            created = self._created[name] = parse_time(queue.metadata.creation_timestamp) or 0.0
        return (*keys, created, name)

    def job_key(self, job: JobInfo) -> SortKey:
        """Place of a job among the jobs of its queue.

        Raises:
            JobError: A plugin failed; orders are also asked for outside of the job's turn.
        """
        return (*self.job_rank(job), job.created, job.key)

    def job_rank(self, job: JobInfo) -> SortKey:
        """What plugins say about the place of a job; equal for jobs of which only the older and the name go first.

        Raises:
            JobError: A plugin failed.
        """
        self.touched.keys_taken += 1
        try:
            return tuple([each.call(job) for each in self.extensions.job_order])
        except Exception as error:
            raise JobError(job.key, error) from error

    def task_key(self, task: TaskInfo) -> SortKey:
        """Place of a pod among the pods of its job."""
        keys: list[Any] = [each.call(task) for each in self.extensions.task_order]
        return (*keys, task.order)

    def queue_line(self) -> Line[Queue]:
        """A line of queues; keys are taken anew when an eviction or an undone placement has made a share smaller."""
        epochs, touched = self.extensions.queue_epochs, self.touched
        kept: dict[str, tuple[int, int, SortKey]] = {}

        def epoch() -> int:
            if not epochs:
                return touched.queue_epoch
            return touched.queue_epoch + sum([each.call() for each in epochs])

        def key(queue: Queue) -> SortKey:
            """Its place, which stays as it is until something is placed or evicted."""
            moment, number = len(touched.log), epoch()
            known = kept.get(queue.metadata.name)
            if known is not None and known[:2] == (moment, number):
                touched.keys_taken += 1
                return known[2]
            found = self.queue_key(queue)
            kept[queue.metadata.name] = (moment, number, found)
            return found

        return Line(key, epoch)

    def job_line(self) -> Line[JobInfo]:
        """A line of jobs; a key does not grow while its job waits."""
        return Line(self.job_key, lambda: self.touched.job_epoch, moves=False)

    # -- questions ---------------------------------------------------------------------------

    def why_invalid(self, job: JobInfo) -> Reason | None:
        """Why a job cannot be tried at all."""
        for each in self.extensions.job_valid:
            reason = each.call(job)
            if reason is not None:
                return reason
        return None

    def why_not_enqueueable(self, job: JobInfo) -> Reason | None:
        """Why a job may not enter its queue, by votes; what no node and no pod has named, the cluster lacks."""
        if self.extensions.job_enqueueable and not self.state.axis.has_all(job.min_resources):
            unknown = sorted(
                each for each in job.min_resources if self.state.axis.find(each) is None
            )
            listed = ", ".join(unknown[:_LISTED]) + (", …" if len(unknown) > _LISTED else "")
            message = f"resource in cluster is overused: no node has {listed}"
            return Reason("NotEnoughResources", message, {"resources": unknown[:_LISTED]})
        for _, tier in _tiers(self.extensions.job_enqueueable):
            permitted = False
            for each in tier:
                vote = each.call(job)
                if isinstance(vote, Reason):
                    return vote
                if vote is Vote.REJECT:
                    return Reason("Rejected", f"plugin {each.plugin} does not let it in")
                permitted |= vote is Vote.PERMIT
            if permitted:
                return None
        return None

    def is_ready(self, job: JobInfo) -> bool:
        """Whether what a job has may be committed."""
        for each in self.extensions.job_ready:  # noqa: SIM110 - asked several times for each gang
            if not each.call(job):
                return False
        return True

    def is_pipelined(self, job: JobInfo) -> bool:
        """Whether a job may keep its promises until the end of the session, by votes."""
        for _, tier in _tiers(self.extensions.job_pipelined):
            votes = [each.call(job) for each in tier]
            if Vote.REJECT in votes:
                return False
            if Vote.PERMIT in votes:
                return True
        return True

    def is_starving(self, job: JobInfo) -> bool:
        """Whether a job is below what it needs; the first tier that has an opinion decides."""
        for _, tier in _tiers(self.extensions.job_starving):
            return all(each.call(job) for each in tier)
        return False

    def is_overused(self, queue: Queue) -> bool:
        """Whether a queue has had enough."""
        for each in self.extensions.overused:  # noqa: SIM110 - asked for each gang
            if each.call(queue):
                return True
        return False

    def why_not_allocatable(self, queue: Queue, task: TaskInfo) -> Reason | None:
        """Why a queue cannot take a pod."""
        for each in self.extensions.allocatable:
            reason = each.call(queue, task)
            if reason is not None:
                return reason
        return None

    def has_room(self, queue: Queue, needs: Ints) -> bool:
        """Whether a queue may still take this much, as far as is known; of what is not needed it may have too much."""
        asked = needs > 0
        return all(
            bool((needs <= each.call(queue))[asked].all()) for each in self.extensions.queue_room
        )

    def why_not_preemptive(self, queue: Queue, task: TaskInfo) -> Reason | None:
        """Why a queue may not take back from others what a pod needs."""
        return _first(each.call(queue, task) for each in self.extensions.preemptive)

    def victim_queue_key(self, queue: Queue, preemptor: Queue) -> SortKey:
        """Place of a queue among those whose pods go for another queue; compare only with keys of the same session."""
        keys = [each.call(queue, preemptor) for each in self.extensions.victim_queue_order]
        return (*keys, Reversed(self.queue_key(queue)))

    def why_impossible(self, shape: PodShape) -> Reason | None:
        """Why pods of a shape cannot be placed whatever the nodes are."""
        number = shape.number
        if number not in self._impossible:
            checks = self.extensions.pod_checks
            self._impossible[number] = _first(each.call(shape) for each in checks)
        return self._impossible[number]

    def is_hopeless(self, job: JobInfo) -> bool:
        """Whether a job need not be tried, because the nodes still have too few places for it."""
        if job.shortage is None or job.key in self._anew:
            return False
        try:
            if not self.prospects.are_too_few(job, job.shortage):
                return False
        except Exception as error:
            self.fail(job.key, error)
            return True
        self.skipped.add(job.key)
        return True

    @property
    def tried(self) -> Set[str]:
        """Keys of the jobs that were tried so far, or will be."""
        return self._to_try - self.skipped

    def is_explained(self, job: JobInfo) -> bool:
        """Whether what this session finds out about a job is told; of others, what was found out before stands."""
        is_tried = job.key in self._to_try and job.key not in self.skipped
        return is_tried or job.key in self.outcomes or job.key in self.state.dirty

    # -- decisions ---------------------------------------------------------------------------

    def alike(self, task: TaskInfo) -> Hashable:
        """Equal for pods for which the same nodes are equally good, if they ask for the same queue."""
        return self._boards.alike(task)

    def board(self, task: TaskInfo, queue: str) -> Board:
        """The board of a pod's class."""
        return self._boards.board(task, queue, self._target(task))

    def is_wide_for(self, tasks: Iterable[TaskInfo], queue: str) -> bool:
        """Whether pods on other nodes may change how good a node is for one of these pods."""
        shapes = {task.shape.number: task for task in tasks}
        return any(self.board(task, queue).is_wide for task in shapes.values())

    def suiting(self, task: TaskInfo, queue: str) -> Bools:
        """Nodes that the filters leave to a pod whose answers no placement changes; to be read only."""
        return self._boards.fixed(task.shape, queue, self._target(task)).allowed

    def _target(self, task: TaskInfo) -> str:
        """Gang of a pod if nodes are reserved for it; otherwise empty."""
        return task.job if self.state.reservation is not None and self.is_target(task.job) else ""

    def is_target(self, gang: str) -> bool:
        """Whether nodes are, or are to be, reserved for a gang."""
        reservation = self.state.reservation
        return reservation is not None and reservation.gang == gang

    def usable(self, task: TaskInfo) -> Bools:
        """Nodes that a pod may use, and that could hold it if nothing else were there."""
        usable = self.board(task, self.state.jobs[task.job].queue).pods.allowed.copy()
        for need in task.shape.needs:
            usable &= self.view.rows.allocatable[:, need.column] >= need.amount
        return usable

    def could_hold(self, job: JobInfo) -> bool:
        """Whether the nodes could hold a gang if nothing else were there."""
        if not self.state.axis.has_all(job.min_resources):
            return False
        facts = self.state.facts
        nodes: Bools = ~facts.unready & ~facts.unschedulable
        if job.tasks:
            nodes = np.ones(len(self.view.rows), dtype=np.bool_)
        return not lack(job, self.view.rows, nodes, self.usable)

    def reserve(self, reservation: Reservation | None) -> None:
        """Let a reservation be in force."""
        if reservation is not None:
            self.state.set_reservation(reservation)
            self._boards.clear()

    def release(self, why: str) -> None:
        """End the reservation.

        Args:
            why: Key of `reservation.ENDED`.
        """
        reservation = self.state.reservation
        if reservation is not None:
            self.ended[reservation.gang] = why
            self.state.set_reservation(None)
            self._boards.clear()

    def statement(self) -> Statement:
        """An empty statement."""
        statement = Statement(
            self.state.nodes,
            self.state.jobs,
            self.touched,
            self.outbox,
            self.extensions.on_allocate,
            self.extensions.on_deallocate,
        )
        self._statements.append(statement)
        return statement

    def turn(self, job: JobInfo) -> Turn:
        """The part of an action that concerns one job: an unexpected exception in it ends the turn, not the cycle.

        What was tentative is undone, and the job is put into quarantine.
        """
        return Turn(job, self._statements, self.fail)

    def fail(self, key: str, error: Exception) -> None:
        """Put a job into quarantine because of an unexpected exception."""
        if isinstance(error, JobError):
            key, error = error.key, error.error
        self.errors[key] = error
        self.entered.pop(key, None)
        kind = type(error).__name__
        message = f"the scheduler failed on this gang and will try it again: {kind}: {error}"
        self.state.quarantine(key, Reason("SchedulingError", message, {"error": kind}))

    def commit(self, statement: Statement) -> None:
        """Let a statement's decisions leave the session."""
        self.pipelined.update(statement.promises)
        statement.commit()

    def enter(self, job: JobInfo) -> None:
        """Let a job into its queue."""
        self.entered[job.key] = job
        for each in self.extensions.job_enqueued:
            each.call(job)

    def keep(self, statement: Statement) -> None:
        """Let a statement count until the end of the session, without committing it."""
        self._kept.append(statement)
        self.pipelined.update(statement.promises)

    def pass_over(self) -> None:
        """Note what has changed for the jobs that were not tried; the end of a session that no error ended."""
        tried = self.tried
        passed = [
            job
            for job in self.state.waiting.values()
            if job.key not in tried and _has_shortage(job)
        ]
        self.prospects.keep(passed)
        if self._changes_reasons:
            for key in sorted(job.key for job in passed):
                self.state.outdated.setdefault(key)

    def _outdated(self, waiting: Sequence[JobInfo]) -> Collection[str]:
        """Jobs to be tried whatever their prospects are, so that their reasons tell of the nodes as they are."""
        if self._changes_reasons:
            short = [job.key for job in waiting if _has_shortage(job)]
            if len(short) <= _OUTDATED:
                return short
        keys = list(islice(self.state.outdated, _OUTDATED))
        for key in keys:
            del self.state.outdated[key]
        return keys

    def close(self) -> dict[str, str]:
        """Undo what must not outlive the session.

        Returns:
            Nominations that changed: pod to node, empty for none.
        """
        changed = self.nominations.close(self.pipelined, self.nominated)
        for statement in reversed([*self._kept, *self._statements]):
            statement.abandon()
        self._kept.clear()
        for task in reversed(self.outbox.promises):
            self.state.nodes.discard(task)
            if task.job:
                self.state.jobs[task.job].move(task, SchedulingStatus.PENDING)
        self.outbox.promises.clear()
        return changed

    def _suiting(self, shape: PodShape, queue: str) -> Bools:
        return self._boards.fixed(shape, queue, "").allowed

    def _readiness(self, _pods: PodClass, rows: Rows) -> FilterResult | None:
        unready = self.state.facts.unready[rows.index]
        if not unready.any():
            return None
        codes: Ints = unready.astype("int64")
        return FilterResult(codes, ("node(s) were not ready",))


def _has_shortage(job: JobInfo) -> bool:
    return job.shortage is not None and bool(job.shortage.shapes)


def _first(reasons: Iterable[Reason | None]) -> Reason | None:
    return next((reason for reason in reasons if reason is not None), None)


def _tiers(points: Sequence[Extension[T]]) -> Iterator[tuple[int, Iterator[Extension[T]]]]:
    return groupby(points, key=lambda point: point.tier)
