"""Outcome of a job in a session: why it was refused, what it lacked, and handling of exceptions."""

from collections.abc import Callable, Hashable

from pumice.api.queues import Queue
from pumice.scheduler.budget import OverBudgetError, TimeShares
from pumice.scheduler.explain.sentences import FitFailure
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.results import Reason
from pumice.scheduler.session.statement import Statement
from pumice.scheduler.waiting.parked import Cause


class JobError(Exception):
    """An unexpected exception that concerns one job.

    Attributes:
        key: Key of the job.
        error: The exception.
    """

    def __init__(self, key: str, error: Exception) -> None:
        super().__init__(f"{key}: {error}")
        self.key = key
        self.error = error


class JobOutcome:
    """The result of a job in this session.

    Attributes:
        refusal: Why it was not tried, or not let in.
        failed: First pod for which there was no node, and why.
        beside: How many pods of its sub-group had a place.
        fit: How many sub-groups of its policy had all their places.
        nowhere: Why no domain of the network has room for the gang, or for the first of its sub-groups that found none.
        schedulable: How many pods would have had a place, had the whole gang fitted.
        refused: Pods that were not placed for a reason of their own, such as the queue's limit.
        causes: What its refusals depend on.
        likeness: See `Parked.likeness`.
        waits_for_queue: Whether a pod of it waits until pods that terminate count no more in its queue, or in one above it.
        is_over_share: Whether its queue had no room for it, or did not let it in.
        stays_in_line: Whether it has begun, so that it was not refused with the gangs behind one that does not fit.
    """

    refusal: Reason | None = None
    failed: tuple[TaskInfo, FitFailure] | None = None
    beside = 0
    fit = 0
    nowhere: Reason | None = None
    schedulable = 0
    likeness: Hashable = None
    refused: Reason | None = None
    causes = int(Cause.ITSELF)
    waits_for_queue = False
    is_over_share = False
    stays_in_line = False


def not_taken(job: JobInfo, queue: Queue | None) -> Reason:
    """Why its queue does not take a job."""
    details = {"queue": job.queue}
    if queue is None:
        reason, state = "QueueNotFound", ""
        message = f"queue {job.queue} does not exist; create it or name another in spec.queue"
    elif queue.is_open:
        reason, state = "QueueNotForNamespace", "Open"
        message = (
            f"queue {job.queue} is not for namespace {job.namespace}; name another in spec.queue"
        )
        details["namespace"] = job.namespace
    else:
        reason, state = "QueueClosed", queue.status.state
        message = f"queue {job.queue} is {state} and takes nothing in; it must be Open"
        details["state"] = state
    return Reason(reason, message, details, (job.queue, state))


class JobTurn:
    """The part of an action that concerns one job; see `Session.turn`."""

    def __init__(
        self,
        job: JobInfo,
        statements: list[Statement],
        fail: Callable[[str, Exception], None],
        time: TimeShares,
    ) -> None:
        self._fail = fail
        self._job = job
        self._statements = statements
        self._time = time
        self._before = len(statements)

    def __enter__(self) -> None:
        self._time.begin_turn()

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object
    ) -> bool:
        self._time.end_turn(self._job.namespace)
        if error is None:
            del self._statements[self._before :]
            return False
        try:
            if not isinstance(error, Exception):
                return False
            self._fail(self._job.key, error)
            for statement in reversed(self._statements[self._before :]):
                if isinstance(error, OverBudgetError):
                    statement.discard()  # no plugin has failed
                statement.give_up()
            return True
        finally:
            del self._statements[self._before :]
