"""The parts of a Pod that admission, controller and scheduler read.

A 4 KB pod event decodes into these structs in a few microseconds. Code that builds or edits a pod
works on its raw JSON instead. A few fields are here only because decoding checks their types, for `pumice lint`.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from pumice.api import keys
from pumice.api.meta import ApiStruct, LabelSelector, ObjectMeta


class ResourceRequirements(ApiStruct, frozen=True):
    """What a container asks for and what it may use at most; quantities as manifests spell them."""

    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class ContainerPort(ApiStruct, frozen=True):
    """A port of a container; `host_port` 0 means none."""

    name: str = ""
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(ApiStruct, frozen=True):
    """One container, as far as placement and accounting need it."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str = ""


class Toleration(ApiStruct, frozen=True):
    """A taint that a pod accepts; an empty key with `Exists` accepts all."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSelectorRequirement(ApiStruct, frozen=True):
    """One expression over a node's labels or fields."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeSelectorTerm(ApiStruct, frozen=True):
    """Expressions that must all hold."""

    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(ApiStruct, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredSchedulingTerm(ApiStruct, frozen=True):
    """A term that adds its weight (1 to 100) to a node's score when it holds."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(ApiStruct, frozen=True):
    """Required and preferred terms for the node of a pod."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] | None = (
        None
    )


class PodAffinityTerm(ApiStruct, frozen=True):
    """A term that selects pods, with the topology key whose domain a pod wants to share, or not to share, with them."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(ApiStruct, frozen=True):
    """A term that adds its weight to a node's score when it holds."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(ApiStruct, frozen=True):
    """Required and preferred terms about other pods."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] | None = (
        None
    )


class Affinity(ApiStruct, frozen=True):
    """Where a pod wants to run."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(ApiStruct, frozen=True):
    """How evenly pods are to be spread over the domains of a topology key."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class ClaimSource(ApiStruct, frozen=True):
    """A volume that is a claim."""

    claim_name: str = ""


class PodVolume(ApiStruct, frozen=True):
    """A volume of a pod; a generic ephemeral one is a claim that is named after pod and volume."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: dict[str, Any] | None = None

    @property
    def is_claim(self) -> bool:
        """Whether it is a claim, which exists or is made for the pod."""
        return self.persistent_volume_claim is not None or self.ephemeral is not None


class PodSpec(ApiStruct, frozen=True):
    """Requirements of a pod on its node."""

    node_name: str = ""
    scheduler_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: dict[str, str | int | float] | None = None
    resources: ResourceRequirements | None = None
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    host_network: bool = False
    scheduling_gates: list[dict[str, Any]] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    volumes: list[PodVolume] | None = None
    resource_claims: list[dict[str, Any]] | None = None


class PodCondition(ApiStruct, frozen=True):
    """A condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class Terminated(ApiStruct, frozen=True):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerWaiting(ApiStruct, frozen=True):
    """Why a container does not run yet."""

    reason: str = ""
    message: str = ""


class ContainerState(ApiStruct, frozen=True):
    """State of a container that waits or has ended."""

    waiting: ContainerWaiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(ApiStruct, frozen=True):
    """Status of a container; `resources` are those that it runs with, which may differ from its requests."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, str | int | float] | None = None


class PodStatus(ApiStruct, frozen=True):
    """Status of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    nominated_node_name: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    start_time: str | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, str | int | float] | None = None


class Pod(ApiStruct, frozen=True):
    """A pod as Pumice reads it."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def group(self) -> str:
        """Name of the PodGroup that its annotations name; empty for none."""
        meta = self.metadata
        return meta.annotation(keys.GROUP_NAME) or meta.annotation(keys.GROUP_NAME_VOLCANO)

    @property
    def group_key(self) -> str:
        """`namespace/name` of this PodGroup; empty for none."""
        name = self.group
        return f"{self.metadata.namespace}/{name}" if name else ""

    def drop_unread(self) -> None:
        """Drop volumes that are not claims: nothing reads them, and their names differ between the pods of a template."""
        if self.spec.volumes:
            claims = [each for each in self.spec.volumes if each.is_claim]
            msgspec.structs.force_setattr(self.spec, "volumes", claims or None)
        self.drop_waits()

    def drop_waits(self) -> None:
        """Drop why containers wait and how they ended before a restart, which changes often and decides nothing."""
        status = self.status
        for each in (*(status.container_statuses or ()), *(status.init_container_statuses or ())):
            if each.last_state is not None:
                msgspec.structs.force_setattr(each, "last_state", None)
            if each.state is not None and each.state.waiting is not None:
                msgspec.structs.force_setattr(each, "state", None)


Fields = dict[str, str]
"""The fields of a type, each with its type's notation."""

ROOT = "PodTemplateSpec"
"""The type of a whole template in `pod_types`."""


@cache
def pod_types() -> dict[str, Fields]:
    """The type of every field of a pod template: all types below PodTemplateSpec by name.

    Their notation is short: `string`, `boolean`, `int32`, `int64`, `quantity`, `int-or-string`, `time`, `any`, the name of
    another type, and in front of any of these `[]` for a list and `{}` for a map. `tools/pod_types.py` writes the file from
    the OpenAPI document of an API server. It is read at the first call, since most commands never look at a template.
    """
    text = Path(__file__).with_name("pod_types.json").read_text(encoding="utf-8")
    types: dict[str, Fields] = json.loads(text)
    return types
