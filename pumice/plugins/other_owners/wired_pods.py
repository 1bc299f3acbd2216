"""The Jobs that plugins see in an object of another controller.

All pods of an Indexed Job, and all of a JobSet, are wired as one Job; each group of a LeaderWorkerSet is. If a JobSet has
several replicated jobs, they are the tasks of that Job; pods of one template are divided by index.
`pumice.dev/tasks` defines the division. Without it, index 0 has the leading role of the framework's plugin (master,
head, chief), and the others are its workers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pumice.api import keys, kinds
from pumice.api.jobs import DEFAULT_MAX_PODS, JobSpec
from pumice.api.kinds import Kind
from pumice.api.meta import ObjectMeta
from pumice.plugins.addresses import Hostnames, OwnerJob, OwnerTask
from pumice.plugins.applied import read_arguments
from pumice.plugins.other_owners import places
from pumice.plugins.other_owners.owners import (
    IndexedJob,
    JobSet,
    LeaderWorkerSet,
    Owner,
    Template,
    annotation,
)
from pumice.plugins.other_owners.places import PodPlace
from pumice.plugins.other_owners.request import Plugins, RequestError, read_plugins, read_tasks
from pumice.plugins.registry import Registry, dependencies

LEADS = {
    "pytorch": "master",
    "mpi": "master",
    "tensorflow": "chief",
    "ray": "head",
    "hcclrank": "master",
}
"""Plugins with one leading pod and workers: the argument that names the leading task."""

MAX_GROUPS = 1_000
"""Maximum number of groups of a LeaderWorkerSet: the controller handles the objects of all of them in one pass."""

_WORKERS = "worker"
"""The argument that names the workers' task, and the name of that task if no plugin defines it."""


@dataclass(frozen=True, slots=True)
class _NumberedPods:
    """Pods with consecutive numbers.

    Attributes:
        name: Name of the replicated job, empty if there is none.
        size: Number of pods.
        hostnames: Their naming scheme.
        templates: Template of the first pod, and template of the others.
        labels: Labels that select exactly these pods.
        index_label: Label with a pod's number; empty if several pods may have the same number.
    """

    name: str
    size: int
    hostnames: Hostnames
    templates: tuple[Template | None, Template | None]
    labels: dict[str, str]
    index_label: str = ""


@dataclass(frozen=True, slots=True)
class WiredPods:
    """Pods that are wired as one Job.

    Attributes:
        job: The Job for the plugins.
        groups: Tasks of each group by its name, in the order of indexes.
        doubts: Warnings about valid specifications that are unlikely to work.
    """

    job: OwnerJob
    groups: dict[str, tuple[OwnerTask, ...]]
    doubts: tuple[str, ...] = ()

    def find(self, place: PodPlace) -> tuple[OwnerTask, int] | None:
        """The task of a pod and its index in it; None if the pod is not one of them."""
        tasks = self.groups.get(place.group, ())
        if not tasks or place.index is None:
            return None
        per_job = tasks[0].hostnames.per_job
        if per_job and place.index >= per_job:
            return None
        position = place.job * per_job + place.index
        for task in tasks:
            index = position - task.hostnames.first
            if 0 <= index < task.size:
                return task, index
        return None


def kind_of(owner: Owner) -> Kind:
    """Kind of an owner."""
    if isinstance(owner, IndexedJob):
        return kinds.INDEXED_JOB
    return kinds.JOB_SET if isinstance(owner, JobSet) else kinds.LEADER_WORKER_SET


def wired_count(owner: Owner, max_pods: int = DEFAULT_MAX_PODS) -> int:
    """Number of Jobs as which the pods of an owner are wired; 0 if none of its templates names plugins.

    The number is computed without creating them: a LeaderWorkerSet may request two thousand million groups.

    Raises:
        RequestError: It requests more pods or groups than plugins wire.
    """
    if not owner.wants_plugins:
        return 0
    if owner.pods > max_pods:
        raise RequestError(
            f"{keys.PLUGINS}: {kind_of(owner).kind} {owner.metadata.name} asks for {owner.pods} pods, expected at "
            f"most {max_pods} (max-pods-per-job); ask for fewer, or remove the annotation"
        )
    if not isinstance(owner, LeaderWorkerSet):
        return 1
    if owner.groups > MAX_GROUPS:
        raise RequestError(
            f"{keys.PLUGINS}: LeaderWorkerSet {owner.metadata.name} asks for {owner.groups} groups, expected at most "
            f"{MAX_GROUPS}, because each has objects of its own; divide them over several LeaderWorkerSets"
        )
    return owner.groups


def wired_pods_at(owner: Owner, index: int, registry: Registry) -> WiredPods:
    """One of them, by its number from 0 below `wired_count`.

    Raises:
        RequestError: An annotation is invalid, or the pods have no index.
    """
    if isinstance(owner, IndexedJob):
        return _of_indexed_job(owner, registry)
    if isinstance(owner, JobSet):
        return _of_job_set(owner, registry)
    return _of_group(owner, index, registry)


def _of_indexed_job(owner: IndexedJob, registry: Registry) -> WiredPods:
    name, spec = owner.metadata.name, owner.spec
    if not spec.indexed:
        raise _no_index(f"Job {name}", "spec.completionMode")
    group = _NumberedPods(
        "",
        spec.size,
        Hostnames(name),
        (spec.template, spec.template),
        {},
        keys.COMPLETION_INDEX,
    )
    doubts = []
    if spec.parallelism is not None and spec.parallelism < spec.size:
        doubts.append(
            f"{spec.parallelism} of {spec.size} pods run at once, so those that wait for all others wait "
            "forever; set spec.parallelism to spec.completions"
        )
    job = OwnerJob(metadata=_metadata(owner, name), labels={places.JOB_NAME: name}, subdomain=name)
    return _wired_pods(job, [group], registry, doubts)


def _of_job_set(owner: JobSet, registry: Registry) -> WiredPods:
    name, network = owner.metadata.name, owner.spec.network
    resolves = network is None or network.enable_dns_hostnames is not False
    subdomain = network.subdomain if resolves and network is not None else ""
    groups, doubts = [], []
    for each in owner.replicated_jobs:
        spec = each.template.spec
        # Jobs of a JobSet are indexed by default, other Jobs are not.
        if spec.template is not None and spec.completion_mode and not spec.indexed:
            raise _no_index(f"replicated job {each.name}", "its spec.completionMode")
        groups.append(
            _NumberedPods(
                each.name,
                each.size,
                Hostnames(f"{name}-{each.name}", per_job=each.per_job),
                (spec.template, spec.template),
                {places.REPLICATED_JOB: each.name},
                keys.COMPLETION_INDEX if each.replicas == 1 else "",
            )
        )
        if spec.template is None:
            doubts.append(
                f"replicated job {each.name} is not wired: its pod template lacks {keys.PLUGINS}"
            )
    job = OwnerJob(
        metadata=_metadata(owner, name),
        labels={places.JOB_SET_NAME: name},
        subdomain=subdomain or name,
        has_service=resolves,
    )
    return _wired_pods(job, groups, registry, doubts)


def _of_group(owner: LeaderWorkerSet, index: int, registry: Registry) -> WiredPods:
    name, templates = owner.metadata.name, owner.spec.leader_worker_template
    config = owner.spec.network_config
    own_domain = config is not None and config.subdomain_policy == "UniquePerReplica"
    stem = f"{name}-{index}"
    group = _NumberedPods(
        "",
        owner.size,
        Hostnames(stem, leader=True),
        (templates.leader_template, templates.worker_template),
        {},
        places.WORKER_INDEX,
    )
    job = OwnerJob(
        metadata=_metadata(owner, stem),
        labels={places.SET_NAME: name, places.GROUP_INDEX: str(index)},
        subdomain=stem if own_domain else name,
        has_service=True,
    )
    return _wired_pods(job, [group], registry, _unwired(owner), lead="leader")


def _unwired(owner: LeaderWorkerSet) -> list[str]:
    """Pods of a group that are not wired, although plugins are named for the others."""
    templates = owner.spec.leader_worker_template
    if templates.leader_template is None:
        return [f"the leader is not wired: leaderTemplate lacks {keys.PLUGINS}"]
    if templates.worker_template is None and owner.size > 1:
        return [f"the workers are not wired: workerTemplate lacks {keys.PLUGINS}"]
    return []


def _no_index(what: str, where: str) -> RequestError:
    return RequestError(f"{keys.PLUGINS}: the pods of {what} have no index; set {where} to Indexed")


def _metadata(owner: Owner, name: str) -> ObjectMeta:
    meta = owner.metadata
    return ObjectMeta(name=name, namespace=meta.namespace, uid=meta.uid, generation=meta.generation)


def _wired_pods(
    job: OwnerJob,
    groups: Sequence[_NumberedPods],
    registry: Registry,
    doubts: Sequence[str],
    *,
    lead: str = "",
) -> WiredPods:
    plugins = _plugins(groups, registry)
    divided = {}
    places_of: dict[str, str] = {}
    for group in groups:
        parts = _parts(group, plugins, registry, alone=len(groups) == 1, lead=lead)
        for name, _ in parts:
            if name in places_of:
                raise RequestError(
                    f'{keys.TASKS}: task "{name}" is in two replicated jobs, {places_of[name]} and '
                    f"{group.name}; the rank of a pod depends on its task, so each replicated job needs its own task"
                )
            places_of[name] = group.name
        divided[group.name] = _tasks(group, parts)
    tasks = [task for each in divided.values() for task in each]
    # Structs are frozen, and plugins read only this and the name of the Job.
    whole = OwnerJob(
        metadata=job.metadata,
        spec=JobSpec(plugins=plugins, tasks=list(tasks)),
        labels=job.labels,
        subdomain=job.subdomain,
        has_service=job.has_service,
    )
    return WiredPods(whole, divided, tuple(doubts))


def _plugins(groups: Sequence[_NumberedPods], registry: Registry) -> Plugins:
    """The plugins of all templates with the plugins that they require; arguments come from the first template that names a plugin."""
    plugins: Plugins = {}
    for group in groups:
        for template in group.templates:
            if text := annotation(template, keys.PLUGINS):
                plugins = {**read_plugins(text), **plugins}
    return plugins | dependencies(plugins, registry)


def _parts(
    group: _NumberedPods, plugins: Plugins, registry: Registry, *, alone: bool, lead: str
) -> list[tuple[str, int]]:
    """Tasks of a group with their numbers of pods."""
    for template in group.templates:
        if text := annotation(template, keys.TASKS):
            return read_tasks(text, group.size)
    if not alone:
        return [(group.name, group.size)]
    first, others = _leading(plugins, registry) or (lead, _WORKERS)
    if not first or first == others:
        return [(group.name or others, group.size)]
    return [(first, 1), (others, group.size - 1)] if group.size > 1 else [(first, group.size)]


def _leading(plugins: Plugins, registry: Registry) -> tuple[str, str] | None:
    """Names of the leading task and the workers' task, from the first plugin that has a leading pod; None if there is none."""
    for plugin in registry.plugins:
        if plugin.name in plugins and plugin.name in LEADS:
            values = read_arguments(
                plugin.arguments, plugins[plugin.name], strict_upstream=False
            ).values
            return values[LEADS[plugin.name]], values[_WORKERS]
    return None


def _tasks(group: _NumberedPods, parts: Sequence[tuple[str, int]]) -> tuple[OwnerTask, ...]:
    tasks = []
    first = 0
    for name, size in parts:
        labels = dict(group.labels)
        if size == 1 and group.index_label:
            labels[group.index_label] = str(first)
        names = Hostnames(
            group.hostnames.stem, first, group.hostnames.per_job, group.hostnames.leader
        )
        template = group.templates[0 if first == 0 else 1]
        tasks.append(
            OwnerTask(name=name, replicas=size, template=template, hostnames=names, labels=labels)
        )
        first += size
    return tuple(tasks)
