"""Scheduling cycles over given objects: the same core as in the cluster, without a cluster.

A simulation owns the objects and simulates API server and kubelets: between two cycles bound pods start running, and
evicted or terminating pods are removed. Given nodes and phases of pods and phases of PodGroups are kept. The time of a
cycle is an argument.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from pumice.api import keys, kinds
from pumice.api.budgets import PodDisruptionBudget, ResourceQuota
from pumice.api.hypernodes import HyperNode
from pumice.api.kinds import Kind
from pumice.api.meta import ObjectMeta, format_time, parse_time
from pumice.api.nodes import Namespace, Node, PriorityClass, with_priorities, with_system_classes
from pumice.api.podgroups import PodGroup, PodGroupStatus
from pumice.api.pods import Pod, PodCondition, PodStatus
from pumice.api.quantities import QuantityError
from pumice.api.queues import Queue
from pumice.api.volumes import (
    CsiNode,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
)
from pumice.scheduler import ClusterState, Config, CycleResult, Reason, run_cycle
from pumice.scheduler.options import open_session
from pumice.scheduler.results import CycleFailedError
from pumice.scheduler.state.usage import STATE_KEY, SavedUsage

Subject = Node | PodGroup | Pod | Queue
"""An object that changes while a simulation is followed."""

T = TypeVar("T", Node, PodGroup, Pod, Queue)


class UnreadableObjectError(ValueError):
    """An object that scheduling cannot read; the message names it."""


class ClusterObjects(msgspec.Struct):
    """The objects that a simulation starts from.

    Attributes:
        nodes: The nodes.
        hyper_nodes: The HyperNodes.
        namespaces: Namespaces; those that pods are in and that are not here have the label with their name, and no other.
        queues: The queues; `default` is there without being given.
        priority_classes: The priority classes.
        pod_groups: The gangs.
        pods: Their pods, and pods of others that only take room.
        claims: Claims to volumes; those that pods name and that are not here count as bound.
        volumes: The volumes of bound claims, and those that claims may be bound to.
        storage_classes: The classes of claims that wait for a pod.
        csi_nodes: How many volumes nodes can attach.
        quotas: Quotas of namespaces; what they count as used stays as it is given.
        budgets: Limits on how many pods may be evicted.
        usage: What namespaces have used, as the scheduler saves it; empty for nothing.
    """

    nodes: list[Node] = msgspec.field(default_factory=list)
    hyper_nodes: list[HyperNode] = msgspec.field(default_factory=list)
    namespaces: list[Namespace] = msgspec.field(default_factory=list)
    queues: list[Queue] = msgspec.field(default_factory=list)
    priority_classes: list[PriorityClass] = msgspec.field(default_factory=list)
    pod_groups: list[PodGroup] = msgspec.field(default_factory=list)
    pods: list[Pod] = msgspec.field(default_factory=list)
    claims: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)
    volumes: list[PersistentVolume] = msgspec.field(default_factory=list)
    storage_classes: list[StorageClass] = msgspec.field(default_factory=list)
    csi_nodes: list[CsiNode] = msgspec.field(default_factory=list)
    quotas: list[ResourceQuota] = msgspec.field(default_factory=list)
    budgets: list[PodDisruptionBudget] = msgspec.field(default_factory=list)
    usage: str = ""

    def by_kind(self) -> dict[Kind, tuple[type, list[Any]]]:
        """The struct of each kind, and the list for its objects."""
        return {
            kinds.CSI_NODE: (CsiNode, self.csi_nodes),
            kinds.HYPER_NODE: (HyperNode, self.hyper_nodes),
            kinds.NAMESPACE: (Namespace, self.namespaces),
            kinds.NODE: (Node, self.nodes),
            kinds.PERSISTENT_VOLUME: (PersistentVolume, self.volumes),
            kinds.PERSISTENT_VOLUME_CLAIM: (PersistentVolumeClaim, self.claims),
            kinds.POD: (Pod, self.pods),
            kinds.POD_DISRUPTION_BUDGET: (PodDisruptionBudget, self.budgets),
            kinds.POD_GROUP: (PodGroup, self.pod_groups),
            kinds.PRIORITY_CLASS: (PriorityClass, self.priority_classes),
            kinds.QUEUE: (Queue, self.queues),
            kinds.RESOURCE_QUOTA: (ResourceQuota, self.quotas),
            kinds.STORAGE_CLASS: (StorageClass, self.storage_classes),
        }

    def newest(self) -> float:
        """The newest time in any object, in UNIX seconds; 0 if there is none."""
        metas: list[ObjectMeta] = [
            each.metadata
            for kind in (self.nodes, self.queues, self.priority_classes, self.pod_groups, self.pods)
            for each in kind
        ]
        texts: list[str | None] = []
        for meta in metas:
            texts += (meta.creation_timestamp, meta.deletion_timestamp)
        for group in self.pod_groups:
            texts += [each.last_transition_time for each in group.status.conditions or ()]
        for pod in self.pods:
            texts.append(pod.status.start_time)
            texts += [each.last_transition_time for each in pod.status.conditions or ()]
        # Times of one format order as text, but manifests may mix zones and fractions.
        return max((moment for text in set(texts) if (moment := parse_time(text))), default=0.0)


class Simulation:
    """Objects of a cluster during scheduling cycles.

    Attributes:
        nodes: Number of nodes.
        left_out: Why objects are not in the cluster that cannot be read, by `Kind/namespace/name`.
        pods: The current pods, by `namespace/name`.
        config: Configuration of the scheduler.
        state: The cluster as cycles see it. `settle` brings what is computed of the objects up to date; with `try_again` the next cycle tries gangs
            that nothing has helped, so that their reasons name current numbers.
    """

    def __init__(
        self,
        objects: ClusterObjects,
        config: Config,
        *,
        scheduler_names: tuple[str, ...] = ("volcano",),
        leaves_out: bool = False,
    ) -> None:
        """Start a simulation.

        Args:
            objects: The initial objects; they are not changed.
            config: Configuration of the scheduler.
            scheduler_names: Scheduler names whose pods are placed; other pods only use resources.
            leaves_out: Whether objects with a quantity that cannot be read are left out, as the scheduler sets them aside, and a
                plugin that raises at a gang lets that one wait.

        Raises:
            UnreadableObjectError: A quantity cannot be read.
        """
        self.config = config
        self.left_out: dict[str, str] = {}
        self._leaves_out = leaves_out
        self.state = ClusterState(
            scheduler_names=scheduler_names, default_queue=keys.DEFAULT_QUEUE, assumes_bound=True
        )
        self.pods: dict[str, Pod] = {}
        self._changing: dict[str, None] = {}
        self._priority_classes = objects.priority_classes
        self._result: CycleResult | None = None
        self._binds: dict[str, str] = {}
        self._evicted: dict[str, None] = {}
        self._now = 0.0
        self.nodes = len({node.metadata.name for node in objects.nodes})
        if not any(queue.metadata.name == keys.DEFAULT_QUEUE for queue in objects.queues):
            self.state.set_queue(Queue(metadata=ObjectMeta(name=keys.DEFAULT_QUEUE)))
        for queue in objects.queues:
            self._take_in(self.state.set_queue, queue)
        state = self.state
        puts: tuple[tuple[Callable[[Any], bool], Iterable[Any]], ...] = (
            (state.set_priority_class, with_system_classes(objects.priority_classes)),
            (state.set_storage_class, objects.storage_classes),
            (state.set_csi_node, objects.csi_nodes),
            (state.set_claim, objects.claims),
            (state.set_volume, objects.volumes),
            (state.set_namespace, objects.namespaces),
            (state.set_quota, objects.quotas),
            (state.set_budget, objects.budgets),
            (state.set_hyper_node, objects.hyper_nodes),
        )
        for put, given in puts:
            for each in given:
                put(each)
        for node in objects.nodes:
            self._take_in(state.set_node, node)
        for group in objects.pod_groups:
            self._take_in(state.set_pod_group, group)
        for pod in with_priorities(objects.pods, objects.priority_classes):
            self.put_pod(pod)
        if objects.usage:
            self._restore_usage(objects.usage)

    def cycle(self, now: float) -> CycleResult:
        """Run one cycle at a moment.

        Raises:
            CycleFailedError: A plugin or action raised; not at one gang, which waits for that, if objects are left out.
        """
        self._now = now
        self._result = result = run_cycle(self.state, self.config, now)
        self._binds |= result.binds
        self._evicted |= dict.fromkeys(result.evicted)
        if result.error is not None:
            raise CycleFailedError.of(result.error) from result.error
        for gang, error in result.errors.items() if not self._leaves_out else ():
            raise CycleFailedError.of(error, gang) from error
        return result

    def advance(self) -> tuple[list[Pod], list[Pod]]:
        """Update the cluster after cycles: bound pods run, evicted and terminating ones are removed.

        Claims of bound pods that waited are bound as it was decided.

        Returns:
            The pods that run now, and those that are gone.
        """
        binds, self._binds = self._binds, {}
        evicted, self._evicted = self._evicted, {}
        changing, self._changing = self._changing | dict.fromkeys(binds) | evicted, {}
        if not changing:
            return [], []
        if self.state.claims.choices.by_claim:
            for key in binds:
                self._bind_claims(key)
        moment = format_time(self._now)
        placed = PodCondition("PodScheduled", "True", last_transition_time=moment)
        known = PodStatus("Running", start_time=moment)
        bound = replace(known, conditions=[placed])
        started: list[Pod] = []
        gone: list[Pod] = []
        for key in changing:
            if (pod := self.pods.get(key)) is None:
                continue
            if key in evicted:
                self._charge(key)
            if key in evicted or pod.metadata.deletion_timestamp:
                self.remove_pod(pod)
                gone.append(pod)
                continue
            meta, spec, status = pod.metadata, pod.spec, known
            if key in binds:
                status = bound
                if queue := self.state.tasks[key].charge:
                    annotations = {**(meta.annotations or {}), keys.QUEUE: queue}
                    meta = replace(meta, annotations=annotations)
                spec = replace(spec, node_name=binds[key])
            pod = replace(pod, metadata=meta, spec=spec, status=status)
            if key in binds and self.state.run_pod(key):
                self.pods[key] = pod
            else:
                self.put_pod(pod)
            started.append(pod)
        return started, gone

    def _restore_usage(self, saved: str) -> None:
        try:
            self.state.usage.restore(SavedUsage.read(saved))
        except msgspec.MsgspecError as error:
            message = f"ConfigMap: data[{STATE_KEY}] is not the saved usage of namespaces: {error}"
            raise UnreadableObjectError(message) from error

    def _bind_claims(self, pod: str) -> None:
        task = self.state.tasks.get(pod)
        choices = self.state.claims.choices.of(task.shape.claims) if task is not None else {}
        for key, choice in choices.items():
            claim = self.state.claims.objects.claims[key]
            name = choice.volume
            if not name:
                name = f"pvc-{key.replace('/', '-')}"
                volume = PersistentVolume(
                    ObjectMeta(name=name),
                    PersistentVolumeSpec(storage_class_name=claim.storage_class),
                    PersistentVolumeStatus("Bound"),
                )
                self.state.set_volume(volume)
            spec = replace(claim.spec, volume_name=name)
            status = PersistentVolumeClaimStatus("Bound")
            self.state.set_claim(replace(claim, spec=spec, status=status))

    def _charge(self, pod: str) -> None:
        """Let the budgets of an evicted pod allow one eviction less, as the API server does."""
        for budget in self.state.budgets.of(self.state.tasks[pod]):
            left = max(budget.status.disruptions_allowed - 1, 0)
            status = replace(budget.status, disruptions_allowed=left)
            self.state.set_budget(replace(budget, status=status))

    def put_pod(self, pod: Pod) -> None:
        """Create or change a pod.

        Raises:
            UnreadableObjectError: A quantity cannot be read.
        """
        if not self._take_in(self.state.set_pod, pod):
            return
        name = pod.metadata.namespace
        if name not in self.state.peers.namespaces:
            labels = {keys.NAMESPACE_NAME: name}
            self.state.set_namespace(Namespace(metadata=ObjectMeta(name=name, labels=labels)))
        key = f"{name}/{pod.metadata.name}"
        self.pods[key] = pod
        if pod.metadata.deletion_timestamp or (
            pod.spec.node_name and pod.status.phase in ("", "Pending")
        ):
            self._changing[key] = None

    def _take_in(self, put: Callable[[T], bool], obj: T) -> bool:
        """Read an object; False if it cannot be read and is left out."""
        try:
            put(obj)
        except QuantityError as error:
            why = f"{_named(obj)}: {error}"
            if not self._leaves_out:
                raise UnreadableObjectError(why) from error
            self.left_out[_named(obj)] = why
            return False
        if self.left_out:
            self.left_out.pop(_named(obj), None)
        return True

    def remove_pod(self, pod: Pod) -> None:
        """Delete a pod."""
        self.pods.pop(pod.metadata.key, None)
        self.state.remove_pod(pod.metadata.namespace, pod.metadata.name)

    def replace(self, old: Subject | None, new: Subject | None) -> None:
        """Create (without the old object), change or delete (without a new one) an object.

        Raises:
            UnreadableObjectError: A quantity cannot be read.
        """
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self.left_out.pop(_named(old), None)
            meta, state = old.metadata, self.state
            if isinstance(old, Pod):
                self.remove_pod(old)
            elif isinstance(old, PodGroup):
                state.remove_pod_group(meta.namespace, meta.name)
            elif isinstance(old, Node):
                state.remove_node(meta.name)
            else:
                state.remove_queue(meta.name)
        if isinstance(new, Pod):
            for pod in with_priorities([new], self._priority_classes):
                self.put_pod(pod)
        elif isinstance(new, PodGroup):
            self._take_in(self.state.set_pod_group, new)
        elif isinstance(new, Node):
            self._take_in(self.state.set_node, new)
        elif new is not None:
            self._take_in(self.state.set_queue, new)

    def undo(self) -> None:
        """Forget what cycles have decided, so that the next one begins with the objects as they were given."""
        state = self.state
        self._binds, self._evicted = {}, {}
        for key in state.assumed.pods:
            pod = self.pods[key]
            state.remove_pod(pod.metadata.namespace, pod.metadata.name)
            self._take_in(state.set_pod, pod)
        for key in state.assumed.statuses:
            group = state.jobs[key].group
            if group is not None and group.status.phase != state.jobs[key].status.phase:
                state.assumed.end_status(key)
                self._take_in(state.set_pod_group, group)
        if state.reservation is not None:
            state.set_reservation(None)
        state.has_restored = False

    def lines(self, now: float) -> dict[str, list[str]]:
        """Gangs that wait, by queue, in the order in which they are tried."""
        self.state.settle(now)
        session = open_session(self.state, self.config, now)
        waiting = [job for job in self.state.gangs.waiting.values() if job.group]
        found: dict[str, list[str]] = {}
        for job in sorted(waiting, key=session.answers.job_key):
            found.setdefault(job.queue, []).append(job.key)
        session.close()
        return found

    def gang_of(self, pod: str) -> str:
        """Key of the gang of a pod, empty for a pod without one."""
        task = self.state.tasks.get(pod)
        return task.job if task else ""

    @property
    def pod_groups(self) -> dict[str, PodGroupStatus]:
        """Status of every PodGroup after the last cycle, by `namespace/name`."""
        return dict(self._result.all_pod_groups) if self._result else {}

    @property
    def pending(self) -> dict[str, Reason]:
        """Waiting PodGroups after the last cycle with their reasons, by `namespace/name`."""
        return dict(self._result.pending) if self._result else {}


def _named(obj: Subject) -> str:
    meta = obj.metadata
    name = meta.key if meta.namespace else meta.name
    return f"{type(obj).__name__}/{name}"
