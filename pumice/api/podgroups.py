"""The PodGroup: pods that are placed together or not at all.

Group `scheduling.volcano.sh/v1beta1`.
"""

from typing import Annotated

import msgspec

from pumice.api.jobs import NetworkTopology
from pumice.api.markers import DNS_SUBDOMAIN_PATTERN, Marker
from pumice.api.meta import ApiStruct, LabelSelector, ObjectMeta
from pumice.api.queues import Resources

PHASES = ("Pending", "Running", "Unknown", "Inqueue", "Completed")
"""Phases of a PodGroup, in Volcano's order."""


class SubGroupPolicy(ApiStruct, frozen=True):
    """A smaller gang inside the PodGroup.

    Attributes:
        name: Name of the policy.
        network_topology: Network nearness inside a sub-group.
        sub_group_size: Pods in a sub-group.
        min_sub_groups: Sub-groups that must be schedulable.
        label_selector: Pods that it applies to.
        match_label_keys: Labels whose values tell the sub-groups apart.
    """

    name: Annotated[str, Marker(max_length=253)] = ""
    network_topology: Annotated[NetworkTopology | None, Marker(nullable=True)] = None
    sub_group_size: Annotated[int | None, Marker(minimum=1, default=1, nullable=True)] = None
    min_sub_groups: Annotated[int | None, Marker(minimum=0, default=0, nullable=True)] = None
    label_selector: Annotated[LabelSelector | None, Marker(nullable=True)] = None
    match_label_keys: Annotated[list[str] | None, Marker(atomic=True)] = None


class PodGroupSpec(ApiStruct, frozen=True):
    """What must be placed together.

    Attributes:
        min_member: Pods that must be schedulable together.
        min_task_member: The same for each task.
        queue: Queue whose resources it uses.
        priority_class_name: PriorityClass of the gang.
        min_resources: Resources that must be free before placement is tried.
        network_topology: How near to each other the pods must be.
        sub_group_policy: Smaller gangs inside it.
    """

    min_member: Annotated[int, Marker(minimum=0)] = 0
    min_task_member: dict[str, int] | None = None
    queue: Annotated[
        str, Marker(max_length=253, pattern=DNS_SUBDOMAIN_PATTERN, default="default")
    ] = ""
    priority_class_name: Annotated[str, Marker(max_length=253)] = ""
    min_resources: Annotated[Resources | None, Marker(quantity=True)] = None
    network_topology: Annotated[NetworkTopology | None, Marker(nullable=True)] = None
    sub_group_policy: list[SubGroupPolicy] | None = None

    @property
    def has_topology(self) -> bool:
        """Whether the pods, or those of a sub-group, must be near to each other in the network."""
        inner = (each.network_topology for each in self.sub_group_policy or ())
        return self.network_topology is not None or any(each is not None for each in inner)


class PodGroupCondition(ApiStruct, frozen=True):
    """A condition of the PodGroup.

    Attributes:
        type: `Scheduled` or `Unschedulable`.
        status: `True`, `False` or `Unknown`.
        transition_id: Scheduling cycle that set it.
        last_transition_time: When it was set.
        reason: One word why, for example `NotEnoughResources`.
        message: One sentence why.
    """

    type: str = ""
    status: str = ""
    transition_id: str = msgspec.field(default="", name="transitionID")
    last_transition_time: Annotated[str | None, Marker(format="date-time")] = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(ApiStruct, frozen=True):
    """Phase, conditions and pod counts of a PodGroup.

    Attributes:
        phase: `Pending` until it may enqueue, `Inqueue` until it runs.
        conditions: What is true of it.
        running: Pods that run.
        succeeded: Pods that succeeded.
        failed: Pods that failed.
    """

    phase: Annotated[str, Marker(enum=PHASES)] = ""
    conditions: list[PodGroupCondition] | None = None
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(ApiStruct, frozen=True):
    """Pods that are placed together or not at all.

    Attributes:
        spec: What must be placed together.
        status: Where the gang stands.
    """

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
