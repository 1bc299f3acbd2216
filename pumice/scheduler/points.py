"""The extension points of the scheduler: what plugins may register, what they are asked, and how answers are combined.

Plugins register functions when a session opens, or once for several (`registrar.py`); `session/answers.py` combines several answers. The tables in
`docs/scheduler` follow from the rows of `Extensions`.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeVar, overload

import msgspec
import numpy as np

from pumice.api.queues import Queue
from pumice.scheduler.model.axis import Bools, Floats, Ints
from pumice.scheduler.model.candidates import (
    MostTaken,
    Preemptor,
    SparesGangs,
    VictimCheck,
    WhySpared,
    gang_of,
)
from pumice.scheduler.model.domains import Topology
from pumice.scheduler.model.group_tree import PeerClass
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.nodes import NodeRecord
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.results import Reason
from pumice.scheduler.topology.levels import SideBySide

T = TypeVar("T")

PREEMPTING = ("preempt", "gangpreempt")
"""Actions that evict pods for others of the same queue."""

RECLAIMING = ("reclaim", "gangreclaim")
"""Actions that evict pods of one queue for those of another."""

_ENTERING, _PLACING, _EVICTING = ("enqueue",), ("allocate", "backfill"), (*PREEMPTING, *RECLAIMING)
_RESERVING = ("elect", "reserve")

SortKey = Any
"""Something that compares with its like; the smaller comes first."""

Step = Literal["valid", "gate", "share", "check", "filter", "ready"]
"""Where plugins refuse a gang: as such, at its queue's gate, by shares, for the shape of a pod, by nodes, and because it is not ready."""

Scope = Literal["fixed", "row", "all"]
"""What a placement changes about an answer: nothing, the row of the node, or any row.

The same holds for a change of a node, its labels for example: unless the scope is `all`, it changes answers for its own row
only. A filter answers for the rows that it is asked about, which may be a few (`Rows.index`).
"""


class Combined(StrEnum):
    """How the answers of several plugins become one."""

    ORDER = "the first plugin that sees a difference decides, in the order of tiers and of plugins in a tier; then age, then name"
    VOTES = "a vote against decides at once; otherwise a tier with a vote in favour does; without votes the answer is yes"
    TIER = "the first tier that has such a function decides; all its plugins must agree"
    VICTIMS = (
        "the plugins of a tier must agree; on each node the first tier that allows any pod decides"
    )
    FIRST_TIER = "the first tier that names any decides; what each of its plugins names counts"
    FIRST = "the first plugin that names one decides"
    ALL = "all must agree"
    ANY = "one plugin that says so is enough"
    SUM = "scores that come first (of `nodegroup`, `task-topology`) decide one after the other; among equal nodes the sum of the others, then the name"
    NONE = "they are told, and asked nothing"


class QueueGroups(msgspec.Struct, frozen=True):
    """Which keys of queues a decision about a pod changes.

    Attributes:
        path: Names of the groups that a queue is in, from the outermost inwards: a decision about a pod of a queue changes no order within a group
            that the queue is not in. None if it changes the key of that queue alone.
        names: Queues that have groups.
        epoch: A number that changes when all keys may have changed; None if only decisions about pods change them.
    """

    path: Callable[[str], Sequence[str]] | None = None
    names: Collection[str] = ()
    epoch: Callable[[], int] | None = None


class Vote(IntEnum):
    """A vote on a job."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


def any_gang(_: JobInfo) -> Hashable:
    """A constant key: the answer depends on nothing else of a gang."""
    return None


Refusal = Callable[[], Reason]
"""A rejection whose reason is put into words when it is asked for."""


class FilterResult(msgspec.Struct, frozen=True):
    """A filter's answer for some rows.

    Attributes:
        codes: 0 where the node will do, else 1 + the place of the reason in `texts`.
        texts: Reasons, as they are counted in `0/3 nodes are unavailable: …`.
    """

    codes: Ints
    texts: tuple[str, ...]


class PodClass(msgspec.Struct, eq=False):
    """Pods for which the same nodes are equally good: one shape, in one queue.

    Attributes:
        shape: What the pods ask for.
        queue: Queue of the pods.
        allowed: Nodes that pass the fixed filters; set before scores are asked for.
        gang: Key of their gang if it may use nodes that are reserved; otherwise empty, as gangs share their classes.
        peers: What sets them apart as targets of other pods' affinity, anti-affinity and spread; None if there are none. Classes share
            filters and scores of nodes if they differ in this, or in `shape.peers`, alone.
    """

    shape: PodShape
    queue: str
    allowed: Bools
    gang: str = ""
    peers: PeerClass | None = None


NodeChoice = Callable[[JobInfo, Callable[[TaskInfo], Bools]], str | None]
"""Which node to reserve next for a job, None for no further one. It is given which nodes a pod of the job may use that could hold it if
nothing else were there."""

RowFilter = Callable[[PodClass, Rows], FilterResult | None]
"""Which of these rows a class of pods may use; None for all of them."""

Score = Callable[[PodClass, Rows], Floats | None]
"""Scores of rows for a class of pods; None if they are all equal."""

TaskScore = Callable[[TaskInfo, Rows], Floats | None]
"""Scores of all rows for one pod; None if they are all equal."""


class DomainFit(NamedTuple):
    """Pods that are to be placed in one of several domains of the network.

    Attributes:
        asked: Column of each resource that they ask for, and the sum of what they ask for.
        pods: How many pods their gang or sub-group has, those with places included.
        by_row: How many of these have places on each node; None for none.
        rows: All nodes.
        domains: The domains.
        gone: What is used of each domain by pods that are to be evicted, by column; None for nothing.
    """

    asked: Mapping[str, tuple[int, int]]
    pods: int
    by_row: Ints | None
    rows: Rows
    domains: SideBySide
    gone: Ints | None

    @property
    def held(self) -> Ints:
        """How many of the pods have places in each domain."""
        if self.by_row is None:
            return np.zeros(len(self.domains), dtype=np.int64)
        return self.domains.sums(self.by_row)

    def allocatable(self, column: int) -> Ints:
        """What each domain has of a resource."""
        return self.domains.sums(self.rows.allocatable[:, column])

    def used(self, column: int) -> Ints:
        """What pods use of it, those that are promised a place included."""
        used = self.domains.sums(self.rows.used[:, column] + self.rows.pipelined[:, column])
        return used if self.gone is None else used - self.gone[column]


class DomainFilter(Protocol):
    """Filter of nodes for a class of pods, if a placement changes the results of a whole domain of nodes.

    A ranking has one of its own. It follows the counts of pods by domain, so that the ranking is not computed again.
    """

    def column(self) -> Floats:
        """For every node 0 where the pods may go now, otherwise minus infinity; to be read only."""

    def judge(self, rows: Rows, /) -> FilterResult | None:
        """Judge rows as they are; None when there is nothing to object to."""

    def starting(self) -> Sequence[Topology]:
        """Topology keys of which one domain must hold a whole group, if the next pod is the first of it; none by default."""
        return ()

    def alone(self) -> Sequence[Topology]:
        """Topology keys of which no domain may hold two of the pods; none by default."""
        return ()


class DomainScore(Protocol):
    """Scores of nodes for a class of pods, if a placement changes the values of a whole domain of nodes."""

    def column(self) -> Floats:
        """The value of every node now; to be read only."""


class FilterPoint(msgspec.Struct, frozen=True):
    """A filter of nodes with its properties; see `Registrar.node_filter`."""

    judge: RowFilter
    scope: Scope
    by_rules: bool = False


class ScorePoint(msgspec.Struct, frozen=True):
    """A scorer of nodes with its properties; see `Registrar.node_score`."""

    score: Score
    scope: Scope
    is_ranked: bool
    by_rules: bool = False
    amounts_only: bool = False


class DomainScorePoint(msgspec.Struct, frozen=True):
    """A scorer of domains with its properties; see `Registrar.domain_score`."""

    build: Callable[[PodClass], DomainScore | None]
    is_even: bool = False


class TaskScorePoint(msgspec.Struct, frozen=True):
    """A scorer that looks at the single pod; ranked ones come after the ranked ones of classes."""

    score: TaskScore
    is_ranked: bool


class VictimPoint(msgspec.Struct, frozen=True):
    """A choice of pods to evict without a preemptor; see `Registrar.victim_tasks`."""

    choose: Callable[[], Iterable[TaskInfo]]
    every: float


class Extension(msgspec.Struct, Generic[T], frozen=True):
    """One registered function.

    Attributes:
        tier: Number of its tier.
        plugin: Who registered it.
        call: The function.
    """

    tier: int
    plugin: str
    call: T


class Point(Generic[T]):
    """An extension point: an attribute of `Extensions` with what plugins have registered there.

    They are in the order of tiers, and of plugins in a tier. The class `Extensions` itself has the points.

    Attributes:
        name: Its name.
        question: What the functions are asked, as the end of a sentence.
        combined: How several answers become one.
        asked_by: Actions that ask.
        switch: Switch of the configuration that turns the functions of one plugin off; empty for none.
        step: Where a refusal is counted; None if the functions refuse no gang.
    """

    def __init__(
        self,
        question: str,
        combined: Combined,
        asked_by: tuple[str, ...],
        switch: str = "",
        step: Step | None = None,
    ) -> None:
        self.name = ""
        self.question = question
        self.combined = combined
        self.asked_by = asked_by
        self.switch = switch
        self.step = step

    def __set_name__(self, _: type, name: str) -> None:
        self.name = name

    if TYPE_CHECKING:  # the class `Extensions` has the point itself, an instance what is registered

        @overload
        def __get__(self, found: None, _: type) -> "Point[T]": ...
        @overload
        def __get__(self, found: "Extensions", _: type) -> list[Extension[T]]: ...
        def __get__(self, found: Any, _: type) -> Any: ...


class Extensions:
    """The extension points of one session, a row each; `Registrar` has a method of the same name for each of them.

    Orders are given by sort keys: keys of several plugins are compared one after the other, which is the same
    as asking comparators until one of them decides.

    Its other attributes keep what plugins promise about their functions, which `Registrar` explains; a few are not arguments of it:

    Attributes:
        lasting_classes: Those of `preemptor_classes` and `reclaimer_classes` that follow from the PodGroup and the pods of a gang alone.
        spares_gangs: What `spares` says, by the identity of the check that it is about: a plugin's need not have a hash. `most_taken` is by it, too.
        gate_rooms: What `room` of `job_enqueueable` says, with the tier of who says so.
        causes: What refusals depend on, by the step in which plugins refuse.
        node_values: What nodes were worth to pods in the last sessions, as `NodeRankings` keeps it.
    """

    # fmt: off
    queue_order = Point[Callable[[Queue], SortKey]]("which queue goes first", Combined.ORDER, _ENTERING + _PLACING + _EVICTING, "enableQueueOrder")
    job_order = Point[Callable[[JobInfo], SortKey]]("which gang of a queue goes first", Combined.ORDER, _ENTERING + _PLACING + _EVICTING, "enableJobOrder")
    task_order = Point[Callable[[TaskInfo], SortKey]]("which pod of a gang goes first", Combined.ORDER, _PLACING + _EVICTING, "enableTaskOrder")
    job_valid = Point[Callable[[JobInfo], Reason | None]]("whether a gang can be tried at all", Combined.ALL, _PLACING + _EVICTING + _RESERVING, step="valid")
    job_enqueueable = Point[Callable[[JobInfo], Vote | Reason | Refusal]]("whether a gang may enter its queue", Combined.VOTES, _ENTERING, "enableJobEnqueued", "gate")
    job_enqueued = Point[Callable[[JobInfo], None]]("counts a gang that has entered its queue", Combined.NONE, _ENTERING + _PLACING, "enableJobEnqueued")
    job_entitled = Point[Callable[[JobInfo], bool]]("whether a queue may take back what a gang needs, so that a full cluster does not keep it out", Combined.ANY, _ENTERING, "enableJobEnqueued")
    job_ready = Point[Callable[[JobInfo], bool]]("whether the places found for a gang may be used", Combined.ALL, _PLACING + _RESERVING, "enableJobReady", "ready")
    job_pipelined = Point[Callable[[JobInfo], Vote]]("whether a gang that cannot start yet may hold the places found for it", Combined.VOTES, _PLACING + _EVICTING, "enableJobPipelined")
    job_starving = Point[Callable[[JobInfo], bool]]("whether pods may be evicted for a gang", Combined.TIER, _EVICTING, "enableJobStarving")
    overused = Point[Callable[[Queue], bool]]("whether a queue has all that it may have", Combined.ANY, ("allocate", *RECLAIMING), "enabledOverused", "share")
    allocatable = Point[Callable[[Queue, TaskInfo], Reason | None]]("whether a queue may take a pod", Combined.ALL, _PLACING + _EVICTING, "enabledAllocatable", "share")
    preemptive = Point[Callable[[Queue, TaskInfo], Reason | None]]("whether pods of other queues may be evicted for a pod", Combined.ALL, RECLAIMING, "enablePreemptive")
    preemptable = Point[VictimCheck]("which pods may go for a pod of their own queue", Combined.VICTIMS, PREEMPTING, "enablePreemptable")
    reclaimable = Point[VictimCheck]("which pods may go for a pod of another queue", Combined.VICTIMS, RECLAIMING, "enableReclaimable")
    victim_queue_order = Point[Callable[[Queue, Queue], SortKey]]("of which queue pods go first", Combined.ORDER, RECLAIMING, "enableQueueOrder")
    victim_tasks = Point[VictimPoint]("which pods go without another pod taking their place", Combined.FIRST_TIER, ("shuffle",), "enabledVictim")
    evictable = Point[Callable[[TaskInfo], bool]]("whether such a pod may go", Combined.ALL, ("shuffle",), "enabledVictim")
    target_job = Point[Callable[[Sequence[JobInfo]], JobInfo | None]]("for which gang nodes are reserved", Combined.FIRST, ("elect",), "enableTargetJob")
    reserved_nodes = Point[NodeChoice]("which node is reserved next", Combined.FIRST, ("reserve",), "enableReservedNodes")
    pod_check = Point[Callable[[PodShape], Reason | None]]("whether a pod can be placed at all", Combined.ALL, _PLACING + _EVICTING, "enablePredicate", "check")
    node_filter = Point[FilterPoint]("which nodes a pod may use", Combined.ALL, ("enqueue", *_PLACING, *_EVICTING, *_RESERVING), "enablePredicate", "filter")
    domain_filter = Point[Callable[[PodClass], DomainFilter | None]]("which nodes a pod may use, where that depends on pods of other nodes too", Combined.ALL, _PLACING + _EVICTING, "enablePredicate", "filter")
    node_score = Point[ScorePoint]("which of these nodes is best", Combined.SUM, _PLACING + _EVICTING, "enableNodeOrder")
    domain_score = Point[DomainScorePoint]("which of these nodes is best, where that depends on pods of other nodes too", Combined.SUM, _PLACING + _EVICTING, "enableNodeOrder")
    task_score = Point[TaskScorePoint]("which of these nodes is best for one pod of a gang", Combined.SUM, _PLACING + _EVICTING, "enableNodeOrder")
    domain_search = Point[Callable[[JobInfo], bool]]("whether a gang that must, or should, be in one domain of the network gets one", Combined.ANY, _PLACING + _EVICTING + _RESERVING, "enabledHyperNodeGradient")
    domain_order = Point[Callable[[DomainFit], Floats | None]]("which of several domains of one tier is best for a gang or a sub-group", Combined.SUM, _PLACING + _EVICTING, "enabledHyperNodeOrder")
    on_allocate = Point[Callable[[TaskInfo, NodeRecord], None]]("counts a pod that got a place", Combined.NONE, _PLACING + _EVICTING)
    on_deallocate = Point[Callable[[TaskInfo, NodeRecord], None]]("counts a pod that lost its place", Combined.NONE, (*_PLACING, *_EVICTING, "shuffle"))
    # fmt: on

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget what is registered."""
        vars(self).update({name: [] for name in _POINTS})
        self.queue_epochs: list[Callable[[], int]] = []
        self.queue_groups: list[QueueGroups] = []
        self.queue_room: list[Callable[[Queue], Ints]] = []
        self.preemptive_room: list[Callable[[Queue], Ints]] = []
        self.queue_waits: list[Callable[[Queue, TaskInfo, Ints], bool]] = []
        self.preemptor_classes: list[Callable[[Preemptor], Hashable]] = []
        self.reclaimer_classes: list[Callable[[Preemptor], Hashable]] = []
        self.lasting_classes: set[Callable[[Preemptor], Hashable]] = {gang_of}
        self.why_spared: dict[str, WhySpared] = {}
        self.spares_gangs: dict[int, SparesGangs] = {}
        self.most_taken: dict[int, MostTaken] = {}
        self.queue_kinds: dict[str, Callable[[str], Hashable]] = {}
        self.node_gates: set[str] = set()
        self.gate_classes: list[Callable[[JobInfo], Hashable]] = []
        self.gate_rooms: list[tuple[int, Callable[[JobInfo], Ints]]] = []
        self.entitled_rooms: list[Callable[[JobInfo], Ints]] = []
        self.causes: dict[Step, int] = defaultdict(int)
        self.node_values: dict[Hashable, Any] = {}
        self.most_domains: int | None = None
        self.moving_job_order = False
        self.moving_task_order = self.needs_minimum = self.promises_need_minimum = False
        self.ignores_network = False

    @classmethod
    def points(cls) -> dict[str, Point[Any]]:
        """The points by name."""
        return {name: each for name, each in vars(cls).items() if isinstance(each, Point)}


_POINTS = tuple(Extensions.points())
