"""Room for all pods of a gang at once: the bundles whose eviction costs least, in the cheapest of the domains that come into question."""

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from pumice.api.queues import Queue
from pumice.scheduler.eviction.attempt import DomainAttempt
from pumice.scheduler.eviction.bounds import highest_importance
from pumice.scheduler.eviction.room import WantedPlaces, wanted_places
from pumice.scheduler.eviction.settings import EvictionRules
from pumice.scheduler.eviction.starving_jobs import lacking, may_help, waits
from pumice.scheduler.eviction.survey import Survey, Surveys
from pumice.scheduler.model.axis import PODS, SCORED_CPU, SCORED_MEMORY
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import PENDING, TaskInfo
from pumice.scheduler.placing.requests import Members
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
        kind = self._kind(preemptor, rules, len(needed))
        if kind not in self._failed:
            seen = self._surveys.of(preemptor, rules)
            lacks = self.find(preemptor, rules, seen, statement)
            if not len(statement) and not self._surveys.is_current(seen):
                seen = self._surveys.of(preemptor, rules, current=True)  # for what is said of it
                lacks = self.find(preemptor, rules, seen, statement)
            if len(statement):
                return None
            self._failed[kind] = lacks
        return EvictionFailure(lacks=self._failed[kind])

    def find(
        self, preemptor: Preemptor, rules: EvictionRules, seen: Survey, statement: Statement
    ) -> str:
        """Evict in the best domain; what the gang would still lack if that is not possible."""
        lacks = ""
        best: tuple[tuple[float, ...], str, Steps] | None = None
        wanted = wanted_places(self._session, preemptor.job)
        domains = self._domains(preemptor, wanted, rules.setting.most_domains)
        for domain in domains:
            attempt = DomainAttempt(self._session, preemptor, rules, seen, wanted, domain)
            is_found = attempt.plan(statement)
            if is_found and len(domains) == 1:
                return ""
            lacks = lacks or attempt.lacks
            cost = self._cost(rules, statement, domain)
            steps = statement.cut(0)
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

    # -- domains -----------------------------------------------------------------------------

    def _domains(
        self, preemptor: Preemptor, wanted: Sequence[WantedPlaces], most: int
    ) -> Sequence[Domain]:
        """Domains that could hold what a gang needs if they were empty, within its limit, at most so many: those that lack least.

        The whole cluster if it has no limit; of a gang that has pods with places, those around which its limit leaves.
        """
        session, job = self._session, preemptor.job
        levels, tree = session.levels, session.levels.tree
        if job.group is None or session.extensions.ignores_network or not tree.has_hyper_nodes:
            return (tree.root,)
        limit = limit_of(job.group.spec.network_topology, tree)
        if limit.tier is None or not any(
            each.call(job) for each in session.extensions.domain_search
        ):
            return (tree.root,)
        held = Members(session, job.tasks.values())
        tops = {tree.root}
        if held:
            allowed = {each for each in held.around if each.tier <= limit.tier}
            tops = {each for each in allowed if each.parent not in allowed}
        needs, rows = preemptor.vector, session.view.rows
        columns = [
            each
            for each in np.flatnonzero(needs).tolist()
            if each not in (PODS, SCORED_CPU, SCORED_MEMORY)
        ]
        found: list[tuple[float, str, Domain]] = []
        for domains in levels.below(tree.root, limit.tier):
            could = np.ones(len(domains), dtype=np.bool_)
            for each in wanted:
                could &= domains.sums(session.places.empty(each.needs) * each.nodes) >= each.count
            lacks = np.zeros(len(domains))
            for column in columns:
                free = domains.sums(np.maximum(rows.future_idle(column), 0))
                lacks += np.maximum(needs[column] - free, 0) / needs[column]
            found += [
                (float(lacks[place]), domain.name, domain)
                for place, domain in enumerate(domains.domains)
                if could[place] and not tops.isdisjoint(domain.and_above())
            ]
        found.sort(key=lambda each: each[:2])
        most = min(most, session.extensions.most_domains or most)
        return [domain for _, _, domain in found[:most]]

    # -- gangs -------------------------------------------------------------------------------

    def _kind(self, preemptor: Preemptor, rules: EvictionRules, needed: int) -> Hashable:
        """Equal for gangs of which one finds too little if another one did; decisions only leave less."""
        session, job = self._session, preemptor.job
        if session.nominations or job.sub_groups is not None or job.group is None:
            return job.key
        kinds = Counter(session.alike(task) for task in job.tasks.values() if waits(task))
        network = job.group.spec.network_topology
        near = network and (
            network.mode,
            network.highest_tier_allowed,
            network.highest_tier_name,
        )
        return rules.preemptor_class(session, preemptor), frozenset(kinds.items()), needed, near

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
