"""The controller's watches, and the indexes that find the objects of a Job.

Jobs, PodGroups and the objects of plugins are kept as raw JSON, because they are compared and patched field by field;
pods, which are many, as structs. Only pods and objects with a Job's name in a label are watched: the controller sets
that label on all objects that it creates.
"""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import force_setattr

from pumice.api import keys, kinds
from pumice.api.commands import Command, targets
from pumice.api.kinds import Kind
from pumice.api.meta import Raw
from pumice.api.nodes import PriorityClass
from pumice.api.pods import Pod, PodSpec
from pumice.api.queues import Queue
from pumice.cluster.cache import WatchCache
from pumice.cluster.subscribers import Subscriber
from pumice.controller.worker.controller import Source, object_key
from pumice.controller.worker.memory import ObjectKey
from pumice.controller.worker.process import Watches

OBJECT_KINDS = (kinds.SERVICE, kinds.CONFIG_MAP, kinds.SECRET, kinds.NETWORK_POLICY)
"""Kinds of the objects that plugins want."""

WATCHED_KINDS = tuple(kind for kind in OBJECT_KINDS if kind != kinds.SECRET)
"""Those that are watched; see `known_secrets`."""


BY_JOB = "job"


class JobCaches:
    """What the controller watches.

    Attributes:
        jobs: Jobs, raw.
        pods: Pods of Jobs.
        pod_groups: PodGroups, raw.
        commands: Commands.
        queues: Queues.
        priority_classes: Priority classes.
        objects: Objects of plugins by kind, raw.
    """

    def __init__(self, watches: Watches) -> None:
        """Create the caches; Jobs last, so that related objects are likely to be known before them."""
        self.priority_classes = watches.of(kinds.PRIORITY_CLASS, PriorityClass)
        self.queues = watches.of(kinds.QUEUE, Queue)
        self.commands = watches.of(kinds.COMMAND, Command)
        self.objects: dict[Kind, WatchCache[Raw]] = {
            kind: watches.of(kind, dict, label_selector=keys.JOB_NAME) for kind in WATCHED_KINDS
        }
        self.pod_groups: WatchCache[Raw] = watches.of(kinds.POD_GROUP, dict)
        self.pods = watches.of(kinds.POD, Pod, label_selector=keys.JOB_NAME, trim=trim)
        self.jobs: WatchCache[Raw] = watches.of(kinds.JOB, dict)
        self.pods.index(BY_JOB, lambda pod: some(job_of_pod(pod)))
        self.commands.index(BY_JOB, lambda command: some(job_of_command(command)))
        for cache in self.objects.values():
            cache.index(BY_JOB, lambda obj: some(job_of_object(obj)))

    @property
    def all(self) -> tuple[WatchCache[Any], ...]:
        """Every cache."""
        return (
            self.priority_classes,
            self.queues,
            self.commands,
            *self.objects.values(),
            self.pod_groups,
            self.pods,
            self.jobs,
        )

    def sources(
        self,
        told: Callable[[ObjectKey], None],
        pod_told: Callable[[ObjectKey], None],
    ) -> Iterable[Source]:
        """What reports every Job when something about it changes.

        Args:
            told: Called with the Job.
            pod_told: Called instead if it is a pod that changed.
        """

        def tell(
            of: Callable[[Any], ObjectKey | None],
            told: Callable[[ObjectKey], None] = told,
            matters: Callable[[Any, Any], bool] | None = None,
        ) -> Subscriber[Any]:
            def changed(old: Any, new: Any) -> None:
                if old is not None and new is not None and matters and not matters(old, new):
                    return
                for each in (old, new):
                    if each is not None and (key := of(each)) is not None:
                        told(key)

            return changed

        yield self.commands, tell(job_of_command)
        for cache in self.objects.values():
            yield cache, tell(job_of_object)
        yield self.pod_groups, tell(job_of_group)
        yield self.pods, tell(job_of_pod, pod_told, differs)
        yield self.jobs, tell(object_key)


def some(key: ObjectKey | None) -> Iterable[ObjectKey]:
    """A list of one key, or an empty list if the key is empty."""
    return () if key is None else (key,)


def job_of_pod(pod: Pod) -> ObjectKey | None:
    """The Job whose name a pod carries."""
    name = pod.metadata.label(keys.JOB_NAME)
    return (pod.metadata.namespace, name) if name else None


def differs(old: Pod, new: Pod) -> bool:
    """True if a pod changed in a field that `reconcile` reads; addresses and most conditions are not read."""
    return _read_of(old) != _read_of(new)


def trim(pod: Pod) -> None:
    """Drop what `reconcile` does not read of a pod, which is a third of the memory that the pods of Jobs take.

    Of the conditions it reads when the pod was placed and when the last one changed. The API server writes all times in
    one form, so their texts compare like the times.
    """
    force_setattr(pod, "spec", PodSpec(node_name=pod.spec.node_name))
    pod.drop_waits()
    conditions = pod.status.conditions
    if conditions and len(conditions) > 1:
        last = max(conditions, key=lambda each: each.last_transition_time or "")
        read = [each for each in conditions if each is last or each.type == "PodScheduled"]
        force_setattr(pod.status, "conditions", read)


def _read_of(pod: Pod) -> tuple[object, ...]:
    meta, status = pod.metadata, pod.status
    return (
        meta.uid,
        meta.deletion_timestamp,
        meta.labels,
        meta.annotations,
        meta.owner_references,
        pod.spec.node_name,
        status.phase,
        status.start_time,
        status.container_statuses,
        status.init_container_statuses,
        [each for each in status.conditions or () if each.type == "PodScheduled"],
    )


def job_of_object(obj: Raw) -> ObjectKey | None:
    """The Job whose name an object carries."""
    meta = obj["metadata"]
    name = (meta.get("labels") or {}).get(keys.JOB_NAME)
    return (meta.get("namespace", ""), name) if name else None


def job_of_group(group: Raw) -> ObjectKey | None:
    """The Job that owns a PodGroup."""
    meta = group["metadata"]
    for owner in meta.get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") == kinds.JOB.kind:
            return meta.get("namespace", ""), owner["name"]
    return None


def job_of_command(command: Command) -> ObjectKey | None:
    """The Job that a Command is for."""
    name = targets(command)
    return (command.metadata.namespace, name) if name else None
