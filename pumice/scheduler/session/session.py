"""A session: the state during one cycle, the plugins' answers, and the decisions."""

from collections.abc import Collection, Hashable, Iterable, Set
from functools import cached_property

import numpy as np

from pumice.api.queues import Queue
from pumice.scheduler.budget import TOO_SLOW, Budget, OverBudgetError, TimeShares
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.free_room import RowPlaces
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.rows import TouchedRows
from pumice.scheduler.model.tasks import ALLOCATED_LIKE, SchedulingStatus, TaskInfo
from pumice.scheduler.points import Extensions
from pumice.scheduler.results import Event, Reason
from pumice.scheduler.session.answers import PluginAnswers
from pumice.scheduler.session.empty_nodes import EmptyNodes
from pumice.scheduler.session.node_ranking import NodeRanking
from pumice.scheduler.session.node_rankings import NodeRankings
from pumice.scheduler.session.nominations import Nominations
from pumice.scheduler.session.outcomes import JobError, JobOutcome, JobTurn, not_taken
from pumice.scheduler.session.refused_before import RefusedBefore
from pumice.scheduler.session.statement import CommittedDecisions, Statement
from pumice.scheduler.session.victims import EvictionFailure
from pumice.scheduler.state.reserved_nodes import Reservation, lack
from pumice.scheduler.state.watched_cluster import ClusterState
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause

_LOOKS = 8
"""Maximum number of gangs of which a session looks whether there is room for them, to choose one for which nodes are reserved."""


class Session:
    """State, plugins and decisions of one cycle.

    Attributes:
        state: The cluster; only statements change it.
        extensions: What plugins have registered.
        answers: What plugins answer together.
        touched: Rows that the session has changed, and how often sort keys were taken.
        now: The moment, UNIX seconds.
        view: What plugins see.
        outcomes: What happened to jobs, by key.
        events: What to tell the owners.
        committed: What has been committed.
        entered: Jobs that were let into their queue.
        pipelined: Pods that are promised a place, and the node.
        opened: Pods whose gate is to be taken away, because nothing but a node is missing.
        nominations: Room that is held for pods for which others were evicted in earlier cycles.
        nominated: Pods for which this session has evicted others.
        errors: Unexpected exceptions, by the job that they concern.
        decided: Pods that were tried: placed, promised a place or refused.
        preemptions: Number of searches for victims.
        transactions: Number of decisions with evictions, by action.
        empty_nodes: What the nodes could hold if they were empty.
        places: How many pods each node can take, by arithmetic.
        levels: The domains of the network.
        ended: Why the reservation of a job has ended, by its key.
        spared: Why evictions did not help a job, by its key and the action.
        refused: Jobs that were refused before.
        skipped: Those of them that were not tried, because they would be refused again.
        time: How much of the cycle's budget is left for whom.
        unreached: Jobs for which the budget was not enough, so that they are tried in the next cycle.
        left_out: Jobs that this session does not try, because others were not reached before.
    """

    def __init__(
        self,
        state: ClusterState,
        actions: frozenset[str],
        now: float,
        budget: Budget | None = None,
        extensions: Extensions | None = None,
    ) -> None:
        """Begin a session on a settled state, with what plugins have registered if they last; see `options.open_session`."""
        self.touched = TouchedRows(state.nodes.changes, state.nodes.are_any_leaving)
        self.extensions = extensions or Extensions()
        self.answers = PluginAnswers(self.extensions, state.axis, self.touched)
        self.state = state
        self.now = now
        self.committed = CommittedDecisions()
        self.outcomes: dict[str, JobOutcome] = {}
        self.events: list[Event] = []
        self.entered: dict[str, JobInfo] = {}
        self.pipelined: dict[str, str] = {}
        self.opened: set[str] = set()
        self.errors: dict[str, Exception] = {}
        self.decided = 0
        self.preemptions = 0
        self.transactions: dict[str, int] = {}
        self.spared: dict[str, dict[str, EvictionFailure]] = {}
        self.skipped: set[str] = set()
        self._leaving: tuple[int, Ints | None] = (-1, None)
        self._statements: list[Statement] = []
        self._kept: list[Statement] = []
        self._looks = 0
        self._unfinished: tuple[Reservation | None, frozenset[str]] = (None, frozenset())
        self.ended: dict[str, str] = {}
        self.nominations = Nominations(
            state.pods.nominees.values(), state.jobs, state.nodes, self.touched
        )
        self.nominated: set[str] = set()
        waiting, renewed = self._select(budget)
        self.view = SessionView(state, now, actions, self.events, waiting, self.touched.log)
        self.view.entered = self.entered
        self.view.extensions = self.extensions
        self.view.seems_to_fit = self._seems_to_fit
        self.view.reads_network = lambda: not self.extensions.ignores_network
        self._rankings = NodeRankings(state, self.view, self.extensions, self.touched)
        done = self.committed
        self.refused = RefusedBefore(
            state,
            self.view,
            self.answers,
            renewed,
            (done.binds, done.promises, done.evicted, self._kept),
            self._rankings,
        )
        self.empty_nodes = EmptyNodes(state, self.view, self.suiting)
        self.places = RowPlaces(self.view.rows, self.touched)
        self.levels = self.view.levels

    def _select(self, budget: Budget | None) -> tuple[list[JobInfo], Collection[str]]:
        """The jobs that this session tries, and which of them in any case; the budget is divided among their namespaces."""
        state = self.state
        waiting, order = state.gangs.waiting, state.gangs.waiting_keys
        if held := state.gangs.quarantined:
            waiting = {key: job for key, job in waiting.items() if key not in held}
            order = [key for key in order if key not in held]
        pause = state.delays.renewals
        tried, renewed = state.parked.begin(waiting, order, state.rounds.untried, self.now, pause)
        state.wakes += state.parked.due
        self.unreached, self.left_out = state.rounds.choose(
            job
            for job in tried
            if (queue := state.queues.get(job.queue)) is None or not queue.is_fifo
        )
        if untried := self.untried:
            tried = [job for job in tried if job.key not in untried]
        self.time = TimeShares(budget, state.rounds.debts, tried)
        self._begun: set[str] = set()
        return tried, renewed

    def outcome(self, job: JobInfo) -> JobOutcome:
        """What happened to a job so far."""
        found = self.outcomes.get(job.key)
        if found is None:
            found = self.outcomes[job.key] = JobOutcome()
        return found

    # -- participants ----------------------------------------------------------------------

    def is_pending(self, job: JobInfo) -> bool:
        """True if a job is not in its queue, also not by this session."""
        return job.is_pending and job.key not in self.entered

    def in_queue(self, jobs: Iterable[JobInfo]) -> list[JobInfo]:
        """Those of some jobs that are in their queue."""
        entered = self.entered
        return [job for job in jobs if not job.is_pending or job.key in entered]

    def queue_of(self, job: JobInfo) -> Queue | None:
        """The queue of a job if it takes the job, or the job has pods in it; otherwise None, and the reason is recorded."""
        queue = self.state.queues.get(job.queue)
        if queue is not None and (self.state.gangs.takes(queue, job) or job.holding):
            return queue
        self.outcome(job).refusal = not_taken(job, queue)
        return None

    # -- jobs that wait ----------------------------------------------------------------------

    def is_refused_as_before(self, job: JobInfo) -> bool:
        """True if a job need not be tried, because it would be refused as before; it is left out then."""
        try:
            if not self.refused.is_refused_again(job):
                return False
        except Exception as error:
            self.fail(job.key, error)
            return True
        self.skipped.add(job.key)
        return True

    @cached_property
    def to_try(self) -> frozenset[str]:
        """Keys of the jobs that are to be tried; plugins name some while the session opens."""
        return frozenset([job.key for job in self.view.waiting])

    @property
    def tried(self) -> Set[str]:
        """Keys of the jobs that were tried so far, or will be."""
        return self.to_try - self.skipped - self.unreached

    @property
    def untried(self) -> Set[str]:
        """Keys of the jobs that are to be tried in the next cycle, because this one has no time for them."""
        return self.unreached | self.left_out if self.left_out else self.unreached

    @property
    def explained(self) -> Set[str]:
        """Keys of the jobs about which this session reports its finding; for others the earlier finding is kept."""
        found = self.to_try - self.skipped | self.outcomes.keys() | self.state.gangs.dirty.keys()
        return found - self.untried

    # -- decisions ---------------------------------------------------------------------------

    def alike(self, task: TaskInfo) -> Hashable:
        """Equal for pods for which the same nodes are equally good, if they ask for the same queue."""
        return self._rankings.alike(task)

    def ranking(self, task: TaskInfo, queue: str) -> NodeRanking:
        """The ranking of a pod's class."""
        return self._rankings.ranking(task, queue, self._target(task))

    def waits_for_queue(self, queue: Queue, task: TaskInfo) -> bool:
        """Whether a queue that may take a pod has room for it only once pods that terminate have ended."""
        evicted = len(self.committed.evicted)
        if evicted != self._leaving[0]:
            leave = self.touched.releases
            tasks = self.state.nodes.terminating(self.state.facts.unready) if leave else ()
            amounts = self.state.shares.sums(tasks, self.state.jobs) if tasks else None
            self._leaving = evicted, amounts
        leaving = self._leaving[1]
        return leaving is not None and self.answers.waits(queue, task, leaving)

    def suiting(self, task: TaskInfo, queue: str) -> Bools:
        """Nodes that the filters leave to a pod whose answers no placement changes; to be read only."""
        return self._rankings.fixed(task.shape, queue, self._target(task)).allowed

    def _target(self, task: TaskInfo) -> str:
        """Gang of a pod if it may use nodes that are reserved; otherwise empty."""
        return task.job if self.may_use_reserved(task.job) else ""

    def is_target(self, gang: str) -> bool:
        """Whether nodes are, or are to be, reserved for a gang."""
        return (target := self.view.target) is not None and target.key == gang

    def may_use_reserved(self, gang: str) -> bool:
        """Whether a gang may use nodes that are reserved: the target, and gangs that have pods there and lack others.

        What such a gang holds is not free before it ends, and without the pods that it lacks it may never end.
        """
        reservation = self.state.reservation
        if reservation is None:
            return False
        if self._unfinished[0] is not reservation:
            self._unfinished = reservation, self._unfinished_on(reservation.nodes)
        return gang in self._unfinished[1] or self.is_target(gang)

    def _unfinished_on(self, nodes: Iterable[str]) -> frozenset[str]:
        """Gangs that have pods on nodes and less than their minimum."""
        records = [self.state.nodes.records.get(name) for name in nodes]
        tasks = [task for record in records if record for task in record.tasks.values()]
        gangs = {task.job for task in tasks if task.job and task.status in ALLOCATED_LIKE}
        return frozenset(gang for gang in gangs if self.state.jobs[gang].is_short)

    def _seems_to_fit(self, job: JobInfo) -> bool:
        """Whether a gang may find room now: it was not refused, and by arithmetic there is room for each kind of its pods.

        For a few gangs of which nothing is known; of more it is assumed.
        """
        outcome = self.outcomes.get(job.key)
        if outcome is not None and outcome.refusal is not None:
            return False
        if job.finding is not None and job.finding.is_unschedulable:
            return False
        self._looks += 1
        if self._looks > _LOOKS:
            return True
        rows, nodes = self.view.rows, self.empty_nodes
        free = np.maximum(rows.allocatable - rows.used, 0)
        return lack(job, free, nodes.candidates(job), nodes.usable) is None

    def why_too_large(self, job: JobInfo) -> str:
        """Why the nodes could not hold a gang even if they were empty; the gate keeps no room for such a gang.

        Empty if they may, or if the answers of filters or the search for a domain explain it.
        """
        has_reserved = self.may_use_reserved(job.key)
        why = self.empty_nodes.why_too_large(job, has_reserved=has_reserved)
        if why is None and self.empty_nodes.fits_no_domain(job, has_reserved=has_reserved):
            why = ""
        if job.is_too_large == (why is None):
            job.is_too_large = why is not None
            self.state.shares.outdate(job)
            self.state.parked.happened(Cause.SHARES)  # for gangs that wait for the room kept for it
            self.view.wake_at(self.now)
        return why or ""

    def reserve(self, reservation: Reservation) -> None:
        """Set the reservation."""
        self.state.set_reservation(reservation)
        self._rankings.clear()

    def release(self, why: str) -> None:
        """End the reservation, for a reason that is a key of `reserved_nodes.ENDED`."""
        if (reservation := self.state.reservation) is not None:
            self.ended[reservation.gang] = why
            self.state.set_reservation(None)
            self._rankings.clear()
            if reservation.nodes:  # which gangs may use that have had their turn without them
                self.view.wake_at(self.now)

    def statement(self) -> Statement:
        """An empty statement."""
        statement = Statement(
            self.state.nodes,
            self.state.jobs,
            self.touched,
            self.committed,
            self.extensions.on_allocate,
            self.extensions.on_deallocate,
        )
        self._statements.append(statement)
        return statement

    def turn(self, job: JobInfo) -> JobTurn:
        """The part of an action that concerns one job: an unexpected exception in it ends the turn, not the cycle.

        What was tentative is undone, and the job is put into quarantine.
        """
        return JobTurn(job, self._statements, self.fail, self.time)

    def reaches(self, job: JobInfo) -> bool:
        """True if a job may have a turn of the current action now; if it had none, it is left to the next cycle."""
        if job.key in self.unreached or job.key in self.left_out:
            return False
        if self.time.may_begin(job.namespace):
            self._begun.add(job.key)
            return True
        if job.key not in self._begun:
            self.leave(job)
        return False

    def leave(self, job: JobInfo) -> None:
        """Leave a job to the next cycle."""
        self.unreached.add(job.key)

    def begin_action(self, *, is_last: bool) -> None:
        """Give an action its part of the budget."""
        self.time.begin_action(is_last=is_last)
        self._begun.clear()

    def fail(self, key: str, error: Exception) -> None:
        """Put a job into quarantine because of an unexpected exception."""
        if isinstance(error, JobError):
            key, error = error.key, error.error
        self.errors[key] = error
        self.entered.pop(key, None)
        if isinstance(error, OverBudgetError):
            why = Reason(TOO_SLOW, f"the scheduler has set this gang aside for some time: {error}")
        else:
            self._rankings.clear()  # sums of which a plugin that raised has computed a part
            kind = type(error).__name__
            text = f"the scheduler failed on this gang and will try it again: {kind}: {error}"
            why = Reason("SchedulingError", text, {"error": kind})
        self.state.gangs.quarantine(key, why)

    def commit(self, statement: Statement) -> None:
        """Commit a statement."""
        if self.touched.promises:
            self.pipelined.update(statement.promises)
        statement.commit()

    def enter(self, job: JobInfo) -> None:
        """Let a job into its queue."""
        self.entered[job.key] = job
        self.state.parked.wake(job.key)
        self.answers.enter(job)

    def keep(self, statement: Statement) -> None:
        """Keep a statement until the end of the session without committing it."""
        self._kept.append(statement)
        self.pipelined.update(statement.promises)

    def close(self) -> dict[str, str]:
        """Undo everything that must not stay after the session.

        Returns:
            Nominations that changed: pod to node, empty for none.
        """
        changed = self.nominations.close(self.pipelined, self.nominated)
        for statement in reversed([*self._kept, *self._statements]):
            statement.abandon()
        self._kept.clear()
        for task in reversed(self.committed.promises):
            self.state.nodes.discard(task)
            if task.job:
                self.state.jobs[task.job].move(task, SchedulingStatus.PENDING)
        self.committed.promises.clear()
        return changed

    def end(self) -> None:
        """Let go of everything, so that memory is free at once and not only when the garbage collector finds what refers to itself.

        What plugins have kept of the view stays as it is, but for what the session has added to it.
        """
        self.view.end()
        vars(self).clear()
