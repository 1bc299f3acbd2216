"""The state of the cluster between cycles; it is not copied for a cycle.

Every `set_…` gets an object, finds the changes that are relevant for scheduling, and applies only these. `parked.version`
does not change otherwise, so idle cycles cost nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from pumice.api import keys
from pumice.api.budgets import PodDisruptionBudget, ResourceQuota
from pumice.api.hypernodes import HyperNode
from pumice.api.nodes import Namespace, Node, PriorityClass
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.queues import Queue, users_of
from pumice.api.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.scheduler.budget import Rounds
from pumice.scheduler.model.axis import Axis, Floats, Ints
from pumice.scheduler.model.claim_table import ClaimTable
from pumice.scheduler.model.facts import NodeFacts
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.node_selection import NodeSelection
from pumice.scheduler.model.nodes import NodeTable
from pumice.scheduler.model.report_times import NEVER, ReportDelays
from pumice.scheduler.model.running_pods import BudgetTable
from pumice.scheduler.model.selectors import NodeMatcher
from pumice.scheduler.model.shapes import ShapeTable
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.state.assumptions import Assumptions
from pumice.scheduler.state.gangs import GangTable
from pumice.scheduler.state.pods import PodTable
from pumice.scheduler.state.reserved_nodes import Reservation
from pumice.scheduler.state.usage import UsageTable
from pumice.scheduler.topology.levels import Levels
from pumice.scheduler.topology.tree import NetworkTree
from pumice.scheduler.waiting.parked import Cause, ParkedGangs

QueueValues = Ints | Floats
"""Amounts of queues by row and column, or a number by row."""

_OF_NODES = Cause.NODES | Cause.SIZES | Cause.SHARES


class ClusterState:
    """The objects of the cluster, decisions of cycles, and what cycles keep.

    What a cycle decides is assumed at once, see `assumptions`, `gangs` and `pods`. Versions of an object that are older than the one known
    are ignored.

    Attributes:
        scheduler_names: Pods with one of these `schedulerName`s are Pumice's.
        opens_gates: Whether the gate of pods that wait for room in their queue is taken away; see `TaskInfo.is_held`.
        peers: What pods say about other pods, and how many pods that concerns.
        network: The nodes as a tree of HyperNodes.
        levels: The same by tier, in columns.
        told_faults: What the owners of a HyperNode have been told that is set aside of it.
        claims: Claims, volumes, classes, and what claims that wait are to be bound to.
        gangs: Gangs, queues and priorities; `jobs`, `queues` and `shares` are its own.
        pods: Pods; `tasks` are its own.
        quotas: Quotas by namespace and name.
        parked: Why gangs wait that cycles do not try, and what changed since the last cycle.
        assumed: What was decided and is not shown by the API server yet.
        cycles: Cycles that were run on it.
        config: Configuration of the last cycle.
        settled: Version and configuration of a cycle after which there was nothing left to do.
        delays: How long reasons wait before they are written.
        wakes: When plugins and actions want a cycle to run, UNIX seconds.
        changes: Those of them from which on plugins answer otherwise, and about what.
        chose_at: When a plugin last named pods that are to go without another one asking for their place, UNIX seconds.
        reservation: The gang for which nodes are reserved, and the nodes.
        has_restored: Whether what PodGroups tell of reservations was looked at.
        too_large: Keys of gangs that wait and that the nodes could not hold if they were empty, as far as `elect` has looked.
        passed_over: Keys of gangs that `elect` has looked at and that it cannot choose, while it has not looked at all gangs.
        usage: What namespaces have used, while plugin `fairshare` asks for it.
        published: What plugins have published about queues in the last session, or how to compute it; see `SessionView.publish`.
        rounds: Which gangs earlier cycles did not reach.
        lasting: Plugins that serve several sessions, as `open_session` keeps them.
        sought: Version and moment at which an action last looked for victims for all gangs, by the action's name.
    """

    def __init__(
        self,
        scheduler_names: tuple[str, ...] = (keys.DEFAULT_SCHEDULER,),
        default_queue: str = keys.DEFAULT_QUEUE,
        *,
        assumes_bound: bool = False,
        delays: ReportDelays | None = None,
        opens_gates: bool = False,
    ) -> None:
        """Make an empty state; `assumes_bound`: claims that are not known count as bound."""
        self.scheduler_names = scheduler_names
        self.opens_gates = opens_gates
        self.axis = Axis()
        self.shapes = ShapeTable(self.axis)
        self.jobs: dict[str, JobInfo] = {}
        self.nodes = NodeTable(self.axis, self.jobs)
        self.peers = self.nodes.peers
        self.facts = NodeFacts(self.nodes)
        self.network = NetworkTree(self.nodes)
        self.levels = Levels(self.network)
        self.told_faults: dict[str, Sequence[str]] = {}
        self.matcher = NodeMatcher(self.nodes, self.facts)
        reach = NodeSelection(self.nodes, self.facts, self.matcher)
        self.claims = ClaimTable(reach, assumes_bound=assumes_bound)
        self.nodes.on_claims = (self.claims.occupy, self.claims.vacate)
        self.quotas: dict[str, dict[str, ResourceQuota]] = {}
        self.budgets = BudgetTable()
        self.parked = ParkedGangs()
        self.assumed = Assumptions()
        self.gangs = GangTable(
            self.axis, self.jobs, self.nodes, self.assumed, self.parked, default_queue
        )
        self.queues, self.shares = self.gangs.queues, self.gangs.shares
        self.pods = PodTable(
            self.nodes, self.shapes, self.gangs, self.claims, self.assumed, self.parked
        )
        self.tasks = self.pods.tasks
        self.usage = UsageTable(self.nodes.running, self.axis, self.jobs)
        self.cycles = 0
        self.config: object = None
        self.settled: tuple[int, object] | None = None
        self.delays = delays or ReportDelays()
        self.wakes: list[float] = []
        self.changes: list[tuple[float, Cause]] = []
        self.chose_at: dict[str, float] = {}
        self.reservation: Reservation | None = None
        self.has_restored = False
        self.too_large: set[str] = set()
        self.passed_over: set[str] = set()
        self.published: dict[str, QueueValues | Callable[[], QueueValues]] = {}
        self.rounds = Rounds()
        self.lasting: object = None
        self.sought: dict[str, tuple[int, float]] = {}

    # -- nodes and HyperNodes -----------------------------------------------------------------

    def set_node(self, node: Node) -> bool:
        """Add or update a node.

        Raises:
            QuantityError: An amount cannot be read; the state is as before.
        """
        allocatable = self.nodes.read(node)
        if self._widen():
            self.pods.recount()
        meta = node.metadata
        has_moved = self.network.set_node(meta.name, meta.labels, is_ready=node.is_ready)
        self.parked.changed(has_moved, Cause.DOMAIN)
        return self.parked.changed(self.nodes.set(node, allocatable), _OF_NODES)

    def remove_node(self, name: str) -> bool:
        """Remove a node; its pods stay until they are removed themselves."""
        self.parked.changed(self.network.remove_node(name), Cause.DOMAIN)
        return self.parked.changed(self.nodes.remove(name), _OF_NODES)

    def set_hyper_node(self, hyper_node: HyperNode) -> bool:
        """Add or update a HyperNode; one that is being deleted is removed."""
        return self.parked.changed(self.network.set_hyper_node(hyper_node), Cause.DOMAIN)

    def remove_hyper_node(self, name: str) -> bool:
        """Remove a HyperNode."""
        return self.parked.changed(self.network.remove_hyper_node(name), Cause.DOMAIN)

    # -- pods, gangs, queues, priorities -----------------------------------------------------

    def set_pod(self, pod: Pod) -> bool:
        """Add or update a pod.

        Raises:
            QuantityError: A request cannot be read; the state is as before.
        """
        task = TaskInfo(pod, self.shapes.intern(pod), opens_gates=self.opens_gates)
        self._widen()
        is_ours = pod.spec.scheduler_name in self.scheduler_names
        return self.parked.changed(self.pods.set(task, pod, is_ours=is_ours))

    def run_pod(self, key: str) -> bool:
        """Show a pod running where a cycle has bound it; False if it must be set instead."""
        return self.parked.changed(self.pods.run(key))

    def remove_pod(self, namespace: str, name: str) -> bool:
        """Remove a pod."""
        return self.parked.changed(self.pods.remove(f"{namespace}/{name}"))

    def set_pod_group(self, group: PodGroup) -> bool:
        """Add or update a PodGroup.

        Raises:
            QuantityError: An amount of `minResources` cannot be read; the state is as before.
        """
        return self.parked.changed(self.gangs.set_pod_group(group), Cause.SHARES)

    def remove_pod_group(self, namespace: str, name: str) -> bool:
        """Remove a PodGroup; pods that name it wait until it exists again."""
        return self.parked.changed(self.gangs.remove_pod_group(namespace, name), Cause.SHARES)

    def set_queue(self, queue: Queue) -> bool:
        """Add or update a Queue.

        Raises:
            QuantityError: An amount cannot be read; the state is as before.
        """
        return self.parked.changed(self.gangs.set_queue(queue), Cause.RULES)

    def remove_queue(self, name: str) -> bool:
        """Remove a Queue; its gangs wait until it exists again. The default queue always exists."""
        return self.parked.changed(self.gangs.remove_queue(name), Cause.RULES)

    def set_priority_class(self, priority_class: PriorityClass) -> bool:
        """Add or update a PriorityClass."""
        return self.parked.changed(self.gangs.set_priority_class(priority_class), Cause.RULES)

    def remove_priority_class(self, name: str) -> bool:
        """Remove a PriorityClass; pods and gangs that name it have priority 0."""
        return self.parked.changed(self.gangs.remove_priority_class(name), Cause.RULES)

    # -- claims and volumes ------------------------------------------------------------------

    def set_claim(self, claim: PersistentVolumeClaim) -> bool:
        """Add or update a claim."""
        changed = self.claims.objects.set_claim(claim)
        if changed:
            self.pods.touch_claimants(claim.metadata.key)
        return self.parked.changed(changed, Cause.CLAIMS)

    def remove_claim(self, namespace: str, name: str) -> bool:
        """Remove a claim; a waiting one may release a volume."""
        return self.parked.changed(self.claims.objects.remove_claim(namespace, name), Cause.CLAIMS)

    def set_volume(self, volume: PersistentVolume) -> bool:
        """Add or update a volume; for pods whose claim it is, or is to be, more than its room changes."""
        changed = self.claims.objects.set_volume(volume)
        owner = volume.spec.claim_ref
        if changed and owner is not None:
            for key in (
                f"{owner.namespace}/{owner.name}",
                *self.claims.objects.owners.get(volume.metadata.name, ()),
            ):
                self.pods.touch_claimants(key)
        return self.parked.changed(changed, Cause.CLAIMS)

    def remove_volume(self, name: str) -> bool:
        """Remove a volume."""
        return self.parked.changed(self.claims.objects.remove_volume(name), Cause.CLAIMS)

    def set_storage_class(self, storage_class: StorageClass) -> bool:
        """Add or update a StorageClass."""
        return self.parked.changed(self.claims.objects.set_class(storage_class), Cause.CLAIMS)

    def remove_storage_class(self, name: str) -> bool:
        """Remove a StorageClass."""
        return self.parked.changed(self.claims.objects.remove_class(name), Cause.CLAIMS)

    def set_csi_node(self, node: CsiNode) -> bool:
        """Set how many volumes a node can attach."""
        return self.parked.changed(self.claims.attachments.set_limits(node), Cause.CLAIMS)

    def remove_csi_node(self, name: str) -> bool:
        """Remove the limits of volumes of a node."""
        return self.parked.changed(self.claims.attachments.remove_limits(name), Cause.CLAIMS)

    # -- namespaces, their quotas and budgets -------------------------------------------------

    def set_quota(self, quota: ResourceQuota) -> bool:
        """Add or update a ResourceQuota."""
        meta = quota.metadata
        old = self.quotas.get(meta.namespace, {}).get(meta.name)
        self.quotas.setdefault(meta.namespace, {})[meta.name] = quota
        same = old is not None and (old.spec, old.status) == (quota.spec, quota.status)
        return self.parked.changed(not same, Cause.QUOTAS)

    def remove_quota(self, namespace: str, name: str) -> bool:
        """Remove a ResourceQuota."""
        named = self.quotas.get(namespace, {})
        known = named.pop(name, None) is not None
        if not named:
            self.quotas.pop(namespace, None)
        return self.parked.changed(known, Cause.QUOTAS)

    def set_namespace(self, namespace: Namespace) -> bool:
        """Add or update a Namespace."""
        name, labels = namespace.metadata.name, namespace.metadata.labels or {}
        is_new = self.peers.namespaces.get(name) != labels
        return self._namespace_changed(self.peers.set_namespace(name, labels), is_new)

    def remove_namespace(self, name: str) -> bool:
        """Remove a Namespace."""
        is_known = name in self.peers.namespaces
        return self._namespace_changed(self.peers.remove_namespace(name), is_known)

    def set_budget(self, budget: PodDisruptionBudget) -> bool:
        """Add or update a PodDisruptionBudget."""
        return self.parked.changed(self.budgets.set(budget), Cause.VICTIMS)

    def remove_budget(self, namespace: str, name: str) -> bool:
        """Remove a PodDisruptionBudget."""
        return self.parked.changed(self.budgets.remove(namespace, name), Cause.VICTIMS)

    # -- cycles ------------------------------------------------------------------------------

    def is_settled(self, config: object, now: float) -> bool:
        """True if a cycle would have nothing to do: nothing changed since one that finished its work, and nothing is due."""
        spared = (until for _, until in self.pods.spared.values())
        return (
            self.settled == (self.parked.version, config)
            and min(self.gangs.dues.values(), default=NEVER) > now
            and min(self.wakes, default=NEVER) > now
            and min(spared, default=NEVER) > now
        )

    def try_again(self, gangs: Iterable[str]) -> None:
        """Have the next cycle try gangs, whether or not anything has helped them."""
        for key in gangs:
            if key in self.gangs.waiting:
                self.gangs.dirty[key] = None
                self.parked.wake(key)
        self.parked.changed(True)

    def preparing(self) -> Iterator[None]:
        """Begin what the first cycle has to do for all pods, one pod after the other, so that others can run in between."""
        return self.peers.preparing(self.tasks)

    def settle(self, now: float = 0.0) -> None:
        """Bring rows and columns into order at a moment, and end what has lasted; a cycle does this first."""
        for moment, causes in self.changes:
            self.parked.changed(moment <= now, causes)
        self.changes.clear()
        self.wakes.clear()
        self.usage.moment = now
        self.published.clear()
        self.pods.end_sparing(now)
        self._widen()
        self.nodes.settle()
        self.facts.settle()
        self.gangs.settle(self.tasks.values())
        self.peers.settle(self.tasks.values(), lambda task: self.nodes.row_of(task.node))
        self.shares.settle(self.queues, self.jobs)

    def figure(self, name: str) -> QueueValues | None:
        """What a plugin has published in the last session; None for nothing."""
        found = self.published.get(name)
        return found() if callable(found) else found

    def set_reservation(self, reservation: Reservation | None) -> None:
        """Note for which gang nodes are reserved now."""
        for each in (self.reservation, reservation):
            if each is not None and each.gang in self.jobs:
                self.gangs.touch(self.jobs[each.gang])
        self.reservation = reservation
        self.parked.changed(True, Cause.RULES)

    # -- internals ------------------------------------------------------------------------------

    def _namespace_changed(self, for_peers: bool, changed: bool) -> bool:
        """Record a change of the labels of a namespace, if any; it may help gangs where a queue is for namespaces with a label.

        `for_peers`: whether pods have terms that ask for labels of namespaces.
        """
        users = map(users_of, self.queues.values()) if changed else ()
        if any(each is not None and each.selector is not None for each in users):
            return self.parked.changed(True, Cause.RULES)
        return self.parked.changed(for_peers, Cause.PEERS)

    def _widen(self) -> bool:
        """Open the columns that the axis has gained; True if there are any."""
        if len(self.axis) == self.shares.width:
            return False
        self.nodes.widen()
        self.shapes.widen()
        self.gangs.widen()
        return True
