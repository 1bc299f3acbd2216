"""The search for victims, of which actions are settings: how a gang gets its places, and what becomes of what was found.

A gang that is to be near to each other in the network, and every gang if gangs go as a whole, gets room for all of its pods at once,
bundle by bundle in the best domain; others pod by pod. The evictions are decided together if they suffice; otherwise they are
undone, and it is recorded why they do not help.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pumice.api.queues import Queue
from pumice.scheduler.eviction.gang_search import GangSearch, lost_minimum
from pumice.scheduler.eviction.pod_search import PodSearch
from pumice.scheduler.eviction.settings import EvictionRules, EvictionSetting
from pumice.scheduler.eviction.survey import Surveys
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import ALLOCATED_LIKE, PENDING, TaskInfo
from pumice.scheduler.placing.domain_queue import seeks_domain
from pumice.scheduler.results import Event
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement
from pumice.scheduler.session.victims import EvictionFailure

__all__ = ["Search"]


class Search:
    """The search of one action in one session.

    Attributes:
        surveys: Which running pods may go.
        pods: The search for one pod after the other.
    """

    def __init__(self, session: Session, setting: EvictionSetting) -> None:
        self._session = session
        self._setting = setting
        self.surveys = Surveys(session)
        self.pods = PodSearch(session, self.surveys)
        self._gangs = GangSearch(session, self.surveys)

    @contextmanager
    def turn(self, job: JobInfo) -> Iterator[None]:
        """The part of an action that concerns one gang; see `Session.turn`. What is held for it is free for it."""
        session = self._session
        with session.turn(job), session.nominations.lifted(job):
            yield
        if job.key in session.errors:  # results computed from its decisions are invalid
            self.pods.clear()
            self.surveys.clear()

    def serve(
        self, rules: EvictionRules, queue: Queue, job: JobInfo, tasks: Sequence[TaskInfo]
    ) -> tuple[bool, EvictionFailure | None]:
        """Evict for pods of a gang.

        Returns:
            Whether the gang got enough, and what the search shows if it did not, as far as it shows anything.
        """
        session = self._session
        if not tasks:
            return False, None
        statement, failure = session.statement(), None
        if self._setting.by_gang or seeks_domain(session, job):
            failure = self._gangs.seek(rules, queue, job, tasks, statement)
        else:
            self.pods.seek(rules, queue, job, tasks, statement)
        return self._finish(statement, job), failure

    def _finish(self, statement: Statement, job: JobInfo) -> bool:
        """Commit the evictions for a gang if they are enough for it; otherwise undo them.

        A gang that needs no victims is left to `allocate`, whether that comes before or after.
        """
        session, action = self._session, self._setting.name
        victims = statement.victims
        needs_none = not victims and "allocate" in session.view.actions  # there is room already
        if not len(statement) or needs_none or not session.answers.is_pipelined(job):
            if len(statement):
                statement.discard()
                self.pods.discarded()
            return False
        if victims:
            session.nominated.update(statement.promises)
            session.transactions[action] = session.transactions.get(action, 0) + 1
        for task in victims:
            message = f"evicted to make room for PodGroup {job.key} of queue {job.queue} ({action})"
            event = Event("Pod", task.namespace, task.name, "Normal", "Preempted", message)
            session.events.append(event)
        if self._setting.by_gang:
            session.events.extend(_of_broken_gangs(session, victims, job))
        session.outcome(job)
        session.commit(statement)
        self.pods.committed()
        return True

    # -- why it does not help ----------------------------------------------------------------

    def explain(
        self, rules: EvictionRules, job: JobInfo, failure: EvictionFailure | None = None
    ) -> None:
        """Record why evictions did not help a gang, for a pod like the one in its reason; `failure` is what its search shows."""
        first = _reported(self._session, job) if job.key in self.surveys.told else None
        if first is None:
            return
        queue = self._session.state.queues[job.queue]
        if failure is not None and failure.refused:
            self._note_refusal(job, failure.refused)
        elif not self._setting.reclaims or not self._is_refused(queue, job, first):
            lacks = failure.lacks if failure is not None else ""
            self.surveys.note_spared(Preemptor(first, job, queue), rules, lacks)

    def report_refusal(self, queue: Queue, job: JobInfo) -> None:
        """Record that its queue refuses to reclaim for a gang for which no running pod is a candidate."""
        answers = self._session.answers
        if answers.is_starving(job) and answers.why_invalid(job) is None:
            first = _reported(self._session, job)
            if first is not None:
                self._is_refused(queue, job, first)

    def _is_refused(self, queue: Queue, job: JobInfo, first: TaskInfo) -> bool:
        """Whether a queue refuses to reclaim for a pod; this is recorded unless it is the reason of its gang already."""
        if job.never_preempts or first.never_preempts:
            return False
        refusal = self._session.answers.why_not_preemptive(queue, first)
        if refusal is None:
            return False
        outcome = self._session.outcomes.get(job.key)
        if outcome is None or outcome.refused != refusal:
            self._note_refusal(job, refusal.message)
        return True

    def _note_refusal(self, job: JobInfo, why: str) -> None:
        action = self._setting.name
        noted = self._session.spared.setdefault(job.key, {})
        noted[action] = EvictionFailure(action, refused=why)


def _of_broken_gangs(
    session: Session, victims: Sequence[TaskInfo], job: JobInfo
) -> Iterator[Event]:
    """What the owners of gangs are told that lose their minimum by evictions that have been decided."""
    for other, count in lost_minimum(session, victims).items():
        broken = session.state.jobs[other]
        left = sum([broken.counts[status] for status in ALLOCATED_LIKE])
        pods = f"{count} pod{'' if count == 1 else 's'}"
        what = (
            f"evicted below its minimum ({pods}; {left} left)"
            if left
            else f"evicted as a whole ({pods})"
        )
        message = f"{what} for {job.key} (priority {job.order_priority})"
        yield Event("PodGroup", broken.namespace, broken.name, "Normal", "GangPreempted", message)


def _reported(session: Session, job: JobInfo) -> TaskInfo | None:
    """The first pod like the one in the reason of a gang; one for which others may be evicted comes first."""
    tasks = [task for task in job.tasks.values() if task.status is PENDING]
    outcome = session.outcomes.get(job.key)
    if outcome is not None and outcome.failed is not None:
        tasks = [task for task in tasks if task.shape is outcome.failed[0].shape]
    return min(tasks, key=lambda task: (task.never_preempts, task.order), default=None)
