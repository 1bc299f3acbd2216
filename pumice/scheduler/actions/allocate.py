"""allocate: place the pods of gangs that are in their queue.

The turn of a gang lasts until its minimum is placed, which is then committed. Further pods wait for another turn. If
the minimum cannot be placed, all placements are undone, and the reason is kept.

Unlike Volcano's, this action places pods without requests too: each is part of its gang like any other pod. Action
`backfill` has the same code look again at what is left.
"""

from collections.abc import Callable, Collection, Iterator

import numpy as np

from pumice.api.queues import Queue
from pumice.scheduler.actions.fifo import hold_back, leave
from pumice.scheduler.arguments import ERROR_CACHE, Arguments
from pumice.scheduler.fairness.fair_shares import DominantShare
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import PENDING, TaskInfo
from pumice.scheduler.placing.domain_queue import DomainQueue, to_try
from pumice.scheduler.placing.filling import Filling, GangTurn
from pumice.scheduler.placing.pod_queue import PodQueue
from pumice.scheduler.placing.units import Units
from pumice.scheduler.results import Reason
from pumice.scheduler.session.outcomes import JobOutcome
from pumice.scheduler.session.session import Session
from pumice.scheduler.specs import ActionSpec
from pumice.scheduler.waiting.parked import Cause, bounds
from pumice.scheduler.waiting.priority_queue import PriorityQueue


def run(session: Session, _arguments: Arguments) -> None:
    """Give every queue its turns until no queue has pods left to try."""
    place_gangs(session, session.view.waiting)


def place_gangs(
    session: Session, waiting: Collection[JobInfo], *, only_empty: bool = False
) -> None:
    """Place pods of gangs, in the order of queues, gangs and pods; with `only_empty` those without requests, also of overused queues."""
    if "enqueue" in session.view.actions:
        waiting = session.in_queue(waiting)
    if not waiting:
        return
    turns = _Turns(session, waiting, only_empty=only_empty)
    answers = session.answers
    lines = answers.by_queue(turns.waiting, turns.takes_part, session.fail)
    if not lines:
        return
    queues = answers.ordered_queues(session.state.queues[name] for name in lines)
    while queues:
        queue = queues.first()
        line = lines[queue.metadata.name]
        if not line:
            queues.pop()
        elif not only_empty and answers.is_overused(queue):
            queues.pop()
            _refuse_all(session, queue, line, turns.may_have)
        else:
            turns.take(queue, line)


Line = PriorityQueue[JobInfo]
"""The gangs of a queue that wait for a turn."""


class _Turns:
    """The turns of gangs, without those that would be refused as before.

    Which ones these are is found out for all of them at the beginning. Once something was decided, each is asked about when it would
    have its turn; when many were, all are compared again: the more wait, the more this costs, so it is done ever less often.

    Attributes:
        waiting: The gangs that are not refused from the beginning.
    """

    def __init__(self, session: Session, waiting: Collection[JobInfo], *, only_empty: bool) -> None:
        self._session = session
        self._only_empty = only_empty
        self._refused = session.refused.again(waiting)
        self._moment = len(session.touched.log)
        self._asked, self._patience = 0, 1
        self._left: dict[str, PodQueue | Units | DomainQueue] = {}
        session.skipped |= self._refused
        self.waiting = [job for job in waiting if job.key not in self._refused]
        self._late = {  # most of these are refused again before they would have their turn
            job.key
            for job, _ in session.refused.before(session.in_queue(self.waiting))
            if job.counts[PENDING] and job.queue in session.state.queues
        }

    def takes_part(self, job: JobInfo) -> bool:
        """Whether a gang may have a turn, as far as is known before its turn has come."""
        return job.key in self._late or self._may_be_tried(job)

    def may_have(self, job: JobInfo) -> bool:
        """Whether a gang that takes part may have its turn now."""
        return job.key not in self._late or self._may_be_tried(job)

    def _may_be_tried(self, job: JobInfo) -> bool:
        if admitted(self._session, job) is None:
            return False
        return next(_candidates(job, only_empty=self._only_empty), None) is not None

    def take(self, queue: Queue, line: Line) -> None:
        """Give the next gang of a queue its turn; the last one also if it is refused as before, for those that are to wait behind it."""
        session = self._session
        if self._moment != len(session.touched.log):
            self._refused = set()  # something was decided since
        job = line.pop()
        while is_refused := self._is_refused(job):
            self._drop_refused(line)
            if not line:
                break
            job = line.pop()
        if not session.reaches(job):
            leave(session, queue, line)
            return
        with session.turn(job):
            left = self._left.get(job.key)
            if left is None and not is_refused and self.may_have(job):
                candidates = _candidates(job, only_empty=self._only_empty)
                left = self._left[job.key] = to_try(session, job, candidates)
            if left:
                with session.nominations.lifted(job):
                    has_more = _turn(session, queue, job, left) and left
                if has_more:
                    line.push(job)
            answers = session.answers
            if queue.is_fifo and not (answers.is_ready(job) or answers.is_pipelined(job)):
                hold_back(session, queue, job, line)

    def _is_refused(self, job: JobInfo) -> bool:
        """Whether a gang that has had no turn would be refused as before; it is left out then."""
        if job.key in self._left:
            return False
        if job.key not in self._refused:
            if not self._session.is_refused_as_before(job):
                return False
            self._asked += 1
        self._session.skipped.add(job.key)
        return True

    def _drop_refused(self, line: Line) -> None:
        """Leave out those behind a gang that would be refused as before, as far as they are known to be, too."""
        session = self._session
        moment = len(session.touched.log)
        if self._moment != moment and self._asked >= self._patience:
            self._moment, self._asked, self._patience = moment, 0, 2 * self._patience
            self._refused = session.refused.at_a_glance(self.waiting) - self._left.keys()
        refused = line.pop_while(lambda job: job.key in self._refused)
        session.skipped.update([job.key for job in refused])


def admitted(session: Session, job: JobInfo) -> Queue | None:
    """The queue of a job that may be tried; otherwise None, and the reason is recorded.

    Without action `enqueue`, a job enters its queue here, also before it has pods: they are created once it has entered.
    """
    if job.group is None:
        return None
    is_pending, has_pending = session.is_pending(job), job.has_pending
    if "enqueue" in session.view.actions if is_pending else not has_pending:
        return None
    queue = session.queue_of(job)
    if queue is None:
        return None
    if is_pending:
        session.enter(job)
    if not has_pending:
        return None
    invalid = session.answers.why_invalid(job)
    if invalid is not None:
        outcome = session.outcome(job)
        outcome.refusal = invalid
        outcome.causes |= session.extensions.causes["valid"]
        return None
    return queue


def _candidates(job: JobInfo, *, only_empty: bool = False) -> Iterator[TaskInfo]:
    for task in job.tasks.values():
        if task.status is PENDING and not task.gates and (not only_empty or task.shape.is_empty):
            yield task


def _refuse_all(
    session: Session,
    queue: Queue,
    line: Line,
    may_be_tried: Callable[[JobInfo], bool],
) -> None:
    name = queue.metadata.name
    generic = Reason(
        "QueueOverused",
        f"queue {name} has all that it deserves; it gets more when no other queue wants it",
        {"queue": name},
        (name,),
    )
    while line:
        job = line.pop()
        with session.turn(job):
            if not may_be_tried(job):
                continue
            outcome = session.outcome(job)
            outcome.is_over_share = True
            outcome.causes |= session.extensions.causes["share"]
            first = min(_candidates(job), key=session.answers.task_key)
            outcome.refusal = session.answers.why_not_allocatable(queue, first) or generic


def _turn(
    session: Session, queue: Queue, job: JobInfo, tasks: PodQueue | Units | DomainQueue
) -> bool:
    """Try pods of a job until it is ready or cannot become so; True when it may have another turn."""
    statement = session.statement()
    outcome = session.outcome(job)
    turn = GangTurn(session, queue, job, statement)
    filling = Filling(turn, outcome)
    is_ready = tasks.fill(turn, outcome) if isinstance(tasks, DomainQueue) else filling.fill(tasks)
    if is_ready:
        filling.keep_whole()
        session.commit(statement)
        _open_gates(session, queue, job, outcome)
        return True
    if session.answers.is_pipelined(job):
        session.keep(statement)
        # Its pipelined pods are held only in this session, so it must be tried in each session.
        outcome.causes, outcome.is_over_share = int(Cause.ANY), False
    else:
        outcome.schedulable = outcome.schedulable or len(statement.placements)
        is_alone = isinstance(tasks, PodQueue) and not len(statement)
        statement.discard()
        if outcome.failed is not None:
            outcome.likeness = session.refused.refuse(job)
            # A pod that lacks room before any other of its gang has a place lacks it after them, too.
            ranking = session.ranking(outcome.failed[0], queue.metadata.name)
            lacks_room = is_alone and ranking.counts_room_only
            if not lacks_room and _fits_largest_first(turn, tasks, outcome):
                return False
        _open_gates(session, queue, job, outcome)
    return False


def _fits_largest_first(
    turn: GangTurn, tried: PodQueue | Units | DomainQueue, outcome: JobOutcome
) -> bool:
    """Place a gang that has just failed with its largest pods first, which leaves less room that is too small for them.

    Only a gang that needs all its pods, so that their order does not decide which of them are placed; and only where the
    nodes have room enough by arithmetic.
    """
    session, _, job, statement, *_ = turn
    if isinstance(tried, DomainQueue):
        return False  # it has tried that in each domain
    if len(job.tasks) < 2 or outcome.refused is not None or outcome.failed is None:
        return False
    tasks = list(tried.waiting())
    shapes = {task.shape.number for task in tasks}
    if len(shapes) < 2 or job.min_member - job.ready != len(tasks):
        return False
    if session.refused.has_too_few_places(job, bounds(outcome.failed[0].shape, tasks, len(tasks))):
        return False
    share = DominantShare(session.view.total())
    largest = PodQueue(session, job, tasks, lambda task: -share.of(task.shape.vector))
    again = JobOutcome()
    if not Filling(turn, again).fill(largest):
        statement.discard()
        return False
    session.outcomes[job.key] = again
    session.commit(statement)
    return True


def _open_gates(session: Session, queue: Queue, job: JobInfo, outcome: JobOutcome) -> None:
    """Request the removal of the gates of a job's pods, if they lack only nodes: their queue has room for all of them."""
    if not session.state.opens_gates or outcome.failed is None or outcome.refused is not None:
        return
    held = [task for task in _candidates(job) if task.is_held]
    if any(session.answers.why_not_allocatable(queue, task) for task in held):
        return
    if held and session.answers.has_room(
        queue, np.sum([task.shape.vector for task in held], axis=0)
    ):
        session.opened.update(task.key for task in held)


SPEC = ActionSpec(
    name="allocate",
    summary="Places the pods of gangs, whole gangs or nothing.",
    run=run,
    arguments=(ERROR_CACHE,),
)
