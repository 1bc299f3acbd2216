"""fairshare: the namespaces of a queue take turns by what they have used of a resource, with a half-life.

Of two namespaces the gangs of the one that has used less go first, and of those that have used the same, of the one that holds less now.
With the gate, a namespace that holds its max-min fair share of the queue, or was let in for it, gets no further gang into it. Nothing is evicted.

How usage is counted `state/usage` says; the worker saves it.
"""

import re
from collections import Counter
from collections.abc import Mapping
from functools import partial

import msgspec

from pumice.api.json_words import quoted
from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.api.quantities import format_milli
from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.axis import CPU
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.nodes import NodeRecord
from pumice.scheduler.model.queue_specs import UNLIMITED
from pumice.scheduler.model.running_pods import VICTIMS
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo
from pumice.scheduler.points import SortKey, Vote
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.results import Reason
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.state.usage import UsageRules
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause

NAME = "fairshare"
_QUEUES, _RESOURCE, _HALF_LIFE = (
    f"{NAME}.targetQueues",
    f"{NAME}.resourceKey",
    f"{NAME}.halfLifeMinutes",
)
_GATE, _PERSIST, _FLUSH = (
    f"{NAME}.enableEnqueueGate",
    f"{NAME}.persistState",
    f"{NAME}.flushIntervalSeconds",
)
_NAMESPACE, _CONFIG_MAP = f"{NAME}.stateNamespace", f"{NAME}.stateConfigMap"
_EQUAL = 1.0
"""Usage in resource-seconds by which namespaces that have used the same may differ."""


class FairShare:
    """Orders gangs by the usage of their namespaces."""

    def __init__(self, arguments: Arguments) -> None:
        self._rules = _rules(arguments)
        self._has_gate = arguments.flag(_GATE)

    def open(self, session: SessionView, register: Registrar) -> None:
        """Have usage counted, and register the order and the gate."""
        session.usage.follow(self._rules)
        self._session = session
        self._ranks: dict[str, dict[str, int]] = {}
        self._sums: _Sums | None = None
        self._warn()
        register.job_order(self._key, moves=True)
        register.on_allocate(self._allocated)
        register.on_deallocate(self._deallocated)
        if self._has_gate:
            register.job_enqueueable(
                self._vote, wakes=Cause.SHARES, by=lambda job: job.pending.tobytes()
            )
            register.job_enqueued(self._enter)

    def _warn(self) -> None:
        """Tell the owners of queues with gangs in which nothing can be counted, because no node has the resource."""
        session = self._session
        has_nodes = len(session.rows) > 0
        for name, count in zip(session.shares.names, session.shares.jobs.tolist(), strict=True):
            resource = self._rules.counted_in(name)
            if not (has_nodes and count and resource):
                continue
            column = session.column(resource)
            if column is None or not session.rows.allocatable[:, column].any():
                message = (
                    f"plugin {NAME} counts {resource} in this queue, which no node has: its namespaces have no usage; "
                    f"set {_RESOURCE}.{name} to a resource that its pods use, or leave the queue out of {_QUEUES}"
                )
                session.warn_queue(name, "NoUsage", message)

    def _counted(self) -> "_Sums":
        """What namespaces hold and want, counted when it is first asked for."""
        if self._sums is None:
            self._sums = _Sums(self._session, self._rules)
        return self._sums

    # -- order -------------------------------------------------------------------------------

    def _key(self, job: JobInfo) -> SortKey:
        if self._rules.counted_in(job.queue) is None:
            return (0, 0)
        ranks = self._ranks.get(job.queue)
        if ranks is None:
            ranks = self._ranks[job.queue] = self._ranked(job.queue)
        return ranks.get(job.namespace, 0), self._counted().held[job.queue, job.namespace]

    def _ranked(self, queue: str) -> dict[str, int]:
        """Places of namespaces by usage: equal ones differ by a resource-second at most. Others have used nothing: place 0."""
        usage = self._session.usage.of(queue, self._session.now)
        ranks: dict[str, int] = {}
        first, rank = 0.0, 0
        for used, namespace in sorted((used, name) for name, (used, _) in usage.items()):
            if used - first > _EQUAL:
                first, rank = used, rank + 1
            ranks[namespace] = rank
        return ranks

    def _allocated(self, task: TaskInfo, _: NodeRecord) -> None:
        if task.status not in VICTIMS:  # otherwise an eviction was undone
            self._count(task, 1)

    def _deallocated(self, task: TaskInfo, _: NodeRecord) -> None:
        if task.status is not SchedulingStatus.RELEASING:
            self._count(task, -1)

    def _count(self, task: TaskInfo, step: int) -> None:
        """Count what a pod gets in this session; what is evicted is not taken off, so that places in the order only go up."""
        if self._sums is None:
            return  # it is counted with all others
        queue = self._session.jobs[task.job].queue if task.job else ""
        column = _column(self._session, self._rules, queue)
        if column is not None:
            self._sums.held[queue, task.namespace] += step * task.shape.amounts[column]

    # -- gate --------------------------------------------------------------------------------

    def _vote(self, job: JobInfo) -> Vote | Reason:
        column = _column(self._session, self._rules, job.queue)
        if column is None or not _wanted(job, column):
            return Vote.ABSTAIN
        sums, key = self._counted(), (job.queue, job.namespace)
        share, room = sums.share(*key), sums.room(job.queue)
        holds = sums.held[key] + sums.entered[key]
        if holds < share or not room:  # that there is none of it others say
            return Vote.ABSTAIN
        resource = self._session.resource(column)
        texts = [_text(each, column) for each in (holds, share, room)]
        details = dict(zip(("holds", "share", "room"), texts, strict=True))
        sharing = sum(each > 0 for each in sums.demands[job.queue].values())
        message = (
            f"namespace {job.namespace} holds {texts[0]} {resource}, which is its fair share of queue {job.queue} "
            f"({texts[1]} of {texts[2]} {resource}, {sharing} namespaces)"
        )
        about = {"queue": job.queue, "namespace": job.namespace, "resource": resource}
        return Reason(
            "OverFairShare", message, about | details, tuple(about.values()), numbers=details
        )

    def _enter(self, job: JobInfo) -> None:
        column = _column(self._session, self._rules, job.queue)
        if column is not None and self._sums is not None:
            self._sums.entered[job.queue, job.namespace] += _wanted(job, column)


def _column(session: SessionView, rules: UsageRules, queue: str) -> int | None:
    """Column of what is counted in a queue; None if nothing is, or no node and no pod has named it."""
    resource = rules.counted_in(queue)
    return session.column(resource) if resource is not None else None


class _Sums:
    """What namespaces hold, what their gangs want besides, and what those of them want that were let in, by queue and namespace.

    Attributes:
        demands: What they hold and want together when the session began.
    """

    def __init__(self, session: SessionView, rules: UsageRules) -> None:
        self._session = session
        self._rules = rules
        self.held: Counter[tuple[str, str]] = Counter()
        self.waiting: Counter[tuple[str, str]] = Counter()
        self.entered: Counter[tuple[str, str]] = Counter()
        self.demands: dict[str, dict[str, int]] = {}
        self._levels: dict[str, float] = {}
        for job in session.jobs.values():
            column = _column(session, rules, job.queue)
            if column is not None:
                key, wanted = (job.queue, job.namespace), _wanted(job, column)
                self.held[key] += int(job.allocated[column])
                self.waiting[key] += wanted
                self.entered[key] += 0 if job.is_pending else wanted
        for key, held in self.held.items():
            self.demands.setdefault(key[0], {})[key[1]] = held + self.waiting[key]

    def room(self, queue: str) -> int:
        """What the namespaces of a queue share: its capability, else the cluster."""
        column, shares = _column(self._session, self._rules, queue), self._session.shares
        if column is None:
            return 0
        row = shares.rows.get(queue, -1)
        capability = int(shares.limits.capability[row, column]) if row >= 0 else UNLIMITED
        return capability if capability < UNLIMITED else int(self._session.total()[column])

    def share(self, queue: str, namespace: str) -> float:
        """The max-min fair share of a namespace."""
        demands = self.demands.get(queue, {})
        level = self._levels.get(queue)
        if level is None:
            level = self._levels[queue] = fair_level(demands, self.room(queue))
        return min(demands.get(namespace, 0), level)


class NamespaceShares(msgspec.Struct, frozen=True):
    """The namespaces of a queue, for people.

    Attributes:
        resource: What is counted.
        rows: By namespace: usage in hours of a unit of the resource, what it holds and waits for, and its max-min fair share.
    """

    resource: str
    rows: Mapping[str, tuple[float, str, str, str]]


def shares_of(session: SessionView, arguments: Arguments, queue: str) -> NamespaceShares | None:
    """What namespaces of a queue have used, hold, want and may have, those first that go first; None if nothing is counted in it."""
    rules = _rules(arguments)
    resource = rules.counted_in(queue)
    if resource is None:
        return None
    sums, usage = _Sums(session, rules), session.usage.of(queue, session.now)
    column = _column(session, rules, queue)
    if column is None:
        return NamespaceShares(resource, {})
    found = []
    for name in {*usage, *sums.demands.get(queue, {})}:
        key = queue, name
        amounts = (sums.held[key], sums.waiting[key], sums.share(*key))
        used = usage.get(name, (0.0, 0.0))[0]
        if used or any(amounts):
            held, waiting, share = (_text(each, column) for each in amounts)
            found.append((used, name, (used / 3600, held, waiting, share)))
    return NamespaceShares(resource, {name: row for _, name, row in sorted(found)})


def fair_level(demands: Mapping[str, int], room: int) -> float:
    """The most that each gets, so that all together get no more than there is and nothing is left over that another wants."""
    left, rest = float(room), len(demands)
    for demand in sorted(demands.values()):
        if demand * rest > left:
            return left / rest
        left, rest = left - demand, rest - 1
    return float(room)


def _wanted(job: JobInfo, column: int) -> int:
    """What a gang waits for: by its pods, or before it has them by its minimum."""
    return max(int(job.pending[column]), int(job.minimum[column]) - int(job.allocated[column]), 0)


def _text(amount: float, column: int) -> str:
    return format_milli(round(amount if column == CPU else amount * 1000))


# -- arguments -----------------------------------------------------------------------------------


class UsageStorage(msgspec.Struct, frozen=True):
    """Where usage is saved.

    Attributes:
        namespace: Namespace of the ConfigMap; empty for that of the scheduler.
        interval: Seconds between two writes at least.
    """

    namespace: str
    name: str
    interval: float

    @property
    def place(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name


def storage(arguments: Arguments) -> UsageStorage | None:
    """Where the arguments say that usage is saved; None for nowhere."""
    if not arguments.flag(_PERSIST):
        return None
    interval = arguments.number(_FLUSH)
    return UsageStorage(arguments.text(_NAMESPACE), arguments.text(_CONFIG_MAP), interval)


def _rules(arguments: Arguments) -> UsageRules:
    queues = frozenset(arguments.names(_QUEUES))
    resources = dict(arguments.texts(f"{_RESOURCE}."))
    half_life = arguments.number(_HALF_LIFE) * 60
    return UsageRules(half_life, arguments.text(_RESOURCE), resources, queues or None)


def _between(least: float, most: float, text: str) -> str | None:
    value = float(text) if _NUMBER.fullmatch(text) else -1.0
    return (
        None
        if least <= value <= most
        else f"must be a number from {least:g} to {most:g}, found {quoted(text)}"
    )


_NUMBER = re.compile(r"\d{1,12}(\.\d{1,12})?", re.ASCII)


def _namespace_problem(text: str) -> str | None:
    return dns_label_problem(text) if text else None


SPEC = PluginSpec(
    name=NAME,
    summary="The namespaces of a queue take turns by what they have used of a resource, with a half-life.",
    build=FairShare,
    behind=frozenset({"drf"}),
    arguments=(
        SchedulerArgument(
            _QUEUES, "", "Queues in which usage is counted, separated by commas; all by default."
        ),
        SchedulerArgument(_RESOURCE, "nvidia.com/gpu", "Resource of which usage is counted."),
        SchedulerArgument(
            f"{_RESOURCE}.",
            "nvidia.com/gpu",
            "Resource that is counted in one queue instead.",
            is_prefix=True,
        ),
        SchedulerArgument(
            _HALF_LIFE,
            240.0,
            "Minutes after which usage counts half.",
            problem=partial(_between, 0.01, 5_256_000),
            takes_text=True,
        ),
        SchedulerArgument(
            _GATE,
            False,
            "Whether a namespace that holds its fair share of the queue gets no further gang into it.",
        ),
        SchedulerArgument(_PERSIST, False, "Whether usage survives a restart of the scheduler."),
        SchedulerArgument(
            _NAMESPACE,
            "",
            "Namespace of the ConfigMap in which usage is saved; that of the scheduler by default.",
            problem=_namespace_problem,
        ),
        SchedulerArgument(
            _CONFIG_MAP,
            "fairshare-usage-state",
            "Name of the ConfigMap.",
            problem=dns_subdomain_problem,
        ),
        SchedulerArgument(
            _FLUSH,
            30.0,
            "Seconds between two writes at least.",
            problem=partial(_between, 1, 86_400),
            takes_text=True,
        ),
    ),
)
