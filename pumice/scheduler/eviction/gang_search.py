"""Room for all pods of a gang at once: the bundles whose eviction costs least, in the cheapest of the domains that come into question."""

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from pumice.api.queues import Queue
from pumice.scheduler.eviction.attempt import DomainAttempt
from pumice.scheduler.eviction.bounds import highest_importance
from pumice.scheduler.eviction.bundles import wanted_columns
from pumice.scheduler.eviction.settings import EvictionRules
from pumice.scheduler.eviction.starving_jobs import lacking, may_help, waits
from pumice.scheduler.eviction.survey import Survey, Surveys
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import PENDING, TaskInfo
from pumice.scheduler.placing.domain_search import DomainSearch
from pumice.scheduler.placing.requests import DomainRequest, Members, Placed, scores
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement, Steps
from pumice.scheduler.session.victims import EvictionFailure
from pumice.scheduler.topology.limits import limit_of
from pumice.scheduler.topology.tree import Domain

__all__ = ["GangSearch", "lost_minimum"]


class GangSearch:
    """Looks for bundles in one session, and evicts them in a statement."""

    def __init__(self, session: Session, surveys: Surveys) -> None:
        self._session = session
        self._surveys = surveys
        self._failed: dict[Hashable, str] = {}

    def seek(
        self,
        rules: EvictionRules,
        queue: Queue,
        job: JobInfo,
        tasks: Sequence[TaskInfo],
        statement: Statement,
    ) -> EvictionFailure | None:
        """Evict for a gang, and promise it its places.

        Args:
            rules: What may be evicted.
            queue: Queue of the gang.
            job: The gang.
            tasks: Its pods for which others may be evicted, in their order.
            statement: An empty statement.

        Returns:
            What the gang would still lack if that is not possible, as far as that is known.
        """
        session = self._session
        waiting = [each for each in job.tasks.values() if each.status is PENDING]
        if any(each.never_preempts for each in waiting) or not session.state.nodes.order:
            return None
        needed = tasks
        if session.extensions.needs_minimum:
            needed = tasks[: max(lacking(job), 1)]
        if rules.setting.reclaims and (why := self._why_not_together(queue, needed, statement)):
            return EvictionFailure(refused=why)
        if not may_help(session, self._surveys, rules, queue, job):
            return None
        first = next((task for task in needed if not task.shape.is_empty), needed[0])
        together = np.sum([task.shape.vector for task in needed], axis=0)
        preemptor = Preemptor(first, job, queue, together)
        request = self._request(job)
        kind = self._kind(preemptor, rules, request, len(needed))
        if kind not in self._failed:
            seen = self._surveys.of(preemptor, rules)
            lacks = self.find(preemptor, rules, request, seen, statement)
            if not len(statement) and not self._surveys.is_current(seen):
                seen = self._surveys.of(preemptor, rules, current=True)  # for what is said of it
                lacks = self.find(preemptor, rules, request, seen, statement)
            if len(statement):
                return None
            self._failed[kind] = lacks
        return EvictionFailure(lacks=self._failed[kind])

    def find(
        self,
        preemptor: Preemptor,
        rules: EvictionRules,
        request: DomainRequest,
        seen: Survey,
        statement: Statement,
    ) -> str:
        """Evict in the best domain; what the gang would still lack if that is not possible."""
        lacks = ""
        best: tuple[tuple[float, ...], str, Steps] | None = None
        domains = self._domains(request, preemptor, statement, rules.setting.most_domains)
        for domain in domains:
            attempt = DomainAttempt(self._session, preemptor, rules, seen, request, domain)
            is_found = attempt.plan(statement)
            if is_found and len(domains) == 1:
                return ""
            lacks = lacks or attempt.lacks
            cost, victims = self._cost(rules, statement, domain), statement.victims
            steps = statement.cut(0)
            if is_found:
                cost = (*cost, -self._fullness(request, domain, victims))
            if is_found and (best is None or (cost, domain.name) < best[:2]):
                best = cost, domain.name, steps
        if best is None:
            return lacks
        statement.repeat(best[2])
        return ""

    def _cost(
        self, rules: EvictionRules, statement: Statement, domain: Domain
    ) -> tuple[float, ...]:
        """What decisions cost: gangs broken, the highest priority of a victim, pods, tier; where pods go for themselves, the priority first."""
        tasks, setting = statement.victims, rules.setting
        highest, broken = (
            highest_importance(self._session, tasks),
            len(lost_minimum(self._session, tasks)),
        )
        is_first = setting.priority_first or not setting.by_gang
        first = (highest, broken) if is_first else (broken, highest)
        return (*first, len(tasks), domain.tier)

    def _fullness(
        self, request: DomainRequest, domain: Domain, victims: Sequence[TaskInfo]
    ) -> float:
        """How good a domain is for the gang once victims have gone, as plugins say it."""
        nodes, row_of = self._session.levels.tree.mask(domain), self._session.state.nodes.row_of
        gone = np.zeros(self._session.view.rows.used.shape[1], dtype=np.int64)
        for task in victims:
            if nodes[row_of(task.node)]:
                gone += task.shape.vector
        domains = self._session.levels.side_by_side([domain])
        return float(scores(self._session, request, domains, gone)[0])

    # -- domains -----------------------------------------------------------------------------

    def _request(self, job: JobInfo) -> DomainRequest:
        """The pods that wait, and how many of them need a place at least."""
        session = self._session
        tree = session.levels.tree
        needed = max(lacking(job), 1) if session.extensions.needs_minimum else 1
        reads = not session.extensions.ignores_network and tree.has_hyper_nodes
        reads &= any(each.call(job) for each in session.extensions.domain_search)
        topology = job.group.spec.network_topology if reads and job.group is not None else None
        limit = limit_of(topology, tree)
        members = Members(session, job.tasks.values())
        pods = [task for task in job.tasks.values() if waits(task)]
        return DomainRequest(
            session, job.queue, pods, members, needed, limit, lambda: Placed.NOTHING
        )

    def _domains(
        self, request: DomainRequest, preemptor: Preemptor, statement: Statement, most: int
    ) -> Sequence[Domain]:
        """Domains that could hold what a gang needs if they were empty, within its limit, at most so many: those that lack least.

        The whole cluster if it has no limit.
        """
        session, root = self._session, self._session.levels.tree.root
        if request.limit.tier is None:
            return (root,)
        needs, rows = preemptor.vector, session.view.rows
        found: list[tuple[float, str, Domain]] = []
        search = DomainSearch(session, preemptor.queue, preemptor.job, statement)
        for domains in search.domains(request, search.inside(root)):
            could = np.ones(len(domains), dtype=np.bool_)
            for each in request.demands:
                empty = session.places.empty(each.needs) * each.nodes
                could &= domains.sums(empty) >= each.required
            lacks = np.zeros(len(domains))
            for column in wanted_columns(needs):
                free = domains.sums(np.maximum(rows.future_idle(column), 0))
                lacks += np.maximum(needs[column] - free, 0) / needs[column]
            found += [
                (float(lacks[place]), domain.name, domain)
                for place, domain in enumerate(domains.domains)
                if could[place]
            ]
        found.sort(key=lambda each: each[:2])
        most = min(most, session.extensions.most_domains or most)
        return [domain for _, _, domain in found[:most]]

    # -- gangs -------------------------------------------------------------------------------

    def _kind(
        self, preemptor: Preemptor, rules: EvictionRules, request: DomainRequest, needed: int
    ) -> Hashable:
        """Equal for gangs of which one finds too little if another one did; decisions only leave less."""
        session, job = self._session, preemptor.job
        if session.nominations or job.sub_groups is not None or job.group is None:
            return job.key
        kinds = Counter(session.alike(task) for task in request.pods)
        asks = rules.preemptor_class(session, preemptor), frozenset(kinds.items()), needed
        return *asks, request.limit.tier, request.limit.is_hard

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


def lost_minimum(session: Session, victims: Sequence[TaskInfo]) -> dict[str, int]:
    """Gangs that have lost their minimum by evictions, by key, and how many pods they have lost."""
    lost = Counter(task.job for task in victims)
    jobs = session.state.jobs
    return {
        key: count
        for key, count in lost.items()
        if (job := jobs[key]).is_short and job.ready + count >= job.min_member
    }
