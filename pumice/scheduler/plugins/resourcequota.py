"""resourcequota: a gang enters its queue only if the quotas of its namespace have room for its minimum.

Otherwise its pods would be refused when they are created, after the gang has taken its share of the queue.

What the API server counts as used includes pods that exist. What gangs need that have entered and have no pods yet is
added here. Quotas with scopes are left out: they are about some pods only, and `minResources` does not say about which.
"""

from collections.abc import Iterator, Mapping

from pumice.api.budgets import ResourceQuota
from pumice.api.messages import listed
from pumice.api.quantities import MILLI, QuantityError, parse_milli
from pumice.api.requests import Amounts, add
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.explain.deficits import Deficit, deficit_text, refusal
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.points import Vote
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.results import Reason
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause


class ResourceQuotas:
    """Votes on gangs by the quotas of their namespaces."""

    def __init__(self, _arguments: Arguments) -> None:
        self._entered: dict[str, Amounts] | None = None

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register the vote."""
        self._session = session
        causes = Cause.QUOTAS | Cause.SHARES
        register.job_enqueueable(
            self._vote, wakes=causes, by=lambda job: frozenset(_needs(job).items())
        )
        register.job_enqueued(self._enter)

    def _vote(self, job: JobInfo) -> Vote | Reason:
        for _, quota in sorted(self._session.quotas.get(job.namespace, {}).items()):
            shortages = list(self._shortages(quota, job))
            if shortages:
                name = quota.metadata.name
                resources = listed([each.resource for each in shortages])
                plain = f"quota {name}: {deficit_text(shortages)}"
                message = f"resource quota insufficient: {resources}; {plain}"
                return refusal(message, shortages, plain, quota=name)
        return Vote.PERMIT

    def _shortages(self, quota: ResourceQuota, job: JobInfo) -> Iterator[Deficit]:
        if quota.spec.scopes or quota.spec.scope_selector:
            return
        hard = _amounts(quota.status.hard or quota.spec.hard)
        used = _amounts(quota.status.used)
        needs = _needs(job)
        reserved = self._reserved(job.namespace)
        for name, limit in hard.items():
            needed = needs.get(name, 0)
            taken = used.get(name, 0) + reserved.get(name, 0)
            if needed and taken + needed > limit:
                yield Deficit(name, *(_units(name, each) for each in (taken, limit, needed)))

    def _reserved(self, namespace: str) -> Amounts:
        """What gangs of a namespace need that have entered and have no pods yet."""
        if self._entered is None:
            self._entered = {}
            for job in self._session.jobs.values():
                if job.namespace in self._session.quotas and job.phase == "Inqueue":
                    self._reserve(job)
        return self._entered.get(namespace, {})

    def _enter(self, job: JobInfo) -> None:
        if job.namespace in self._session.quotas and self._entered is not None:
            self._reserve(job)

    def _reserve(self, job: JobInfo) -> None:
        assert self._entered is not None
        if not job.tasks:
            add(self._entered.setdefault(job.namespace, {}), _needs(job))


def _needs(job: JobInfo) -> Amounts:
    """What a gang needs at least, by all names under which quotas count it."""
    named = _amounts(job.group.spec.min_resources if job.group else None)
    needs = {"pods": job.min_member * MILLI, "count/pods": job.min_member * MILLI}
    for name, amount in named.items():
        if not name.startswith(("requests.", "limits.", "count/")):
            needs[f"requests.{name}"] = amount
    return needs | named


def _amounts(resources: Mapping[str, str | int] | None) -> Amounts:
    """Milli-units by name, without what cannot be read."""
    amounts: Amounts = {}
    for name, value in (resources or {}).items():
        try:
            amounts[name] = parse_milli(value)
        except QuantityError:
            continue
    return amounts


def _units(name: str, milli: int) -> int:
    return milli if name in ("cpu", "requests.cpu", "limits.cpu") else milli // MILLI


SPEC = PluginSpec(
    name="resourcequota",
    summary="Gangs enter their queues only if the quotas of their namespaces have room for their minimum.",
    build=ResourceQuotas,
)
