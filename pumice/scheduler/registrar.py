"""Where plugins register: only what their switches in the configuration leave on is listed."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TypeVar, Unpack

from pumice.api.queues import Queue
from pumice.scheduler.model.axis import Floats, Ints
from pumice.scheduler.model.candidates import (
    VictimCheck,
    VictimPromises,
    any_preemptor,
    gang_of,
)
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.nodes import NodeRecord
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.points import (
    DomainFilter,
    DomainFit,
    DomainScore,
    DomainScorePoint,
    Extension,
    Extensions,
    FilterPoint,
    NodeChoice,
    PodClass,
    Point,
    QueueGroups,
    Refusal,
    RowFilter,
    Scope,
    Score,
    ScorePoint,
    SortKey,
    TaskScore,
    TaskScorePoint,
    VictimPoint,
    Vote,
    any_gang,
)
from pumice.scheduler.results import Reason
from pumice.scheduler.waiting.parked import Cause

T = TypeVar("T")

_ITSELF: Callable[[JobInfo], Hashable] = attrgetter("key")


class Registrar:
    """Registers the functions of one plugin in a session.

    A function that may refuse a gang names what its refusals depend on (`wakes`): the gang is tried again when such a thing has
    changed, or itself, or rules (`Cause.RULES`). A gang that was refused by a function which names nothing is tried in every cycle.
    """

    def __init__(
        self, extensions: Extensions, plugin: str, tier: int, switches: Mapping[str, bool]
    ) -> None:
        """Create a registrar that adds what a plugin of a tier, from 0, registers; with all its switches and their values."""
        self._extensions = extensions
        self._plugin = plugin
        self._tier = tier
        self._switches = switches

    def is_on(self, switch: str) -> bool:
        """Whether a switch of the plugin is on."""
        return self._switches[switch]

    def _add(self, point: Point[T], call: T, wakes: Cause = Cause.ANY) -> bool:
        """Register a function; False if its switch is off."""
        if point.switch and not self._switches[point.switch]:
            return False
        found: list[Extension[T]] = getattr(self._extensions, point.name)
        found.append(Extension(self._tier, self._plugin, call))
        if point.step is not None:
            self._extensions.causes[point.step] |= int(wakes)
        return True

    def queue_order(
        self,
        key: Callable[[Queue], SortKey],
        *,
        epoch: Callable[[], int] | None = None,
        groups: QueueGroups | None = None,
    ) -> None:
        """Register the order of queues: the one with the smaller key is first. Not called if only one queue waits.

        While a session runs, keys may grow with what is placed, and become smaller with what is evicted or undone.

        Args:
            key: Place of a queue.
            epoch: A number that changes when keys have become smaller for another reason; None if they never do.
            groups: Which keys a decision changes; None if it may change all. Then a turn may cost in proportion to the number of queues.
        """
        if self._add(Extensions.queue_order, key):
            self._extensions.queue_epochs += [epoch] if epoch is not None else []
            self._extensions.queue_groups += [groups] if groups is not None else []

    def job_order(self, key: Callable[[JobInfo], SortKey], *, moves: bool = False) -> None:
        """Register the order of the jobs of a queue.

        While a session runs, the key of a job may only grow, and only while that job has its turn, unless it `moves` with what other jobs get. It may
        become smaller when pods of the job are evicted, or when a placement is undone.
        """
        self._extensions.moving_job_order |= self._add(Extensions.job_order, key) and moves

    def task_order(self, key: Callable[[TaskInfo], SortKey], *, moves: bool = False) -> None:
        """Register the order of the pods of a job; `moves` if placing one pod changes the key of another."""
        self._extensions.moving_task_order |= self._add(Extensions.task_order, key) and moves

    def job_valid(
        self, check: Callable[[JobInfo], Reason | None], *, wakes: Cause = Cause.ANY
    ) -> None:
        """Register a check why a job cannot be tried at all. It has no switch."""
        self._add(Extensions.job_valid, check, wakes)

    def job_enqueueable(
        self,
        vote: Callable[[JobInfo], Vote | Reason | Refusal],
        *,
        wakes: Cause = Cause.ANY,
        by: Callable[[JobInfo], Hashable] = _ITSELF,
        room: Callable[[JobInfo], Ints] | None = None,
        is_about_nodes: bool = False,
    ) -> None:
        """Register a vote on whether a job may enter its queue; a Reason rejects, and so does a function that returns one.

        Args:
            vote: The function.
            wakes: What a rejection depends on.
            by: What of the job decides about the vote, besides its queue, namespace, priority and minimum: the job itself unless told. It follows
                from the job's PodGroup and pods alone. Jobs that are alike to all plugins share an answer until one enters or a pod is placed.
            room: The most that a job with the queue and the priority of a job may need, by column: those that need more of any resource are
                rejected by `vote`. It follows what enters. How many pods there may be is not read.
            is_about_nodes: Whether it rejects for want of room on nodes alone. It cannot keep out a job for which nodes are reserved.
        """
        found = self._extensions
        if self._add(Extensions.job_enqueueable, vote, wakes):
            found.gate_classes += [] if by in (*found.gate_classes, any_gang) else [by]
            found.gate_rooms += [(self._tier, room)] if room is not None else []
            found.node_gates |= {self._plugin} if is_about_nodes else set()

    def job_enqueued(self, told: Callable[[JobInfo], None]) -> None:
        """Register a function to be called when a job has entered its queue."""
        self._add(Extensions.job_enqueued, told)

    def job_entitled(
        self,
        check: Callable[[JobInfo], bool],
        *,
        room: Callable[[JobInfo], Ints] | None = None,
    ) -> None:
        """Register a check whether the queue of a job may reclaim what the job needs at least; jobs of equal priority and needs in a queue share an answer.

        It is true of none that needs more of a resource than `room` says for the queue of a job, by column.
        """
        found = self._extensions
        if self._add(Extensions.job_entitled, check):
            found.entitled_rooms += [room] if room is not None else []

    def job_ready(
        self,
        check: Callable[[JobInfo], bool],
        *,
        wakes: Cause = Cause.ANY,
        needs_minimum: bool = False,
    ) -> None:
        """Register a check whether the placements of a job may be committed; `needs_minimum` if it is never true of less than its minimum of pods.

        The answer depends on what `wakes` says, besides the pods of the job that have places.
        """
        is_on = self._add(Extensions.job_ready, check, wakes)
        self._extensions.needs_minimum |= is_on and needs_minimum

    def job_pipelined(
        self, vote: Callable[[JobInfo], Vote], *, needs_minimum: bool = False
    ) -> None:
        """Register a vote on whether a job that is not ready may keep its pipelined pods until the end.

        `needs_minimum` if it rejects all that have, with these, less than their minimum of pods.
        """
        found = self._extensions
        if self._add(Extensions.job_pipelined, vote):
            is_first = found.job_pipelined[0].tier == self._tier  # no tier before it permits them
            found.promises_need_minimum |= needs_minimum and is_first

    def job_starving(self, check: Callable[[JobInfo], bool]) -> None:
        """Register a check whether a job is below what it needs."""
        self._add(Extensions.job_starving, check)

    def overused(self, check: Callable[[Queue], bool], *, wakes: Cause = Cause.ANY) -> None:
        """Register a check whether a queue has all that it may have."""
        self._add(Extensions.overused, check, wakes)

    def allocatable(
        self,
        check: Callable[[Queue, TaskInfo], Reason | None],
        *,
        wakes: Cause = Cause.ANY,
        room: Callable[[Queue], Ints] | None = None,
        waits: Callable[[Queue, TaskInfo, Ints], bool] | None = None,
    ) -> None:
        """Register a check why a queue cannot take a pod.

        While pods of a gang are placed, an answer may only become stricter: pods of a shape that was refused are not
        asked about again in this turn.

        Args:
            check: The function.
            wakes: What a refusal depends on.
            room: What a queue may still take, by column; it follows what is placed, and grows by no more than pods hold that are
                evicted. Pods that ask for more together are not all let in by `check`.
            waits: Whether it may take a pod only once pods that terminate have ended, which hold these amounts by row and column.
        """
        if self._add(Extensions.allocatable, check, wakes):
            self._extensions.queue_room += [room] if room is not None else []
            self._extensions.queue_waits += [waits] if waits is not None else []

    def preemptive(
        self,
        check: Callable[[Queue, TaskInfo], Reason | None],
        *,
        room: Callable[[Queue], Ints] | None = None,
    ) -> None:
        """Register a check why a queue may not reclaim from other queues what a pod needs.

        Args:
            check: The function.
            room: What a queue may still take so, by column; it follows what is placed, and does not grow when pods of other queues are evicted.
                Pods that ask for more together are not all let in by `check`.
        """
        if self._add(Extensions.preemptive, check):
            self._extensions.preemptive_room += [room] if room is not None else []

    def preemptable(self, check: VictimCheck, **promises: Unpack[VictimPromises]) -> None:
        """Register which running pods may be evicted for a pod of their own queue, with what is known of the answers.

        While a session runs, answers for the pods of a gang may only become stricter. A candidate that may not go if it
        is the only one of its node may not go after others either.
        """
        self._add_victims(Extensions.preemptable, check, promises)

    def reclaimable(self, check: VictimCheck, **promises: Unpack[VictimPromises]) -> None:
        """Register which running pods may be evicted for a pod of another queue; as for `preemptable`."""
        self._add_victims(Extensions.reclaimable, check, promises)

    def _add_victims(
        self, point: Point[VictimCheck], check: VictimCheck, promises: VictimPromises
    ) -> None:
        found = self._extensions
        if self._add(point, check):
            by, why = promises.get("by", gang_of), promises.get("why")
            found.lasting_classes |= {by} if promises.get("lasts") else set()
            is_own = point is Extensions.preemptable
            classes = found.preemptor_classes if is_own else found.reclaimer_classes
            classes += [] if by in (*classes, any_preemptor) else [by]
            found.why_spared |= {self._plugin: why} if why is not None else {}
            found.spares_gangs |= {id(check): promises["spares"]} if "spares" in promises else {}
            found.most_taken |= {id(check): promises["most"]} if "most" in promises else {}

    def victim_queue_order(self, key: Callable[[Queue, Queue], SortKey]) -> None:
        """Register the order in which queues lose pods: the one with the smaller key first; the second queue is the preemptor's.

        Without such keys it is the queue that comes last in the order of queues.
        """
        self._add(Extensions.victim_queue_order, key)

    def victim_tasks(self, choose: Callable[[], Iterable[TaskInfo]], *, every: float = 0.0) -> None:
        """Register a choice of running pods to evict without a preemptor.

        When it has named some, it is not asked again for `every` seconds; a cycle runs when they are over.
        """
        self._add(Extensions.victim_tasks, VictimPoint(choose, every))

    def evictable(self, check: Callable[[TaskInfo], bool]) -> None:
        """Register a check whether a pod of `victim_tasks` may be evicted; called before each eviction."""
        self._add(Extensions.evictable, check)

    def target_job(self, choose: Callable[[Sequence[JobInfo]], JobInfo | None]) -> None:
        """Register the choice of the job for which nodes are reserved."""
        self._add(Extensions.target_job, choose)

    def reserved_nodes(self, choose: NodeChoice) -> None:
        """Register the choice of the node to reserve next for the target job; None for no further one."""
        self._add(Extensions.reserved_nodes, choose)

    def pod_check(
        self, check: Callable[[PodShape], Reason | None], *, wakes: Cause = Cause.ANY
    ) -> None:
        """Register a check why no node can take pods of a shape; called once in a session for each shape."""
        self._add(Extensions.pod_check, check, wakes)

    def alike_queues(self, kind: Callable[[str], Hashable] = lambda _: None) -> None:
        """Register which queues are alike to the filters and scores of this plugin: those with equal values, by default all.

        Pods of one shape then share what was found out about nodes. Without this a filter or score is asked for each queue again.
        """
        self._extensions.queue_kinds[self._plugin] = kind

    def node_filter(
        self,
        judge: RowFilter,
        *,
        scope: Scope = "fixed",
        by_rules: bool = False,
        wakes: Cause = Cause.ANY,
    ) -> None:
        """Register a filter of nodes for a class of pods.

        While pods of a gang are placed, an answer may only become stricter: a shape that has found no node is not
        tried again in this turn.

        Args:
            judge: The function.
            scope: How far a placement changes its answers.
            by_rules: Promise that its answers do not depend on what pods request (`vector`, `needs`): shapes that differ in that alone share them.
            wakes: What its answers depend on.
        """
        self._add(Extensions.node_filter, FilterPoint(judge, scope, by_rules), wakes)

    def domain_filter(
        self, build: Callable[[PodClass], DomainFilter | None], *, wakes: Cause = Cause.ANY
    ) -> None:
        """Register a filter of nodes for a class of pods, if a placement changes the results of a whole domain of nodes.

        Answers may become looser while pods of a gang are placed, for shapes with `PeerRules.may_be_helped` only. `build` makes the filter of a
        ranking; None where there is nothing to object to, whatever is placed.
        """
        self._add(Extensions.domain_filter, build, wakes)

    def domain_score(
        self, build: Callable[[PodClass], DomainScore | None], *, is_even: bool = False
    ) -> None:
        """Register scores of nodes, if a placement changes the values of a whole domain of nodes; as `domain_filter`.

        They are `is_even` if nodes of one domain of the network have equal scores, so that these are not asked for where one was chosen.
        """
        self._add(Extensions.domain_score, DomainScorePoint(build, is_even))

    def node_score(
        self,
        score: Score,
        *,
        scope: Scope = "fixed",
        ranked: bool = False,
        by_rules: bool = False,
        amounts_only: bool = False,
    ) -> None:
        """Register scores of nodes for a class of pods.

        Args:
            score: The function. Its values must follow from the rows that it is given alone.
            scope: How far a placement changes its values.
            ranked: Let the best nodes of this scorer be the only ones that later scorers and the sum of
                the unranked may choose from. For intentions that must not drown in a sum.
            by_rules: Promise that its values do not depend on what pods request, as in `node_filter`.
            amounts_only: Promise that its values follow from the amounts of a row and the pod alone: rows with equal amounts share them, in later sessions, too.
        """
        point = ScorePoint(score, scope, ranked, by_rules, amounts_only)
        self._add(Extensions.node_score, point)

    def task_score(self, score: TaskScore, *, ranked: bool = False) -> None:
        """Register scores of nodes for a single pod; called again for every pod."""
        self._add(Extensions.task_score, TaskScorePoint(score, ranked))

    def domain_search(
        self, wants: Callable[[JobInfo], bool], *, most_domains: int | None = None
    ) -> None:
        """Register which gangs with a `networkTopology` get a domain; without such a plugin a gang with mode hard waits.

        An eviction for one gang looks at `most_domains` at most; the least of several plugins counts.
        """
        found = self._extensions
        if self._add(Extensions.domain_search, wants) and most_domains is not None:
            found.most_domains = min(most_domains, found.most_domains or most_domains)

    def ignore_network(self) -> None:
        """Let gangs be placed as if they had no `networkTopology`."""
        self._extensions.ignores_network = True

    def domain_order(self, score: Callable[[DomainFit], Floats | None]) -> None:
        """Register scores of domains of one tier, the highest first; None if they are all equal."""
        self._add(Extensions.domain_order, score)

    def on_allocate(self, told: Callable[[TaskInfo, NodeRecord], None]) -> None:
        """Register a function to be called when a pod is placed or pipelined."""
        self._add(Extensions.on_allocate, told)

    def on_deallocate(self, told: Callable[[TaskInfo, NodeRecord], None]) -> None:
        """Register a function to be called when a pod has lost its place again."""
        self._add(Extensions.on_deallocate, told)
