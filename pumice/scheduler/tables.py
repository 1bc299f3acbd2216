"""The objects of the cluster, updated by events, with the assumed decisions.

Every `set_…` gets an object, finds the changes that are relevant for scheduling, and applies only these. `version` does
not change otherwise, so idle cycles cost nothing.

The file is long because there are twelve kinds of objects. The effects of an event on pods, gangs, nodes and cached
data must be applied together.
"""

from pumice.api import keys
from pumice.api.budgets import PodDisruptionBudget
from pumice.api.meta import ObjectMeta
from pumice.api.nodes import Namespace, Node, PriorityClass
from pumice.api.podgroups import PodGroup, PodGroupStatus
from pumice.api.pods import Pod
from pumice.api.priority_classes import NEVER
from pumice.api.queue_users import users_of
from pumice.api.queues import Queue
from pumice.api.resourcequotas import ResourceQuota
from pumice.api.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.scheduler.assumptions import Assumptions, is_older
from pumice.scheduler.budget import TOO_SLOW
from pumice.scheduler.model.axis import Axis
from pumice.scheduler.model.budgets import BudgetTable
from pumice.scheduler.model.claim_table import ClaimTable
from pumice.scheduler.model.facts import NodeFacts
from pumice.scheduler.model.jobs import ChargedPods, JobInfo
from pumice.scheduler.model.limits import QueueAmounts
from pumice.scheduler.model.node_selection import NodeSelection
from pumice.scheduler.model.nodes import NodeTable
from pumice.scheduler.model.queues import QueueTable
from pumice.scheduler.model.selectors import NodeMatcher
from pumice.scheduler.model.shapes import ShapeTable
from pumice.scheduler.model.tasks import NEEDS_ROOM, SchedulingStatus, TaskInfo
from pumice.scheduler.results import Reason
from pumice.scheduler.waiting import Cause, WaitingLine

__all__ = ["ClusterTables"]

_OF_NODES = Cause.NODES | Cause.SIZES | Cause.SHARES


class ClusterTables:
    """Nodes, pods, gangs, queues, priorities, volumes, quotas and budgets.

    Versions of an object that are older than the one known are ignored.

    Attributes:
        scheduler_names: Pods with one of these `schedulerName`s are Pumice's.
        default_queue: Queue of PodGroups that name none.
        opens_gates: Whether the gate of pods that wait for room in their queue is taken away; see `TaskInfo.is_held`.
        peers: What pods say about other pods, and how many pods that concerns.
        claims: Claims, volumes, classes, and what claims that wait are to be bound to.
        quotas: Quotas by namespace and name.
        budgets: PodDisruptionBudgets.
        version: Grows with every change that matters to scheduling.
        line: Why gangs wait that cycles do not try, and what changed since the last cycle.
        dirty: Gangs whose pods or PodGroup changed since the last cycle.
        changed_queues: Queues that changed, or got a queue below them, since the last cycle.
        told_queues: What of its spec the owners of a queue have been told that nothing enforces it, or that it cannot be.
        waiting: Gangs that a cycle may have something to do for.
        nominees: Waiting pods of gangs that are nominated for a node, by key.
        strangers: Pods that name a gang and another scheduler, and the scheduler, by gang.
        statuses: Status of every PodGroup, as it is or is about to be written.
        assumed: What was decided and is not shown by the API server yet.
        spared: Pods whose eviction was refused, by key: their uid, and until when they are left out, UNIX seconds.
        quarantined: Gangs that cycles leave out, because an unexpected exception concerned them, and why.
        warned: What the owners of a gang have been warned about, so that they hear it once.
        dues: When the reason of a gang is to be written, UNIX seconds, by key.
        pending: Why a gang waits, as of the last cycle.
    """

    def __init__(
        self,
        scheduler_names: tuple[str, ...],
        default_queue: str,
        *,
        assumes_bound: bool,
        opens_gates: bool,
    ) -> None:
        """Begin without objects; see `ClusterState`."""
        self.scheduler_names = scheduler_names
        self.default_queue = default_queue
        self.opens_gates = opens_gates
        self.axis = Axis()
        self.shapes = ShapeTable(self.axis)
        self.jobs: dict[str, JobInfo] = {}
        self.nodes = NodeTable(self.axis, self.jobs)
        self.peers = self.nodes.peers
        self.shares = QueueTable(self.axis)
        self.facts = NodeFacts(self.nodes)
        self.matcher = NodeMatcher(self.nodes, self.facts)
        self.claims = ClaimTable(
            NodeSelection(self.nodes, self.facts, self.matcher), assumes_bound=assumes_bound
        )
        self.nodes.on_claims = (self.claims.occupy, self.claims.vacate)
        self.quotas: dict[str, dict[str, ResourceQuota]] = {}
        self.tasks: dict[str, TaskInfo] = {}
        self.queues: dict[str, Queue] = {default_queue: _implied(default_queue)}
        self.priority_classes: dict[str, PriorityClass] = {}
        self.budgets = BudgetTable()
        self._has_other_queues = False
        self.version = 0
        self.line = WaitingLine()
        self.dirty: dict[str, None] = {}
        self.changed_queues: dict[str, None] = {}
        self.told_queues: dict[str, list[str]] = {}
        self.waiting: dict[str, JobInfo] = {}
        self.nominees: dict[str, TaskInfo] = {}
        self.strangers: dict[str, dict[str, str]] = {}
        self._gang_of_stranger: dict[str, str] = {}
        self.statuses: dict[str, PodGroupStatus] = {}
        self.assumed = Assumptions()
        self.spared: dict[str, tuple[str, float]] = {}
        self.quarantined: dict[str, Reason] = {}
        self.warned: dict[str, set[str]] = {}
        self.dues: dict[str, float] = {}
        self.pending: dict[str, Reason] = {}

    # -- nodes -------------------------------------------------------------------------------

    def set_node(self, node: Node) -> bool:
        """Add or update a node.

        Raises:
            QuantityError: An amount cannot be read; the state is as before.
        """
        allocatable = self.nodes.read(node)
        if self._widen():
            self._recount()
        return self._changed(self.nodes.set(node, allocatable), _OF_NODES)

    def remove_node(self, name: str) -> bool:
        """Remove a node; its pods stay until they are removed themselves."""
        return self._changed(self.nodes.remove(name), _OF_NODES)

    # -- pods --------------------------------------------------------------------------------

    def set_pod(self, pod: Pod) -> bool:
        """Add or update a pod.

        Raises:
            QuantityError: A request cannot be read; the state is as before.
        """
        task = TaskInfo(pod, self.shapes.intern(pod), opens_gates=self.opens_gates)
        old = self.tasks.get(task.key)
        if old is not None and old.uid == task.uid and is_older(task.version, old.version):
            return False
        is_strange, is_ours = False, pod.spec.scheduler_name in self.scheduler_names
        if not is_ours or self._gang_of_stranger:
            stranger_of = "" if is_ours else _gang_named(pod)
            is_strange = self._set_stranger(task.key, stranger_of, pod.spec.scheduler_name)
        node = self.assumed.correct_pod(task, pod.spec.node_name)
        gang = self._gang_of(pod, node)
        self.assumed.correct_nomination(task)
        if old is not None:
            if self._is_same(old, task, gang, node):
                old.version, old.shown, old.labels = task.version, task.shown, task.labels
                return self._changed(is_strange)
            task.verdict = old.verdict
        self._widen()
        self.shapes.use(task.shape)
        if task.shape.peers is not None:
            self.peers.use(task.shape)
        has_peers = self.peers.is_live
        self.line.happened(_of_pod(task, node))
        if old is not None:
            self.line.happened(_of_pod(old, old.node))
            if old.shape.claims and task.status is not SchedulingStatus.BINDING:
                self.claims.undecide(old)
            self._drop(old)
        self.tasks[task.key] = task
        if task.shape.claims:
            self.claims.mention(task, pod)
        if has_peers:
            self.peers.join(task)
        if gang:
            job = self._job(gang)
            job.add(task, self._charged(task, job, node))
        if node:
            self.nodes.add(task, self.nodes.record(node))
        if gang:
            self._touch(self.jobs[gang])
        self._index_nominee(task)
        return self._changed(True)

    def remove_pod(self, namespace: str, name: str) -> bool:
        """Remove a pod."""
        task = self.tasks.get(f"{namespace}/{name}")
        if task is None:
            return False
        self.assumed.end_pod(task.key)
        self.assumed.end_nomination(task.key)
        self.spared.pop(task.key, None)
        self._set_stranger(task.key, "", "")
        self.line.happened(_of_pod(task, task.node))
        if task.shape.claims:
            self.claims.undecide(task)
        self._drop(task)
        return self._changed(True)

    # -- gangs, queues, priorities -----------------------------------------------------------

    def set_pod_group(self, group: PodGroup) -> bool:
        """Add or update a PodGroup.

        Raises:
            QuantityError: An amount of `minResources` cannot be read; the state is as before.
        """
        key = f"{group.metadata.namespace}/{group.metadata.name}"
        job = self.jobs.get(key) or JobInfo(
            group.metadata.namespace, group.metadata.name, self.shares
        )
        old, new = job.group, group.metadata
        if (
            old is not None
            and old.metadata.uid == new.uid
            and is_older(new.resource_version, old.metadata.resource_version)
        ):
            return False
        status = self.assumed.correct_status(key, new, group.status)
        if (
            old is not None
            and old.metadata.uid == new.uid
            and old.spec == group.spec
            and job.status == status
            and old.metadata.annotations == new.annotations
            and old.metadata.creation_timestamp == new.creation_timestamp
        ):
            job.group = group
            return False
        if old is None or (old.spec, old.metadata.annotations) != (group.spec, new.annotations):
            why = self.quarantined.get(key)
            if why is not None and why.reason != TOO_SLOW:
                del self.quarantined[key]
        if old is not None and old.metadata.uid != new.uid:
            job.begin_again()
            self.warned.pop(job.key, None)
        queue = job.queue if job.group is not None else None
        job.set_group(group, self.default_queue)
        self.jobs[key] = job
        job.set_minimum(self.axis.known(job.min_resources))
        job.status = status
        self._prioritise(job)
        self.shares.place(job)
        if queue != job.queue:
            self._charge_all(job)
        self.statuses[job.key] = job.status
        self._touch(job)
        return self._changed(True, Cause.SHARES)

    def remove_pod_group(self, namespace: str, name: str) -> bool:
        """Remove a PodGroup; pods that name it wait until it exists again."""
        job = self.jobs.get(f"{namespace}/{name}")
        if job is None or job.group is None:
            return False
        job.set_group(None, self.default_queue)
        self.shares.place(job)
        self._charge_all(job)
        job.begin_again()
        self.warned.pop(job.key, None)
        self.assumed.end_status(job.key)
        self.statuses.pop(job.key, None)
        self._touch(job)
        return self._changed(True, Cause.SHARES)

    def set_queue(self, queue: Queue) -> bool:
        """Add or update a Queue.

        Raises:
            QuantityError: An amount cannot be read; the state is as before.
        """
        old = self.queues.get(queue.metadata.name)
        if (
            old is not None
            and old.spec == queue.spec
            and old.is_open == queue.is_open
            and old.metadata.annotations == queue.metadata.annotations
            and old.metadata.creation_timestamp == queue.metadata.creation_timestamp
        ):
            return False
        self.shares.amounts[queue.metadata.name] = QueueAmounts.of(queue)
        self._has_other_queues |= old is None
        if old is None or old.is_fifo != queue.is_fifo:
            self.line.wake_all()  # no gang of a fifo queue is parked
        self.queues[queue.metadata.name] = queue
        self.shares.unsettle()
        self.changed_queues[queue.metadata.name] = None
        parent = queue.spec.parent or keys.ROOT_QUEUE
        if parent in self.queues:
            self.changed_queues[parent] = None
        return self._changed(True, Cause.RULES)

    def remove_queue(self, name: str) -> bool:
        """Remove a Queue; its gangs wait until it exists again. The default queue always exists."""
        known = self.queues.pop(name, None) is not None
        self._has_other_queues |= known
        self.shares.amounts.pop(name, None)
        self.changed_queues.pop(name, None)
        self.told_queues.pop(name, None)
        self.shares.unsettle()
        if name == self.default_queue:
            self.queues[name] = _implied(name)
        return self._changed(known, Cause.RULES)

    def set_priority_class(self, priority_class: PriorityClass) -> bool:
        """Add or update a PriorityClass."""
        name = priority_class.metadata.name
        old = self.priority_classes.get(name)
        self.priority_classes[name] = priority_class
        if (
            old is not None
            and old.value == priority_class.value
            and old.global_default == priority_class.global_default
            and old.preemption_policy == priority_class.preemption_policy
        ):
            return False
        return self._reprioritise()

    def remove_priority_class(self, name: str) -> bool:
        """Remove a PriorityClass; pods and gangs that name it have priority 0."""
        if self.priority_classes.pop(name, None) is None:
            return False
        return self._reprioritise()

    # -- claims and volumes ------------------------------------------------------------------

    def set_claim(self, claim: PersistentVolumeClaim) -> bool:
        """Add or update a claim."""
        changed = self.claims.objects.set_claim(claim)
        if changed:
            self._touch_claimants(f"{claim.metadata.namespace}/{claim.metadata.name}")
        return self._changed(changed, Cause.CLAIMS)

    def remove_claim(self, namespace: str, name: str) -> bool:
        """Remove a claim; a waiting one may release a volume."""
        return self._changed(self.claims.objects.remove_claim(namespace, name), Cause.CLAIMS)

    def set_volume(self, volume: PersistentVolume) -> bool:
        """Add or update a volume; for pods whose claim it is, or is to be, more than its room changes."""
        changed = self.claims.objects.set_volume(volume)
        owner = volume.spec.claim_ref
        if changed and owner is not None:
            for key in (
                f"{owner.namespace}/{owner.name}",
                *self.claims.objects.owners.get(volume.metadata.name, ()),
            ):
                self._touch_claimants(key)
        return self._changed(changed, Cause.CLAIMS)

    def remove_volume(self, name: str) -> bool:
        """Remove a volume."""
        return self._changed(self.claims.objects.remove_volume(name), Cause.CLAIMS)

    def set_storage_class(self, storage_class: StorageClass) -> bool:
        """Add or update a StorageClass."""
        return self._changed(self.claims.objects.set_class(storage_class), Cause.CLAIMS)

    def remove_storage_class(self, name: str) -> bool:
        """Remove a StorageClass."""
        return self._changed(self.claims.objects.remove_class(name), Cause.CLAIMS)

    def set_csi_node(self, node: CsiNode) -> bool:
        """Set how many volumes a node can attach."""
        return self._changed(self.claims.attachments.set_limits(node), Cause.CLAIMS)

    def remove_csi_node(self, name: str) -> bool:
        """Remove the limits of volumes of a node."""
        return self._changed(self.claims.attachments.remove_limits(name), Cause.CLAIMS)

    # -- quotas of namespaces ----------------------------------------------------------------

    def set_quota(self, quota: ResourceQuota) -> bool:
        """Add or update a ResourceQuota."""
        meta = quota.metadata
        old = self.quotas.get(meta.namespace, {}).get(meta.name)
        self.quotas.setdefault(meta.namespace, {})[meta.name] = quota
        same = old is not None and (old.spec, old.status) == (quota.spec, quota.status)
        return self._changed(not same, Cause.QUOTAS)

    def remove_quota(self, namespace: str, name: str) -> bool:
        """Remove a ResourceQuota."""
        named = self.quotas.get(namespace, {})
        known = named.pop(name, None) is not None
        if not named:
            self.quotas.pop(namespace, None)
        return self._changed(known, Cause.QUOTAS)

    # -- namespaces --------------------------------------------------------------------------

    def set_namespace(self, namespace: Namespace) -> bool:
        """Add or update a Namespace."""
        name, labels = namespace.metadata.name, namespace.metadata.labels or {}
        is_new = self.peers.namespaces.get(name) != labels
        return self._namespace_changed(self.peers.set_namespace(name, labels), is_new)

    def remove_namespace(self, name: str) -> bool:
        """Remove a Namespace."""
        is_known = name in self.peers.namespaces
        return self._namespace_changed(self.peers.remove_namespace(name), is_known)

    # -- budgets -----------------------------------------------------------------------------

    def set_budget(self, budget: PodDisruptionBudget) -> bool:
        """Add or update a PodDisruptionBudget."""
        return self._changed(self.budgets.set(budget), Cause.VICTIMS)

    def remove_budget(self, namespace: str, name: str) -> bool:
        """Remove a PodDisruptionBudget."""
        return self._changed(self.budgets.remove(namespace, name), Cause.VICTIMS)

    # -- internals ------------------------------------------------------------------------------

    def _changed(self, changed: bool, causes: Cause = Cause.ITSELF) -> bool:
        """Record a change, if it is one, and what gangs wait for that it may help."""
        if changed:
            self.version += 1
            self.line.happened(causes)
        return changed

    def _namespace_changed(self, for_peers: bool, changed: bool) -> bool:
        """Record a change of the labels of a namespace; it may help gangs where a queue is for namespaces with a label.

        Args:
            for_peers: Whether pods have terms that ask for labels of namespaces.
            changed: Whether any label changed.
        """
        users = map(users_of, self.queues.values()) if changed else ()
        if any(each is not None and each.selector is not None for each in users):
            return self._changed(True, Cause.RULES)
        return self._changed(for_peers, Cause.PEERS)

    def _set_stranger(self, pod: str, gang: str, scheduler: str) -> bool:
        """Note that a pod of another scheduler names a gang, or none any more; True if that is new."""
        before = self._gang_of_stranger.get(pod, "")
        if before == gang:
            return False
        if before:
            del self._gang_of_stranger[pod]
            del self.strangers[before][pod]
            if not self.strangers[before]:
                del self.strangers[before]
        if gang:
            self._gang_of_stranger[pod] = gang
            self.strangers.setdefault(gang, {})[pod] = scheduler
        for key in (before, gang):
            if key in self.jobs:
                self._touch(self.jobs[key])
        return True

    def _gang_of(self, pod: Pod, node: str) -> str:
        """Key of the PodGroup that a pod names; empty for pods that Pumice does not schedule.

        Pods on a node that name none are kept as one gang by namespace, so that what they hold is charged to a queue.
        """
        if pod.spec.scheduler_name not in self.scheduler_names:
            return ""
        return _gang_named(pod) or (f"{pod.metadata.namespace}/" if node else "")

    def takes(self, queue: Queue, job: JobInfo) -> bool:
        """Whether a queue is open, and the namespace of a gang may use it."""
        if not queue.is_open:
            return False
        users = users_of(queue)
        labels = self.peers.namespaces.get(job.namespace)
        return users is None or users.admit(job.namespace, labels)

    def _charged(self, task: TaskInfo, job: JobInfo, node: str) -> ChargedPods | None:
        """Where the amounts of a pod on a node count if not with its gang: it was bound under another queue that is still there.

        Without such a queue they count in the queue of the PodGroup, else in the default queue.
        """
        if not node or task.status not in NEEDS_ROOM:
            return None
        own = job.queue if job.group is not None and job.queue in self.queues else ""
        queue = task.charge if task.charge in self.queues else own or self.default_queue
        if queue == own:
            return None
        key = ChargedPods.key_of(job, queue)
        charged = self.jobs.get(key)
        if charged is None:
            charged = self.jobs[key] = ChargedPods(job, queue, self.shares)
            self.shares.place(charged)
        assert isinstance(charged, ChargedPods)
        return charged

    def _charge(self, task: TaskInfo) -> None:
        """Find out again where the amounts of a pod count."""
        if not task.job:
            return
        job = self.jobs[task.job]
        before, charged = job.elsewhere.get(task.key), self._charged(task, job, task.node)
        if charged is before:
            return
        is_running = task.row >= 0
        if is_running:
            self.nodes.running.discard(task)
        job.charge(task, charged)
        if is_running:
            self.nodes.running.add(task, self.nodes.records[task.node].row)
        self._drop_charged(before)
        self._changed(True, Cause.NODES | Cause.SHARES)

    def _charge_all(self, job: JobInfo) -> None:
        for task in job.tasks.values():
            self._charge(task)

    def _charge_anew(self) -> None:
        """Find out again where pods are charged after queues were added or removed."""
        if self._has_other_queues:
            self._has_other_queues = False
            for task in self.tasks.values():
                self._charge(task)

    def _drop_charged(self, charged: ChargedPods | None) -> None:
        """Forget a sum of amounts that has no pods any more."""
        if charged is not None and not charged.pods:
            del self.jobs[charged.key]
            self.shares.forget(charged)

    def _index_nominee(self, task: TaskInfo) -> None:
        if task.nominated and task.job and task.status is SchedulingStatus.PENDING:
            self.nominees[task.key] = task
        else:
            self.nominees.pop(task.key, None)

    def _is_same(self, old: TaskInfo, new: TaskInfo, gang: str, node: str) -> bool:
        return (
            old.uid == new.uid
            and old.status is new.status
            and old.facts == new.facts
            and (not self.peers.is_live or self.peers.is_alike(old, new))
            and old.job == gang
            and old.node == node
        )

    def _job(self, key: str) -> JobInfo:
        job = self.jobs.get(key)
        if job is None:
            namespace, _, name = key.partition("/")
            job = self.jobs[key] = JobInfo(namespace, name, self.shares)
        return job

    def _drop(self, task: TaskInfo) -> None:
        """Remove a pod from everywhere. If a step raises, a second call does what is left to do."""
        has_peers = self.peers.is_live
        self._leave_node(task)
        if task.shape.claims:
            self.claims.unmention(task)
        if has_peers:
            self.peers.part(task)
        self.nominees.pop(task.key, None)
        if task.job:
            job = self.jobs[task.job]
            charged = job.elsewhere.get(task.key)
            job.discard(task)
            self._drop_charged(charged)
            self._touch(job)
        del self.tasks[task.key]
        if has_peers:
            self.peers.release(task.shape)
        self.shapes.release(task.shape)

    def _leave_node(self, task: TaskInfo) -> None:
        if task.node:
            record = self.nodes.records[task.node]
            self.nodes.discard(task)
            self.nodes.drop_if_unused(record)

    def _touch(self, job: JobInfo) -> None:
        self.dirty[job.key] = None
        self.line.wake(job.key)
        self._index(job)

    def _index(self, job: JobInfo) -> None:
        if job.is_waiting:
            self.waiting[job.key] = job
        else:
            self.waiting.pop(job.key, None)
        if job.group is None and not job.tasks:
            self.jobs.pop(job.key, None)
            self.dirty.pop(job.key, None)
            self.pending.pop(job.key, None)
            self.shares.forget(job)
            self.warned.pop(job.key, None)
            self.dues.pop(job.key, None)
            self.quarantined.pop(job.key, None)

    def _touch_claimants(self, claim: str) -> None:
        """Have gangs tried again whose waiting pods mount a claim that has changed."""
        for key in self.claims.claimants(claim):
            task = self.tasks[key]
            if task.job and task.status is SchedulingStatus.PENDING:
                self._touch(self.jobs[task.job])

    def _prioritise(self, job: JobInfo) -> None:
        """Give a job what its PriorityClass says, or the default one.

        The policy of the default class is not the gang's: pods of another class may have another one.
        """
        name = job.group.spec.priority_class_name if job.group else ""
        job.never_preempts = False
        if name:
            named = self.priority_classes.get(name)
            job.priority = named.value if named else 0
            job.never_preempts = named is not None and named.preemption_policy == NEVER
            return
        defaults = (each for each in self.priority_classes.values() if each.global_default)
        job.priority = max((each.value for each in defaults), default=0)

    def _reprioritise(self) -> bool:
        for job in self.jobs.values():
            self._prioritise(job)
        return self._changed(True, Cause.RULES)

    def _widen(self) -> bool:
        """Open the columns that the axis has gained; True if there are any."""
        if len(self.axis) == self.shares.width:
            return False
        self.nodes.widen()
        self.shapes.widen()
        self.shares.widen()
        self.line.wake_all()
        for job in self.jobs.values():
            job.widen(len(self.axis))
            job.set_minimum(self.axis.known(job.min_resources))
            self.shares.outdate(job)
        return True

    def _recount(self) -> None:
        """Count pods again that ask for resources which nodes did not have, in the columns that these have now."""
        outdated = self.shapes.outdated()
        if not outdated:
            return
        shapes = {shape.number for shape in outdated}
        tasks = [task for task in self.tasks.values() if task.shape.number in shapes]
        placed = [(task, self.nodes.records[task.node]) for task in tasks if task.node]
        in_gangs = [(task, self.jobs[task.job]) for task in tasks if task.job]
        for task, _ in placed:
            self.nodes.discard(task)
        for task, job in in_gangs:
            job.account(task, -1)
        for shape in outdated:
            self.shapes.recount(shape)
        for task, job in in_gangs:
            job.account(task, 1)
            self._touch(job)
        for task, record in placed:
            self.nodes.add(task, record)


def _of_pod(task: TaskInfo, node: str) -> Cause:
    """What a pod changes that comes, changes or goes, and is or was on a node."""
    causes = Cause.SHARES | (Cause.NODES if node else Cause.ITSELF)
    return causes | Cause.CLAIMS if task.shape.claims else causes


def _implied(name: str) -> Queue:
    return Queue(metadata=ObjectMeta(name=name))


def _gang_named(pod: Pod) -> str:
    """Key of the PodGroup that a pod names; empty for none."""
    meta = pod.metadata
    name = meta.annotation(keys.GROUP_NAME) or meta.annotation(keys.GROUP_NAME_VOLCANO)
    return f"{meta.namespace}/{name}" if name else ""
