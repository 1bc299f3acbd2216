"""Combination of the plugins' answers: orders, and what may happen to gangs, queues and pods.

Answers are combined as in Volcano: an order is decided by the first plugin that distinguishes two elements, all checks
must agree, and votes count tier by tier.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from functools import cached_property, reduce
from itertools import groupby, pairwise
from typing import TypeVar

import numpy as np

from pumice.api.meta import parse_time
from pumice.api.queues import Queue
from pumice.scheduler.explain.deficits import lacks
from pumice.scheduler.model.axis import Axis, Bools, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.rows import TouchedRows
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.points import Extension, Extensions, QueueGroups, Refusal, SortKey, Vote
from pumice.scheduler.results import Reason
from pumice.scheduler.session.outcomes import JobError
from pumice.scheduler.session.victims import Reversed
from pumice.scheduler.waiting.priority_queue import PriorityQueue
from pumice.scheduler.waiting.queue_tournament import QueueTournament

T = TypeVar("T")

_LISTED = 5
"""Resources that a reason names at most."""


class PluginAnswers:
    """The plugins' answers in one session."""

    def __init__(self, extensions: Extensions, axis: Axis, touched: TouchedRows) -> None:
        self._extensions = extensions
        self._touched = touched
        self._axis = axis
        self._created: dict[str, float] = {}
        self._impossible: dict[int, Reason | None] = {}
        self._queue_room: dict[str, tuple[int, Ints]] = {}
        self._gate: dict[Hashable, Reason | None] = {}
        self._gate_moment = 0

    # -- orders ------------------------------------------------------------------------------

    def queue_key(self, queue: Queue) -> SortKey:
        """Sort key of a queue; age and name decide last."""
        self._touched.keys_taken += 1
        keys = [each.call(queue) for each in self._extensions.queue_order]
        name = queue.metadata.name
        created = self._created.get(name)
        if created is None:
            created = self._created[name] = parse_time(queue.metadata.creation_timestamp) or 0.0
        return (*keys, created, name)

    def job_key(self, job: JobInfo) -> SortKey:
        """Sort key of a job in its queue.

        Raises:
            JobError: A plugin failed; orders are also asked for outside of the job's turn.
        """
        return (*self.job_rank(job), job.created, job.key)

    def job_rank(self, job: JobInfo) -> SortKey:
        """The plugins' part of a job's sort key, without age and name.

        Raises:
            JobError: A plugin failed.
        """
        self._touched.keys_taken += 1
        try:
            return tuple([each.call(job) for each in self._extensions.job_order])
        except Exception as error:
            raise JobError(job.key, error) from error

    @cached_property
    def task_key(self) -> Callable[[TaskInfo], SortKey]:
        """Sort key of a pod among the pods of its job."""
        calls = [each.call for each in self._extensions.task_order]
        if len(calls) != 1:
            return lambda task: (*[call(task) for call in calls], task.order)
        (call,) = calls
        return lambda task: (call(task), task.order)

    def ordered_queues(self, queues: Iterable[Queue]) -> PriorityQueue[Queue] | QueueTournament:
        """Queues in a priority queue, which compares keys as they are when the first one is asked for."""
        waiting = list(queues)
        found = self._empty_order() if len(waiting) > 1 else PriorityQueue(self.queue_key)
        for queue in waiting:
            found.push(queue)
        return found

    def _empty_order(self) -> PriorityQueue[Queue] | QueueTournament:
        groups = self._extensions.queue_groups
        if self._are_grouped:
            path = next((each.path for each in groups if each.path is not None), None)
            epochs = [each.epoch for each in groups if each.epoch is not None]
            return QueueTournament(self.queue_key, self._touched.queues, path, epochs)
        return self._lazily_ordered()

    @cached_property
    def _are_grouped(self) -> bool:
        """Whether all orders of queues have groups, and they are the same."""
        groups = self._extensions.queue_groups
        return len(groups) == len(self._extensions.queue_order) and _agree(groups)

    def _lazily_ordered(self) -> PriorityQueue[Queue]:
        """The same if a decision may change any key; all are taken again when an eviction or an undone placement has made a share smaller."""
        epochs, touched = self._extensions.queue_epochs, self._touched
        kept: dict[str, tuple[int, int, SortKey]] = {}

        def epoch() -> int:
            if not epochs:
                return touched.queue_epoch
            return touched.queue_epoch + sum([each() for each in epochs])

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

        return PriorityQueue(key, epoch)

    def ordered_jobs(self) -> PriorityQueue[JobInfo]:
        """A priority queue of jobs; unless a plugin says so, a key does not grow while its job waits."""
        moves = self._extensions.moving_job_order
        return PriorityQueue(self.job_key, lambda: self._touched.job_epoch, moves=moves)

    def by_queue(
        self,
        jobs: Iterable[JobInfo],
        takes_part: Callable[[JobInfo], bool],
        fail: Callable[[str, Exception], None],
    ) -> dict[str, PriorityQueue[JobInfo]]:
        """Jobs that take part in an action, by queue.

        Args:
            jobs: The jobs.
            takes_part: Whether one of them does.
            fail: Called with the key of a job about which this, or a plugin, raised.
        """
        found: dict[str, list[JobInfo]] = {}
        for job in jobs:
            try:
                if takes_part(job):
                    found.setdefault(job.queue, []).append(job)
            except Exception as error:  # nothing is placed here, so that there is nothing to undo
                fail(job.key, error)
        return {name: self._line(those, fail) for name, those in found.items()}

    def _line(
        self, jobs: Sequence[JobInfo], fail: Callable[[str, Exception], None]
    ) -> PriorityQueue[JobInfo]:
        """Jobs of a queue in order; one function after the other is asked about all of them."""
        line = self.ordered_jobs()
        if len(jobs) > 1:
            with suppress(Exception):  # the job about which it is raised is found below
                ranks = [list(map(each.call, jobs)) for each in self._extensions.job_order]
                last = [job.created for job in jobs], [job.key for job in jobs]
                self._touched.keys_taken += len(jobs)
                line.begin(jobs, zip(*ranks, *last, strict=True))
                return line
        for job in jobs:
            try:
                line.push(job)
            except Exception as error:
                fail(job.key, error)
        return line

    # -- queries ---------------------------------------------------------------------------

    def why_invalid(self, job: JobInfo) -> Reason | None:
        """Why a job cannot be tried at all."""
        for each in self._extensions.job_valid:
            reason = each.call(job)
            if reason is not None:
                return reason
        return None

    def gate_class(self, job: JobInfo) -> Hashable:
        """Equal for jobs that may enter their queue alike, until their PodGroups or pods change, or a priority or the configuration does."""
        said = [each(job) for each in self._extensions.gate_classes]
        needs = frozenset(job.min_resources.items())
        return job.queue, job.namespace, job.order_priority, needs, *said

    def why_not_enqueueable(self, job: JobInfo, alike: Hashable) -> Reason | None:
        """Why a job may not enter its queue, by votes; a resource that no node has is missing in the cluster.

        Args:
            job: The job.
            alike: Its `gate_class`; the answer is that of the first such job until one enters or a pod is placed.
        """
        moment = len(self._touched.log)
        if moment != self._gate_moment:
            self._gate.clear()
            self._gate_moment = moment
        if alike not in self._gate:
            self._gate[alike] = _in_words(self._kept_out(job, frozenset()))
        return self._gate[alike]

    def why_barred(self, job: JobInfo) -> Reason | None:
        """Why a job may not enter its queue if nodes are reserved for it, so that votes about room on nodes do not count."""
        return _in_words(self._kept_out(job, self._extensions.node_gates))

    def is_kept_out(self, job: JobInfo) -> bool:
        """Whether a job may not enter its queue; the reason is not put into words."""
        return self._kept_out(job, frozenset()) is not None

    def kept_out(self, jobs: Sequence[JobInfo]) -> list[JobInfo]:
        """Those of some jobs of one queue and priority that need more than any job that a plugin of the first tier lets in."""
        found = self._extensions
        # What the first tier refuses no permission of a later one lets in.
        rooms = [
            each(jobs[0])
            for tier, each in found.gate_rooms
            if tier == found.job_enqueueable[0].tier
        ]
        if not rooms:
            return []
        room = reduce(np.minimum, rooms).tolist()
        return [job for job in jobs if lacks(job, room)]

    def enter(self, job: JobInfo) -> None:
        """Tell plugins that a job has entered its queue."""
        self._gate.clear()
        for each in self._extensions.job_enqueued:
            each.call(job)

    def _kept_out(self, job: JobInfo, nodes: Set[str]) -> Reason | Refusal | None:
        """Why a job may not enter its queue, whatever these plugins have against it."""
        if self._extensions.job_enqueueable and not self._axis.has_all(job.min_resources.keys()):
            unknown = sorted(each for each in job.min_resources if self._axis.find(each) is None)
            listed = ", ".join(unknown[:_LISTED]) + (", …" if len(unknown) > _LISTED else "")
            message = f"no node has {listed}"
            details = {"resources": unknown[:_LISTED]}
            return Reason("NotEnoughResources", message, details, tuple(unknown))
        permitted: int | None = None  # the tier that permits it; no later one is asked
        for each in self._extensions.job_enqueueable:
            if permitted not in (None, each.tier):
                return None
            vote = each.call(job)
            if vote is Vote.PERMIT:
                permitted = each.tier
            elif each.plugin not in nodes:
                if not isinstance(vote, Vote):
                    return vote
                if vote is Vote.REJECT:
                    message = f"plugin {each.plugin} does not let it in"
                    return Reason("Rejected", message, causes=(each.plugin,))
        return None

    def is_ready(self, job: JobInfo) -> bool:
        """True if the placements of a job may be committed."""
        for each in self._extensions.job_ready:  # noqa: SIM110 - asked several times for each gang
            if not each.call(job):
                return False
        return True

    def lacking(self, job: JobInfo) -> int:
        """How many pods more a job must have to be ready; at least 1, as far as is known."""
        return max(1, job.lacking) if self._extensions.needs_minimum else 1

    def is_pipelined(self, job: JobInfo) -> bool:
        """True if a job may keep its pipelined pods until the end of the session, by votes."""
        for _, tier in _tiers(self._extensions.job_pipelined):
            votes = [each.call(job) for each in tier]
            if Vote.REJECT in votes:
                return False
            if Vote.PERMIT in votes:
                return True
        return True

    def is_starving(self, job: JobInfo) -> bool:
        """Whether a job is below what it needs; the first tier that has an opinion decides."""
        points = self._extensions.job_starving
        for each in points:
            if each.tier != points[0].tier:
                break
            if not each.call(job):
                return False
        return bool(points)

    def is_overused(self, queue: Queue) -> bool:
        """True if a queue has all that it may have."""
        for each in self._extensions.overused:  # noqa: SIM110 - asked for each gang
            if each.call(queue):
                return True
        return False

    def why_not_allocatable(self, queue: Queue, task: TaskInfo) -> Reason | None:
        """Why a queue cannot take a pod."""
        for each in self._extensions.allocatable:
            reason = each.call(queue, task)
            if reason is not None:
                return reason
        return None

    def has_room(self, queue: Queue, needs: Ints) -> bool:
        """True if a queue may still take these amounts, as far as known; amounts that are not needed are not checked."""
        return not self.lack_room(queue, needs[np.newaxis])[0]

    def lack_room(self, queue: Queue, needs: Ints) -> Bools:
        """Which of several amounts, by row and column, a queue may not take any more, as far as known."""
        room = self.room(queue)
        if room is None:
            return np.zeros(len(needs), dtype=np.bool_)
        lack: Bools = np.logical_or.reduce((needs > room) & (needs > 0), axis=1)
        return lack

    def room(self, queue: Queue) -> Ints | None:
        """What a queue may still take, by column; None if no plugin says it."""
        if not self._extensions.queue_room:
            return None
        moment, name = len(self._touched.queues), queue.metadata.name
        known = self._queue_room.get(name)
        if known is None or known[0] != moment:
            rooms = [each(queue) for each in self._extensions.queue_room]
            known = self._queue_room[name] = moment, reduce(np.minimum, rooms)
        return known[1]

    def waits(self, queue: Queue, task: TaskInfo, leaving: Ints) -> bool:
        """Whether a queue has room for a pod only once pods that terminate have ended, which hold `leaving`."""
        return any(each(queue, task, leaving) for each in self._extensions.queue_waits)

    def why_not_preemptive(self, queue: Queue, task: TaskInfo) -> Reason | None:
        """Why a queue may not take back from others what a pod needs."""
        return _first(each.call(queue, task) for each in self._extensions.preemptive)

    def may_take_back(self, queue: Queue, needs: Ints) -> bool:
        """False if a queue may not take back from others what several pods need together, as far as known."""
        rooms = [each(queue) for each in self._extensions.preemptive_room]
        return not any(np.any((needs > room) & (needs > 0)) for room in rooms)

    def victim_queue_key(self, queue: Queue, preemptor: Queue) -> SortKey:
        """Place of a queue among those whose pods go for another queue; compare only with keys of the same session."""
        keys = [each.call(queue, preemptor) for each in self._extensions.victim_queue_order]
        return (*keys, Reversed(self.queue_key(queue)))

    def why_impossible(self, shape: PodShape) -> Reason | None:
        """Why pods of a shape cannot be placed whatever the nodes are."""
        number = shape.number
        if number not in self._impossible:
            reasons = (each.call(shape) for each in self._extensions.pod_check)
            self._impossible[number] = _first(reasons)
        return self._impossible[number]


def _agree(groups: Iterable[QueueGroups]) -> bool:
    """Whether queues have the same groups for all orders that have groups."""
    with_paths = [(each.path, each.names) for each in groups if each.path is not None]
    return all(
        tuple(path(name)) == tuple(other(name))
        for (path, names), (other, _) in pairwise(with_paths)
        for name in names
    )


def _in_words(found: Reason | Refusal | None) -> Reason | None:
    return found if found is None or isinstance(found, Reason) else found()


def _first(reasons: Iterable[Reason | None]) -> Reason | None:
    return next((reason for reason in reasons if reason is not None), None)


def _tiers(points: Sequence[Extension[T]]) -> Iterator[tuple[int, Iterator[Extension[T]]]]:
    return groupby(points, key=lambda point: point.tier)
