"""What waits of a gang that is to be near to each other, in the order in which action allocate tries it.

The gang is tried as a whole, in one domain after the other, until it is ready. What is left then is placed in later turns, near to the
rest of it.
"""

from collections.abc import Collection, Iterable, Sequence

from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import PENDING, TaskInfo
from pumice.scheduler.placing.domain_turn import DomainTurn
from pumice.scheduler.placing.filling import GangTurn, may_begin
from pumice.scheduler.placing.nowhere import WITHOUT_PLUGIN, spread_too_far
from pumice.scheduler.placing.pod_queue import PodQueue
from pumice.scheduler.placing.requests import MembersOf
from pumice.scheduler.placing.units import Units
from pumice.scheduler.results import Reason
from pumice.scheduler.session.outcomes import JobOutcome
from pumice.scheduler.session.session import Session
from pumice.scheduler.topology.limits import Limit, limit_of
from pumice.scheduler.topology.tree import Domain
from pumice.scheduler.waiting.parked import Cause


def to_try(
    session: Session, job: JobInfo, tasks: Iterable[TaskInfo]
) -> "PodQueue | Units | DomainQueue":
    """Pods of a job in their order; those of a job with sub-groups as units, those of one that seeks a domain as a whole."""
    if seeks_domain(session, job):
        return DomainQueue(session, job, tasks)
    return _divided(session, job, tasks)


def _divided(session: Session, job: JobInfo, tasks: Iterable[TaskInfo]) -> PodQueue | Units:
    return (PodQueue if job.sub_groups is None else Units)(session, job, tasks)


def knows_its_nodes(session: Session, job: JobInfo) -> bool:
    """Whether nodes may be chosen for a gang one by one: not if its sub-groups must each be in one domain, or if it must and no plugin seeks one."""
    whole, parts = _limits(session, job)
    if any(part.is_hard for part in parts):
        return False
    return gets_domain(session, job) or not whole.is_hard


def seeks_domain(session: Session, job: JobInfo) -> bool:
    """Whether something is said about the network that may make a difference."""
    whole, parts = _limits(session, job)
    for limit in (whole, *parts):
        if limit.is_hard:
            return True
        if limit.tier and session.levels.tree.has_hyper_nodes and gets_domain(session, job):
            return True
    return False


def _limits(session: Session, job: JobInfo) -> tuple[Limit, Sequence[Limit]]:
    """The limit of a gang, and those of its policies."""
    whole = session.view.network_limit(job)
    if job.group is None or session.extensions.ignores_network:
        return whole, ()
    policies = job.group.spec.sub_group_policy or ()
    return whole, [limit_of(each.network_topology, session.levels) for each in policies]


def gets_domain(session: Session, job: JobInfo) -> bool:
    """Whether a plugin seeks a domain for a gang that says something about the network."""
    return any(each.call(job) for each in session.extensions.domain_search)


class DomainQueue:
    """The pods of a gang that are still to be tried."""

    def __init__(self, session: Session, job: JobInfo, tasks: Iterable[TaskInfo]) -> None:
        """Put pods in the order of plugins."""
        self._session = session
        self._job = job
        self._pods = sorted(tasks, key=session.answers.task_key)
        self._rest: PodQueue | Units | None = None
        self._members = MembersOf(session, job)
        self._last: Collection[str] = ()
        self._limit, parts = _limits(session, job)
        problems = [each.problem for each in (self._limit, *parts) if each.problem]
        self._problem = problems[0] if problems else None

    def __bool__(self) -> bool:
        return bool(self._pods if self._rest is None else self._rest)

    def promise(self, turn: GangTurn, around: Domain) -> None:
        """Only promise pods their places, all of them inside a domain; nothing, if what is said of the network forbids it."""
        if self._why_hopeless() is None:
            DomainTurn(turn, self._limit, self._members, around).whole(self._pods)

    def fill(self, of: GangTurn, outcome: JobOutcome) -> bool:
        """Place or promise pods until the gang is ready or cannot become so; whether it is ready."""
        session, _, job, statement, *_ = of
        is_ready = session.answers.is_ready(job)
        refusal = self._why_hopeless() if self._rest is None else None
        if refusal is not None:
            outcome.refusal = refusal
            outcome.causes |= int(Cause.DOMAIN)
            self._rest = PodQueue(session, job, ())
            return is_ready
        self._members.note(job.tasks[key] for key in self._last)
        turn = DomainTurn(of, self._limit, self._members)
        if self._rest is None and not is_ready:
            turn.whole(self._pods)
            is_ready = may_begin(session, job, statement)
            left = (task for task in self._pods if task.status is PENDING)
            self._rest = _divided(session, job, left if is_ready else ())
        else:
            if self._rest is None:
                self._rest = _divided(session, job, self._pods)
            turn.further(self._rest)
        self._last = (*statement.placements, *statement.promises)
        turn.explain(outcome)
        return is_ready

    def _why_hopeless(self) -> Reason | None:
        """Why no domain can be meant, or none may be used any more; None if one may."""
        session, job = self._session, self._job
        if not gets_domain(session, job):
            return WITHOUT_PLUGIN
        if self._problem is not None or not self._limit.is_hard:
            return self._problem
        anchor = self._members[None].anchor
        if anchor is not None and self._limit.tier is not None and anchor.tier > self._limit.tier:
            return spread_too_far(anchor, self._limit.tier)
        return None
