"""The search for victims, of which actions are settings: how a gang gets its places, and what becomes of what was found.

A gang that is to be near to each other in the network, and every gang if gangs go as a whole, gets room for all of its pods at once,
in one of the domains of the network; others get it pod by pod, each on one of the nodes. It is one search: of the places that come into
question that is taken in which it costs least to evict the bundles that have to go. The evictions are decided together if they suffice;
otherwise they are undone, and it is recorded why they do not help.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from pumice.api.queues import Queue
from pumice.scheduler.eviction.attempt import EvictionAttempt, EvictionPlaces, FoundRoom
from pumice.scheduler.eviction.bounds import NodeBounds
from pumice.scheduler.eviction.domains import DomainPlaces, request_of
from pumice.scheduler.eviction.nodes import NodePlaces
from pumice.scheduler.eviction.room import gets_fewer
from pumice.scheduler.eviction.settings import EvictionRules, EvictionSetting
from pumice.scheduler.eviction.starving_jobs import kinds, lacking, may_help, waiting_tasks
from pumice.scheduler.eviction.survey import Surveys, tell_most
from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import ALLOCATED_LIKE, PENDING, TaskInfo
from pumice.scheduler.placing.domain_queue import seeks_domain
from pumice.scheduler.placing.filling import GangTurn
from pumice.scheduler.placing.requests import DomainRequest
from pumice.scheduler.results import Event
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement
from pumice.scheduler.session.victims import EvictionFailure


class Search:
    """The search of one action in one session.

    Attributes:
        surveys: Which running pods may go.
    """

    def __init__(self, session: Session, setting: EvictionSetting) -> None:
        self.session = session
        self.setting = setting
        self.surveys = Surveys(session)
        self._bounds: dict[Hashable, NodeBounds] = {}
        self._tentative: list[Hashable] = []
        self._places: dict[Hashable, int] = {}
        self._failed: dict[Hashable, str] = {}
        self._fewer: dict[Hashable, tuple[int, bool]] = {}

    @contextmanager
    def turn(self, job: JobInfo) -> Iterator[None]:
        """The part of an action that concerns one gang; see `Session.turn`. What is held for it is free for it."""
        session = self.session
        with session.turn(job), session.nominations.lifted(job):
            yield
        if job.key in session.errors:  # results computed from its decisions are invalid
            self._bounds.clear()
            self._tentative.clear()
            self.surveys.clear()

    def serve(
        self, rules: EvictionRules, queue: Queue, job: JobInfo, task: TaskInfo | None = None
    ) -> EvictionFailure | None:
        """Evict for pods of a gang, or one; None if it got enough, otherwise what the search shows, as far as it shows anything."""
        session = self.session
        are_near = self.setting.by_gang or seeks_domain(session, job)
        if not (are_near or may_help(session, self.surveys, rules, queue, job)):
            return EvictionFailure()
        tasks = [task] if task else waiting_tasks(session, job)
        if not tasks or not (are_near or self._may_suffice(rules, queue, job, tasks)):
            return EvictionFailure()
        turn = GangTurn(session, queue, job, session.statement())
        found: FoundRoom | EvictionFailure = EvictionFailure()
        if are_near:
            found = self._together(turn, rules, tasks)
        else:
            self._one_by_one(turn, rules, tasks)
        if isinstance(found, EvictionFailure):
            return None if self._finish(turn.statement, job, ()) else found
        return None if self._finish(turn.statement, job, found.broken) else EvictionFailure()

    def find(
        self, places: EvictionPlaces, statement: Statement, *, safe_last: bool = False
    ) -> FoundRoom | None:
        """The place where room costs least; None if there is room in none."""
        for place in places.each():
            places.last = EvictionAttempt(self.session, statement, place, safe_last=safe_last)
            places.last.run()
            found, best = places.last.found, places.best
            if found is not None and (best is None or found.cost < best.cost):
                places.best = found
        best = places.best
        places.forget()
        return best

    def _finish(self, statement: Statement, job: JobInfo, broken: Sequence[JobInfo]) -> bool:
        """Commit the evictions for a gang if they are enough for it; otherwise undo them.

        A gang that needs no victims is left to `allocate`, whether that comes before or after.
        """
        session, action = self.session, self.setting.name
        victims = statement.victims
        needs_none = not victims and "allocate" in session.view.actions  # there is room already
        if not len(statement) or needs_none or not session.answers.is_pipelined(job):
            if len(statement):
                statement.discard()
                self.discarded()
            return False
        if victims:
            session.nominated.update(statement.promises)
            session.transactions[action] = session.transactions.get(action, 0) + 1
        for task in victims:
            message = f"evicted to make room for PodGroup {job.key} of queue {job.queue} ({action})"
            event = Event("Pod", task.namespace, task.name, "Normal", "Preempted", message)
            session.events.append(event)
        if self.setting.by_gang:
            session.events.extend(_of_broken_gangs(broken, victims, job))
        session.outcome(job)
        session.commit(statement)
        self._tentative.clear()
        return True

    def discarded(self) -> None:
        """The decisions of a statement were undone: so are the results that depend on them."""
        for key in self._tentative:
            del self._bounds[key]
        self._tentative.clear()
        for bounds in self._bounds.values():
            bounds.undone()

    # -- pod by pod --------------------------------------------------------------------------

    def _may_suffice(
        self, rules: EvictionRules, queue: Queue, job: JobInfo, tasks: Sequence[TaskInfo]
    ) -> bool:
        """False if it is certain that fewer of the pods get places than their gang lacks, so that it could not keep them."""
        session, lacks = self.session, lacking(job)
        if session.extensions.promises_need_minimum and lacks > 0:
            if len(tasks) < lacks:
                return False
            if self._gets_fewer(rules, queue, job, lacks):
                return False
        asked: set[Hashable] = set()
        for task in tasks:
            session.time.check()
            preemptor = Preemptor(task, job, queue)
            kind = task.shape.number, rules.survey_class(preemptor)
            if kind not in asked and self._may_take(rules, preemptor):
                return True
            asked.add(kind)
        return False

    def _gets_fewer(self, rules: EvictionRules, queue: Queue, job: JobInfo, lacks: int) -> bool:
        """Whether a gang certainly gets fewer places than it lacks, because plugins let go too little for more; gangs with such pods share the answer.

        That it may get enough is not asked again after a decision: the search tells.
        """
        session = self.session
        if not tell_most(session, rules):
            return False
        asking = [Preemptor(task, job, queue) for task in kinds(job)]
        own = job.key if session.may_use_reserved(job.key) else ""
        key = frozenset(rules.preemptor_class(session, each) for each in asking), own, lacks
        now = len(session.touched.log)
        moment, is_fewer = self._fewer.get(key, (-1, True))
        if is_fewer and moment != now:
            is_fewer = gets_fewer(session, self.surveys, rules, asking, lacks)
            self._fewer[key] = now, is_fewer
        return is_fewer

    def _may_take(self, rules: EvictionRules, preemptor: Preemptor) -> bool:
        """False if the queue of a pod cannot take it, as far as is known, from whichever node all pods go that may."""
        session, running = self.session, self.session.view.running
        room = session.answers.room(preemptor.queue)
        needs = preemptor.task.shape.needs
        if room is None or all(need.amount <= room.item(need.column) for need in needs):
            return True
        usable = session.suiting(preemptor.task, preemptor.queue.metadata.name)
        rows = self.surveys.of(preemptor, rules).victims(usable, rules)
        given: Ints = np.zeros((len(usable), running.vectors.shape[1]), dtype=np.int64)
        np.add.at(given, running.node[rows], running.vectors[rows])
        columns = [need.column for need in needs]
        asked = preemptor.task.shape.vector[columns]
        return bool((usable & (room[columns] + given[:, columns] >= asked).all(axis=1)).any())

    def _one_by_one(self, turn: GangTurn, rules: EvictionRules, tasks: Sequence[TaskInfo]) -> None:
        """Evict for one pod of a gang after the other, and promise them their places, until it has enough."""
        session, queue, job, statement, *_ = turn
        kinds = {rules.preemptor_class(session, Preemptor(task, job, queue)) for task in tasks}
        counted = None
        if len(kinds) == 1 and not session.nominations and tasks[0].shape.peers is None:
            (counted,) = kinds
            if counted in self._places and self._places[counted] < lacking(job):
                return  # an earlier gang with such pods found fewer places, and decisions only make them fewer
        while tasks:
            placed = len(statement)
            left = self._try(turn, rules, tasks)
            if counted is not None and left:
                self._places[counted] = len(statement.promises)
            # A pod that others of its gang may give a node, by pod affinity or topology spread, is tried again after them.
            tasks = [task for task in left if task.shape.peers and task.shape.peers.may_be_helped]
            if len(statement) == placed:
                break

    def _try(
        self, turn: GangTurn, rules: EvictionRules, tasks: Sequence[TaskInfo]
    ) -> list[TaskInfo]:
        """Evict for one pod after the other; those that found no place."""
        session, queue, job, statement, *_ = turn
        answers = session.answers
        failed: set[Hashable] = set()
        left: list[TaskInfo] = []
        for task in tasks:
            session.time.check()
            if not answers.is_starving(job):
                break
            preemptor = Preemptor(task, job, queue)
            kind = rules.preemptor_class(session, preemptor)
            if kind in failed:
                left.append(task)
                continue
            if rules.setting.reclaims and answers.why_not_preemptive(queue, task) is not None:
                continue
            if self.place(preemptor, rules, statement) is None:
                failed.add(kind)
                left.append(task)
        return left

    def place(
        self, preemptor: Preemptor, rules: EvictionRules, statement: Statement
    ) -> FoundRoom | None:
        """Evict pods for a pod where that costs least, and promise it its place; None if that is not possible."""
        nodes = self.nodes(preemptor, rules, statement)
        found = nodes.free() or self.find(nodes, statement)
        if found is not None:
            self._apply(found, statement)
        return found

    def _apply(self, found: FoundRoom, statement: Statement) -> None:
        found.apply(statement)
        if found.broken:
            for bounds in self._bounds.values():
                bounds.broke(found.broken)

    def nodes(self, preemptor: Preemptor, rules: EvictionRules, statement: Statement) -> NodePlaces:
        """The nodes for a pod, with what is known of them from other pods of its class."""
        key = rules.preemptor_class(self.session, preemptor)
        known = self._bounds.get(key)
        if known is None:
            usable = self.session.suiting(preemptor.task, preemptor.queue.metadata.name)
            seen = self.surveys.of(preemptor, rules, tentative=bool(len(statement)))
            victims = seen.victims(usable, rules)
            known = self._bounds[key] = NodeBounds(self.session, preemptor, victims)
            if len(statement):
                self._tentative.append(key)
        known.let_ask(preemptor.job.key)
        return NodePlaces(self.session, rules, preemptor, known)

    # -- all pods of a gang ------------------------------------------------------------------

    def _together(
        self, turn: GangTurn, rules: EvictionRules, tasks: Sequence[TaskInfo]
    ) -> FoundRoom | EvictionFailure:
        """Evict for a gang, and promise it its places; what it would still lack if that is not possible, as far as that is known."""
        session, queue, job, statement, *_ = turn
        waiting = [each for each in job.tasks.values() if each.status is PENDING]
        if any(each.never_preempts for each in waiting) or not session.state.nodes.order:
            return EvictionFailure()
        needed = tasks
        if session.extensions.needs_minimum:
            needed = tasks[: max(lacking(job), 1)]
        if rules.setting.reclaims and (why := self._why_not_together(turn, needed)):
            return EvictionFailure(refused=why)
        if not may_help(session, self.surveys, rules, queue, job):
            return EvictionFailure()
        first = next((task for task in needed if not task.shape.is_empty), needed[0])
        together = np.sum([task.shape.vector for task in needed], axis=0)
        preemptor = Preemptor(first, job, queue, together)
        request = request_of(session, job)
        kind = self._kind(preemptor, rules, request, len(needed))
        if kind in self._failed:
            return EvictionFailure(lacks=self._failed[kind])
        setting = rules.setting
        seen = self.surveys.of(preemptor, rules)
        while True:
            domains = DomainPlaces(turn, rules, preemptor, request, seen)
            found = self.find(domains, statement, safe_last=not setting.priority_first)
            if found is not None:
                self._apply(found, statement)
                return found
            if self.surveys.is_current(seen):
                self._failed[kind] = domains.lacks
                return EvictionFailure(lacks=domains.lacks)
            seen = self.surveys.of(preemptor, rules, current=True)  # for what is said of it

    def _kind(
        self, preemptor: Preemptor, rules: EvictionRules, request: DomainRequest, needed: int
    ) -> Hashable:
        """Equal for gangs of which one finds too little if another one did; decisions only leave less."""
        session, job = self.session, preemptor.job
        if session.nominations or job.sub_groups is not None or job.group is None:
            return job.key
        kinds = Counter(session.alike(task) for task in request.pods)
        asks = rules.preemptor_class(session, preemptor), frozenset(kinds.items()), needed
        return *asks, request.limit.tier, request.limit.is_hard

    def _why_not_together(self, turn: GangTurn, tasks: Sequence[TaskInfo]) -> str:
        """Why a queue may not take back what several pods need together, wherever they go; empty if it may."""
        session, queue, _, statement, *_ = turn
        anywhere = session.state.nodes.order[0]
        try:
            for number, task in enumerate(tasks):
                session.time.check()
                why = session.answers.why_not_preemptive(queue, task)
                if why is not None:
                    enough = f"after {number} of {len(tasks)} pods, " if number else ""
                    return enough + why.message
                statement.pipeline(task, anywhere)
            return ""
        finally:
            statement.discard()

    # -- why it does not help ----------------------------------------------------------------

    def explain(self, rules: EvictionRules, job: JobInfo, failure: EvictionFailure) -> None:
        """Record why evictions did not help a gang, for a pod like the one in its reason; `failure` is what its search shows."""
        first = _reported(self.session, job) if job.key in self.surveys.told else None
        if first is None:
            return
        queue = self.session.state.queues[job.queue]
        if failure.refused:
            self._note_refusal(job, failure.refused)
        elif not self.setting.reclaims or not self._is_refused(queue, job, first):
            self.surveys.note_spared(Preemptor(first, job, queue), rules, failure.lacks)

    def report_refusal(self, queue: Queue, job: JobInfo) -> None:
        """Record that its queue refuses to reclaim for a gang for which no running pod is a candidate."""
        answers = self.session.answers
        if answers.is_starving(job) and answers.why_invalid(job) is None:
            first = _reported(self.session, job)
            if first is not None:
                self._is_refused(queue, job, first)

    def _is_refused(self, queue: Queue, job: JobInfo, first: TaskInfo) -> bool:
        """Whether a queue refuses to reclaim for a pod; this is recorded unless it is the reason of its gang already."""
        if job.never_preempts or first.never_preempts:
            return False
        refusal = self.session.answers.why_not_preemptive(queue, first)
        if refusal is None:
            return False
        outcome = self.session.outcomes.get(job.key)
        if outcome is None or outcome.refused != refusal:
            self._note_refusal(job, refusal.message)
        return True

    def _note_refusal(self, job: JobInfo, why: str) -> None:
        action = self.setting.name
        noted = self.session.spared.setdefault(job.key, {})
        noted[action] = EvictionFailure(action, refused=why)


def _of_broken_gangs(
    gangs: Sequence[JobInfo], victims: Sequence[TaskInfo], job: JobInfo
) -> Iterator[Event]:
    """What the owners of gangs are told that lose their minimum by evictions that have been decided."""
    counts = Counter(task.job for task in victims)
    for broken in gangs:
        count = counts[broken.key]
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
