"""Search for the bundles whose eviction makes room for a whole gang at the least cost: in the cheapest of the domains that come into question."""

from collections import Counter
from collections.abc import Sequence

from pumice.scheduler.eviction.allowed import EvictionRules, importance
from pumice.scheduler.eviction.attempt import DomainAttempt
from pumice.scheduler.eviction.bundles import BundleChoice
from pumice.scheduler.eviction.domains import domains_of, wanted_places
from pumice.scheduler.eviction.survey import Survey
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement, Steps
from pumice.scheduler.topology.tree import Domain

__all__ = ["GangSearch", "lost_minimum"]


class GangSearch:
    """Looks for bundles in one session, and evicts them in a statement."""

    def __init__(self, session: Session, choice: BundleChoice, most: int) -> None:
        """Prepare.

        Args:
            session: The session.
            choice: What the configuration says about bundles.
            most: Domains that are looked at for a gang at most.
        """
        self._session = session
        self._choice = choice
        self._most = most

    def seek(
        self, preemptor: Preemptor, rules: EvictionRules, seen: Survey, statement: Statement
    ) -> str:
        """Evict for a gang, and promise it its places; what it would still lack if that is not possible, or an empty string.

        Args:
            preemptor: A pod of the gang.
            rules: What may be evicted.
            seen: Running pods, and which of them may go if no others do.
            statement: An empty statement.
        """
        lacks = ""
        best: tuple[tuple[float, ...], str, Steps] | None = None
        wanted = wanted_places(self._session, preemptor.job)
        domains = domains_of(self._session, preemptor, wanted, self._most)
        for domain in domains:
            attempt = DomainAttempt(self._session, self._choice, preemptor, rules, seen, wanted)
            is_found = attempt.plan(domain, statement)
            if is_found and len(domains) == 1:
                return ""
            lacks = lacks or attempt.lacks
            cost = self._cost(statement, domain)
            steps = statement.cut(0)
            if is_found and (best is None or (cost, domain.name) < best[:2]):
                best = cost, domain.name, steps
        if best is None:
            return lacks
        statement.repeat(best[2])
        return ""

    def _cost(self, statement: Statement, domain: Domain) -> tuple[float, ...]:
        """What decisions cost: gangs broken, the highest priority of a victim, pods, tier."""
        tasks = statement.victims
        jobs = self._session.state.jobs
        highest = max((importance(jobs[task.job], task) for task in tasks), default=-(1 << 63))
        broken = len(lost_minimum(self._session, tasks))
        first = (highest, broken) if self._choice.priority_first else (broken, highest)
        return (*first, len(tasks), domain.tier)


def lost_minimum(session: Session, victims: Sequence[TaskInfo]) -> dict[str, int]:
    """Gangs that have lost their minimum by evictions, by key, and how many pods they have lost."""
    lost = Counter(task.job for task in victims)
    jobs = session.state.jobs
    return {
        key: count
        for key, count in lost.items()
        if (job := jobs[key]).is_short and job.ready + count >= job.min_member
    }
