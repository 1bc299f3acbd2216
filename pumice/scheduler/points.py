"""The extension points of a session, each a typed list.

Plugins register functions when a session opens. The order of tiers, and of plugins in a tier, is the
order of the lists; `answers.py` combines several answers.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Generic, Literal, Protocol, TypeVar, get_args

from pumice.api.queues import Queue
from pumice.scheduler.model.axis import Bools, Floats, Ints
from pumice.scheduler.model.candidates import Preemptor, VictimCheck
from pumice.scheduler.model.domains import Topology
from pumice.scheduler.model.group_tree import PeerClass
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.nodes import NodeRecord
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.results import Reason

__all__ = [
    "DomainFilter",
    "DomainScore",
    "Extension",
    "Extensions",
    "FilterPoint",
    "FilterResult",
    "NodeChoice",
    "PodClass",
    "QueueGroups",
    "Refusal",
    "Scope",
    "ScorePoint",
    "SortKey",
    "Step",
    "TaskScorePoint",
    "VictimPoint",
    "Vote",
]

T = TypeVar("T")

SortKey = Any
"""Something that compares with its like; the smaller comes first."""

Step = Literal["valid", "gate", "share", "check", "filter", "ready"]
"""Where plugins refuse a gang: as such, at its queue's gate, by shares, for the shape of a pod, by nodes, and because it is not ready."""

Scope = Literal["fixed", "row", "all"]
"""What a placement changes about an answer: nothing, the row of the node, or any row.

The same holds for a change of a node, its labels for example: unless the scope is `all`, it changes answers for its own row
only. A filter answers for the rows that it is asked about, which may be a few (`Rows.index`).
"""


@dataclass(frozen=True, slots=True)
class QueueGroups:
    """Which keys of queues a decision about a pod changes.

    Attributes:
        path: Names of the groups that a queue is in, from the outermost inwards: a decision about a pod of a queue changes no order within a group
            that the queue is not in. None if it changes the key of that queue alone.
        names: Queues that have groups.
        epoch: A number that changes when all keys may have changed.
    """

    path: Callable[[str], Sequence[str]] | None = None
    names: Collection[str] = ()
    epoch: Callable[[], int] = lambda: 0


class Vote(IntEnum):
    """A vote on a job."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


Refusal = Callable[[], Reason]
"""A rejection whose reason is put into words when it is asked for."""


@dataclass(frozen=True, slots=True)
class FilterResult:
    """A filter's answer for some rows.

    Attributes:
        codes: 0 where the node will do, else 1 + the place of the reason in `texts`.
        texts: Reasons, as they are counted in `0/3 nodes are unavailable: …`.
    """

    codes: Ints
    texts: tuple[str, ...]


class PodClass:
    """Pods for which the same nodes are equally good: one shape, in one queue.

    Attributes:
        shape: What the pods ask for.
        queue: Queue of the pods.
        allowed: Nodes that pass the fixed filters; set before scores are asked for.
        gang: Key of their gang if it may use nodes that are reserved; otherwise empty, as gangs share their classes.
        peers: What sets them apart as targets of other pods' affinity, anti-affinity and spread; None if there are none.
    """

    __slots__ = ("allowed", "gang", "peers", "queue", "shape")

    def __init__(
        self,
        shape: PodShape,
        queue: str,
        allowed: Bools,
        gang: str = "",
        peers: PeerClass | None = None,
    ) -> None:
        self.shape = shape
        self.queue = queue
        self.allowed = allowed
        self.gang = gang
        self.peers = peers


class NodeChoice(Protocol):
    """Which node to reserve next for a job; None for no further one."""

    def __call__(self, job: JobInfo, usable: Callable[[TaskInfo], Bools], /) -> str | None:
        """Choose a node.

        Args:
            job: The job.
            usable: Nodes that a pod of it may use, and that could hold it if nothing else were there.
        """


class RowFilter(Protocol):
    """Which of these rows a class of pods may use; None for all of them."""

    def __call__(self, pods: PodClass, rows: Rows, /) -> FilterResult | None:
        """Judge rows."""


class Score(Protocol):
    """Scores of rows for a class of pods; None if they are all equal."""

    def __call__(self, pods: PodClass, rows: Rows, /) -> Floats | None:
        """Score rows."""


class DomainFilter(Protocol):
    """Filter of nodes for a class of pods, if a placement changes the results of a whole domain of nodes.

    A ranking has one of its own. It follows the counts of pods by domain, so that the ranking is not computed again.
    """

    def column(self) -> Floats:
        """For every node 0 where the pods may go now, otherwise minus infinity; to be read only."""

    def judge(self, rows: Rows, /) -> FilterResult | None:
        """Judge rows as they are; None when there is nothing to object to."""

    def starting(self) -> Sequence[Topology]:
        """Topology keys of which one domain must hold a whole group, if the next pod is the first of it."""

    def alone(self) -> Sequence[Topology]:
        """Topology keys of which no domain may hold two of the pods."""


class DomainScore(Protocol):
    """Scores of nodes for a class of pods, if a placement changes the values of a whole domain of nodes."""

    def column(self) -> Floats:
        """The value of every node now; to be read only."""


class TaskScore(Protocol):
    """Scores of all rows for one pod; None if they are all equal."""

    def __call__(self, task: TaskInfo, rows: Rows, /) -> Floats | None:
        """Score rows."""


@dataclass(frozen=True, slots=True)
class FilterPoint:
    """A filter of nodes with its properties.

    Attributes:
        judge: The function.
        scope: How far a placement changes its answers.
        by_rules: Whether shapes that differ in their requests alone get the same answers.
    """

    judge: RowFilter
    scope: Scope
    by_rules: bool = False


@dataclass(frozen=True, slots=True)
class ScorePoint:
    """A scorer of nodes with its properties.

    Attributes:
        score: The function.
        scope: How far a placement changes its answers.
        is_ranked: Whether its best nodes are the only ones that the sum of the other scores may choose from.
        by_rules: Whether shapes that differ in their requests alone get the same values.
        by_amounts: Whether rows with equal amounts get the same values.
    """

    score: Score
    scope: Scope
    is_ranked: bool
    by_rules: bool = False
    by_amounts: bool = False


@dataclass(frozen=True, slots=True)
class TaskScorePoint:
    """A scorer that looks at the single pod; ranked ones come after the ranked ones of classes."""

    score: TaskScore
    is_ranked: bool


@dataclass(frozen=True, slots=True)
class VictimPoint:
    """A choice of pods to evict without a preemptor.

    Attributes:
        choose: The function.
        every: Seconds after it has named some in which it is not asked again.
    """

    choose: Callable[[], Iterable[TaskInfo]]
    every: float


@dataclass(frozen=True, slots=True)
class Extension(Generic[T]):
    """One registered function.

    Attributes:
        tier: Number of its tier.
        plugin: Who registered it.
        call: The function.
    """

    tier: int
    plugin: str
    call: T


@dataclass(slots=True)
class Extensions:
    """All functions that plugins have registered for one session.

    Orders are given by sort keys: keys of several plugins are compared one after the other, which is the same
    as asking comparators until one of them decides.

    Attributes:
        queue_order: Which queue goes first.
        queue_epochs: Numbers that change when keys of queues have become smaller.
        queue_groups: Which keys a decision changes, for those of `queue_order` that tell.
        job_order: Which job of a queue goes first.
        task_order: Which pod of a job goes first.
        moving_task_order: Whether any of these keys changes while a job is placed.
        job_valid: Why a job cannot be tried at all.
        job_enqueueable: Whether a job may enter its queue; a Reason is a rejection that says why, and so is a Refusal.
        node_gates: Plugins whose votes on that are about room on nodes.
        job_enqueued: Called when a job has entered its queue.
        job_entitled: Whether the queue of a job may take back what the job needs, so that a full cluster does not keep it out.
        job_ready: Whether a job may be committed; all must agree.
        job_pipelined: Whether a job may keep its promises until the end of the session.
        job_starving: Whether a job is below what it needs.
        overused: Whether a queue has had enough; one is enough.
        allocatable: Why a queue cannot take a pod.
        queue_room: What a queue may still take, by column; for checks of `allocatable` that are about amounts only.
        preemptive: Why a queue may not take back from others what a pod needs.
        preemptable: Which pods may be evicted for a pod of their own queue; see `victims.allowed`.
        reclaimable: Which pods may be evicted for a pod of another queue.
        preemptor_classes: What of a pod that asks decides about the answers of `preemptable`.
        reclaimer_classes: The same for `reclaimable`.
        victim_queue_order: The queue whose pods are evicted first for another queue.
        victim_tasks: Pods that are to go without another one asking for their place.
        evictable: Whether a pod may be evicted without another one asking for its place; all must agree.
        target_job: For which of several jobs nodes are to be reserved.
        reserved_nodes: Which node to reserve next for a job; None for no further one.
        pod_checks: Why no node whatever can take pods of a shape.
        filters: Which nodes a pod may use; all must agree.
        domain_filters: The same, where a placement changes the answers of a whole domain; they make an object for a ranking.
        scores: How good nodes are; summed.
        domain_scores: The same, where a placement changes the values of a whole domain.
        task_scores: The same for single pods.
        queue_kinds: By plugin, which queues are alike to its filters and scores: those with equal values.
        on_allocate: Called when a pod is placed or pipelined.
        on_deallocate: Called when a pod loses its place again.
        causes: What refusals depend on, by the step in which plugins refuse.
        needs_minimum: Whether no job is ready with less than its minimum of pods.
    """

    queue_order: list[Extension[Callable[[Queue], SortKey]]] = field(default_factory=list)
    queue_epochs: list[Extension[Callable[[], int]]] = field(default_factory=list)
    queue_groups: list[Extension[QueueGroups]] = field(default_factory=list)
    job_order: list[Extension[Callable[[JobInfo], SortKey]]] = field(default_factory=list)
    task_order: list[Extension[Callable[[TaskInfo], SortKey]]] = field(default_factory=list)
    moving_task_order: bool = False
    job_valid: list[Extension[Callable[[JobInfo], Reason | None]]] = field(default_factory=list)
    job_enqueueable: list[Extension[Callable[[JobInfo], Vote | Reason | Refusal]]] = field(
        default_factory=list
    )
    node_gates: set[str] = field(default_factory=set)
    job_enqueued: list[Extension[Callable[[JobInfo], None]]] = field(default_factory=list)
    job_entitled: list[Extension[Callable[[JobInfo], bool]]] = field(default_factory=list)
    job_ready: list[Extension[Callable[[JobInfo], bool]]] = field(default_factory=list)
    job_pipelined: list[Extension[Callable[[JobInfo], Vote]]] = field(default_factory=list)
    job_starving: list[Extension[Callable[[JobInfo], bool]]] = field(default_factory=list)
    overused: list[Extension[Callable[[Queue], bool]]] = field(default_factory=list)
    allocatable: list[Extension[Callable[[Queue, TaskInfo], Reason | None]]] = field(
        default_factory=list
    )
    queue_room: list[Extension[Callable[[Queue], Ints]]] = field(default_factory=list)
    preemptive: list[Extension[Callable[[Queue, TaskInfo], Reason | None]]] = field(
        default_factory=list
    )
    preemptable: list[Extension[VictimCheck]] = field(default_factory=list)
    reclaimable: list[Extension[VictimCheck]] = field(default_factory=list)
    preemptor_classes: list[Callable[[Preemptor], Hashable]] = field(default_factory=list)
    reclaimer_classes: list[Callable[[Preemptor], Hashable]] = field(default_factory=list)
    victim_queue_order: list[Extension[Callable[[Queue, Queue], SortKey]]] = field(
        default_factory=list
    )
    victim_tasks: list[Extension[VictimPoint]] = field(default_factory=list)
    evictable: list[Extension[Callable[[TaskInfo], bool]]] = field(default_factory=list)
    target_job: list[Extension[Callable[[Sequence[JobInfo]], JobInfo | None]]] = field(
        default_factory=list
    )
    reserved_nodes: list[Extension[NodeChoice]] = field(default_factory=list)
    pod_checks: list[Extension[Callable[[PodShape], Reason | None]]] = field(default_factory=list)
    filters: list[Extension[FilterPoint]] = field(default_factory=list)
    domain_filters: list[Extension[Callable[[PodClass], DomainFilter | None]]] = field(
        default_factory=list
    )
    scores: list[Extension[ScorePoint]] = field(default_factory=list)
    domain_scores: list[Extension[Callable[[PodClass], DomainScore | None]]] = field(
        default_factory=list
    )
    task_scores: list[Extension[TaskScorePoint]] = field(default_factory=list)
    queue_kinds: dict[str, Callable[[str], Hashable]] = field(default_factory=dict)
    on_allocate: list[Extension[Callable[[TaskInfo, NodeRecord], None]]] = field(
        default_factory=list
    )
    on_deallocate: list[Extension[Callable[[TaskInfo, NodeRecord], None]]] = field(
        default_factory=list
    )
    causes: dict[Step, int] = field(default_factory=lambda: dict.fromkeys(get_args(Step), 0))
    needs_minimum: bool = False
