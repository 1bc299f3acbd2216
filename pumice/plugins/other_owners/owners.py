"""Objects whose pods other controllers create: the fields that plugins need.

A cluster may have tens of thousands of Jobs, of which few name plugins. So a pod template without the annotation is
dropped when it is read.
"""

from typing import Any

import msgspec

from pumice.api import keys, kinds
from pumice.api.kinds import Kind
from pumice.api.meta import MAX_INT32, ApiStruct, number_in
from pumice.api.raw import object_in, text_in

Template = dict[str, Any]
"""A pod template as raw JSON."""

OwnerKey = tuple[Kind, str, str]
"""Kind, namespace and name."""


def annotation(template: Template | None, key: str) -> str:
    """An annotation of a pod template; empty if it is missing."""
    return text_in(object_in(object_in(template, "metadata"), "annotations"), key)


def _remembered(template: Template | None) -> Template | None:
    return template if annotation(template, keys.PLUGINS) else None


def _count(found: int) -> int:
    """A number of pods or groups, limited to the range of a Kubernetes field."""
    return min(max(found, 0), MAX_INT32)


class OwnerMeta(ApiStruct, frozen=True):
    """Identity of an object, and its deletion time."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None


class _Condition(ApiStruct, frozen=True):
    type: str = ""
    status: str = ""


class _JobStatus(ApiStruct, frozen=True):
    conditions: list[_Condition] | None = None


class IndexedJobSpec(ApiStruct, frozen=True):
    """The spec of a Job."""

    completions: int | None = None
    parallelism: int | None = None
    completion_mode: str = ""
    template: Template | None = None

    def __post_init__(self) -> None:
        """Drop a template that names no plugins."""
        msgspec.structs.force_setattr(self, "template", _remembered(self.template))

    @property
    def indexed(self) -> bool:
        """Whether its pods have an index."""
        return self.completion_mode == "Indexed"

    @property
    def size(self) -> int:
        """Number of indexes; one by default, as in Kubernetes."""
        if self.completions is None:
            return 1 if self.parallelism is None else 0
        return _count(self.completions)


class IndexedJob(ApiStruct, frozen=True):
    """`batch/v1` Job."""

    metadata: OwnerMeta = OwnerMeta()
    spec: IndexedJobSpec = IndexedJobSpec()
    status: _JobStatus = _JobStatus()

    @property
    def wants_plugins(self) -> bool:
        """Whether some template names plugins."""
        return self.spec.template is not None

    @property
    def pods(self) -> int:
        """Maximum number of concurrent pods."""
        return self.spec.size

    @property
    def ended(self) -> bool:
        """True if there will be no further pods."""
        return any(
            each.type in ("Complete", "Failed") and each.status == "True"
            for each in self.status.conditions or ()
        )


class _JobTemplate(ApiStruct, frozen=True):
    spec: IndexedJobSpec = IndexedJobSpec()


class ReplicatedJob(ApiStruct, frozen=True):
    """Some equal Jobs of a JobSet."""

    name: str = ""
    replicas: int = 1
    template: _JobTemplate = _JobTemplate()

    @property
    def per_job(self) -> int:
        """Pods of each Job."""
        return self.template.spec.size

    @property
    def size(self) -> int:
        """Pods of all its Jobs."""
        return _count(self.replicas) * self.per_job


class Network(ApiStruct, frozen=True):
    """Names of a JobSet's pods."""

    enable_dns_hostnames: bool | None = msgspec.field(default=None, name="enableDNSHostnames")
    subdomain: str = ""


class _JobSetSpec(ApiStruct, frozen=True):
    replicated_jobs: list[ReplicatedJob] | None = None
    network: Network | None = None


class _JobSetStatus(ApiStruct, frozen=True):
    terminal_state: str = ""


class JobSet(ApiStruct, frozen=True):
    """`jobset.x-k8s.io/v1alpha2` JobSet."""

    metadata: OwnerMeta = OwnerMeta()
    spec: _JobSetSpec = _JobSetSpec()
    status: _JobSetStatus = _JobSetStatus()

    @property
    def replicated_jobs(self) -> list[ReplicatedJob]:
        """Its groups of Jobs."""
        return self.spec.replicated_jobs or []

    @property
    def wants_plugins(self) -> bool:
        """Whether some template names plugins."""
        return any(each.template.spec.template is not None for each in self.replicated_jobs)

    @property
    def pods(self) -> int:
        """Pods of all its Jobs."""
        return sum(each.size for each in self.replicated_jobs)

    @property
    def ended(self) -> bool:
        """True if there will be no further pods."""
        return bool(self.status.terminal_state)


class _LeaderWorkerTemplate(ApiStruct, frozen=True):
    leader_template: Template | None = None
    worker_template: Template | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        """Drop templates that name no plugins; the worker template is used for the leader if it has none."""
        leader = self.worker_template if self.leader_template is None else self.leader_template
        msgspec.structs.force_setattr(self, "leader_template", _remembered(leader))
        msgspec.structs.force_setattr(self, "worker_template", _remembered(self.worker_template))


class _NetworkConfig(ApiStruct, frozen=True):
    subdomain_policy: str = ""


class _RollingUpdate(ApiStruct, frozen=True):
    max_surge: int | str = 0


class _RolloutStrategy(ApiStruct, frozen=True):
    rolling_update_configuration: _RollingUpdate | None = None


class _LeaderWorkerSetSpec(ApiStruct, frozen=True):
    replicas: int | None = None
    leader_worker_template: _LeaderWorkerTemplate = _LeaderWorkerTemplate()
    network_config: _NetworkConfig | None = None
    rollout_strategy: _RolloutStrategy | None = None


class LeaderWorkerSet(ApiStruct, frozen=True):
    """`leaderworkerset.x-k8s.io/v1` LeaderWorkerSet."""

    metadata: OwnerMeta = OwnerMeta()
    spec: _LeaderWorkerSetSpec = _LeaderWorkerSetSpec()

    @property
    def wants_plugins(self) -> bool:
        """Whether some template names plugins."""
        templates = self.spec.leader_worker_template
        return templates.leader_template is not None or templates.worker_template is not None

    @property
    def ended(self) -> bool:
        """False: a LeaderWorkerSet runs forever."""
        return False

    @property
    def groups(self) -> int:
        """Maximum number of concurrent groups, including those of a rolling update."""
        replicas = 1 if self.spec.replicas is None else _count(self.spec.replicas)
        strategy = self.spec.rollout_strategy
        rolling = strategy.rolling_update_configuration if strategy is not None else None
        return replicas + (_surge(rolling.max_surge, replicas) if rolling is not None else 0)

    @property
    def size(self) -> int:
        """Pods of a group."""
        size = self.spec.leader_worker_template.size
        return 1 if size is None else _count(size)

    @property
    def pods(self) -> int:
        """Pods of all its groups."""
        return self.groups * self.size


def _surge(found: int | str, replicas: int) -> int:
    if isinstance(found, int):
        return _count(found)
    percent = number_in(found.removesuffix("%"))
    # A part of a group counts as one.
    return -(-percent * replicas // 100) if percent is not None else 0


Owner = IndexedJob | JobSet | LeaderWorkerSet

OWNERS: dict[Kind, type[Owner]] = {
    kinds.INDEXED_JOB: IndexedJob,
    kinds.JOB_SET: JobSet,
    kinds.LEADER_WORKER_SET: LeaderWorkerSet,
}
"""The struct of each kind."""
