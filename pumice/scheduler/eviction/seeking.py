"""The two ways to make room for a gang: pod by pod on the cheapest nodes, or bundle by bundle for the whole gang."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Protocol

import numpy as np

from pumice.api.queues import Queue
from pumice.scheduler.eviction.allowed import EvictionRules
from pumice.scheduler.eviction.bundles import BundleChoice
from pumice.scheduler.eviction.gang_search import GangSearch
from pumice.scheduler.eviction.search import Search
from pumice.scheduler.eviction.starving_jobs import lacking, may_help, waiting_tasks
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement
from pumice.scheduler.session.victims import EvictionFailure

__all__ = ["BundleSeeker", "PodSeeker", "Seeker"]


class Seeker(Protocol):
    """A way to make room."""

    def seek(
        self, rules: EvictionRules, queue: Queue, job: JobInfo, statement: Statement
    ) -> EvictionFailure | None:
        """Evict for a gang, and promise its pods their places; what the search shows if it gets too few, as far as it shows anything."""


class PodSeeker:
    """Looks for victims for one pod of a gang after the other, each on the node where they cost least."""

    def __init__(self, session: Session, search: Search) -> None:
        """Prepare; `search` looks at running pods."""
        self._session = session
        self._search = search

    def seek(self, rules: EvictionRules, queue: Queue, job: JobInfo, statement: Statement) -> None:
        """See `Seeker`."""
        session, search = self._session, self._search
        if "allocate" in session.view.actions and not may_help(session, search, rules, queue, job):
            return
        tasks = waiting_tasks(session, job)
        kinds = {session.alike(task) for task in tasks}
        counted = None
        if len(kinds) == 1 and not session.nominations and tasks[0].shape.peers is None:
            counted = rules.preemptor_class(session, Preemptor(tasks[0], job, queue))
            if search.lacks_places(counted, lacking(job)):
                return
        while tasks:
            placed = len(statement)
            left = self._try(rules, queue, job, tasks, statement)
            if counted is not None and left:
                search.note_places(counted, len(statement.promises))
            # A pod that others of its gang may give a node, by pod affinity or topology spread, is tried again after them.
            tasks = [task for task in left if task.shape.peers and task.shape.peers.may_be_helped]
            if len(statement) == placed:
                break

    def _try(
        self,
        rules: EvictionRules,
        queue: Queue,
        job: JobInfo,
        tasks: Sequence[TaskInfo],
        statement: Statement,
    ) -> list[TaskInfo]:
        """Evict for one pod after the other; those that found no place."""
        failed: set[Hashable] = set()
        left: list[TaskInfo] = []
        for task in tasks:
            self._session.time.check()
            if not self._session.answers.is_starving(job):
                break
            kind = self._session.alike(task)
            if kind in failed:
                left.append(task)
                continue
            if rules.reclaims and self._session.answers.why_not_preemptive(queue, task) is not None:
                continue
            if self._search.place(Preemptor(task, job, queue), rules, statement) is None:
                failed.add(kind)
                left.append(task)
        return left


class BundleSeeker:
    """Looks for gangs that go for a whole gang."""

    def __init__(
        self, session: Session, search: Search, choice: BundleChoice, most_domains: int
    ) -> None:
        """Prepare.

        Args:
            session: The session.
            search: Looks at running pods.
            choice: What the configuration says about bundles.
            most_domains: Domains of the network that are looked at for a gang at most.
        """
        self._session = session
        self._search = search
        self._gangs = GangSearch(session, choice, most_domains)
        self._failed: dict[Hashable, str] = {}

    def seek(
        self, rules: EvictionRules, queue: Queue, job: JobInfo, statement: Statement
    ) -> EvictionFailure | None:
        """See `Seeker`."""
        session, search = self._session, self._search
        needed = self._needed_together(job)
        if not needed or not session.state.nodes.order:
            return None
        if rules.reclaims and (why := self._why_not_together(queue, needed, statement)):
            return EvictionFailure(refused=why)
        if "allocate" in session.view.actions and not may_help(session, search, rules, queue, job):
            return None
        first = next((task for task in needed if not task.shape.is_empty), needed[0])
        together = np.sum([task.shape.vector for task in needed], axis=0)
        preemptor = Preemptor(first, job, queue, together)
        kind = self._kind(preemptor, rules, len(needed))
        if kind not in self._failed:
            seen = search.survey(preemptor, rules)
            lacks = self._gangs.seek(preemptor, rules, seen, statement)
            if len(statement):
                return None
            self._failed[kind] = lacks
        return EvictionFailure(lacks=self._failed[kind])

    def _kind(self, preemptor: Preemptor, rules: EvictionRules, needed: int) -> Hashable:
        """Equal for gangs of which one finds too little if another one did; decisions only leave less."""
        session, job = self._session, preemptor.job
        if session.nominations or job.sub_groups is not None or job.group is None:
            return job.key
        kinds = Counter(
            session.alike(task)
            for task in job.tasks.values()
            if task.status is SchedulingStatus.PENDING and not task.gates
        )
        network = job.group.spec.network_topology
        near = network and (
            network.mode,
            network.highest_tier_allowed,
            network.highest_tier_name,
        )
        return rules.preemptor_class(session, preemptor), frozenset(kinds.items()), needed, near

    def _needed_together(self, job: JobInfo) -> Sequence[TaskInfo]:
        """The waiting pods that a gang needs at least; none if nothing is to be evicted for any of its pods."""
        tasks = waiting_tasks(self._session, job)
        waits = SchedulingStatus.PENDING
        if any(each.never_preempts for each in job.tasks.values() if each.status is waits):
            return ()
        needs_minimum = self._session.extensions.needs_minimum
        return tasks[: max(lacking(job), 1)] if needs_minimum else tasks

    def _why_not_together(
        self, queue: Queue, tasks: Sequence[TaskInfo], statement: Statement
    ) -> str:
        """Why a queue may not take back what several pods need together, wherever they go; empty if it may."""
        session = self._session
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
