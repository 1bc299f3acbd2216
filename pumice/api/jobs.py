"""The Volcano Job: several tasks of equal pods that start, fail and finish together.

Group `batch.volcano.sh/v1alpha1`. Field names, enums and bounds are Volcano's.
"""

from typing import Annotated, Any

from pumice.api.markers import DNS_LABEL_PATTERN, DNS_SUBDOMAIN_PATTERN, Marker, Preserved
from pumice.api.meta import ApiStruct, ObjectMeta
from pumice.api.raw import object_in

DEFAULT_MAX_PODS = 100_000
"""Pods of one Job, or of one object of another controller whose pods plugins wire, unless a setting says otherwise."""

PHASES = (
    "Pending",
    "Aborting",
    "Aborted",
    "Running",
    "Restarting",
    "Completing",
    "Completed",
    "Terminating",
    "Terminated",
    "Failed",
)
"""Phases of a Job, in Volcano's order."""

EVENTS = (
    "*",
    "PodPending",
    "PodRunning",
    "PodFailed",
    "PodEvicted",
    "Unknown",
    "TaskCompleted",
    "OutOfSync",
    "CommandIssued",
    "JobUpdated",
    "TaskFailed",
)
"""Events that the CRD accepts in a policy."""

ACTIONS = (
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
)
"""Actions that a user may name in a policy or a Command."""


class NetworkTopology(ApiStruct, frozen=True):
    """How near to each other the pods must be in the network.

    Attributes:
        mode: `hard` refuses a placement above the tier, `soft` prefers one below it.
        highest_tier_allowed: Highest tier that the pods may span.
        highest_tier_name: The same by the tier's name.
    """

    mode: Annotated[str, Marker(enum=("hard", "soft"), default="hard")] = ""
    highest_tier_allowed: Annotated[
        int | None, Marker(minimum=0, nullable=True, format="int64")
    ] = None
    highest_tier_name: Annotated[str, Marker(max_length=253)] = ""


class LifecyclePolicy(ApiStruct, frozen=True):
    """What to do when something happens to a pod, a task or the Job.

    Attributes:
        action: Action to take, for example `RestartJob`.
        event: Event that triggers it.
        events: Several events that trigger it.
        exit_code: Exit code of a failed pod that triggers it; 0 is not allowed.
        timeout: How long to wait before acting, for example `10m`.
    """

    action: str = ""
    event: Annotated[str, Marker(enum=EVENTS)] = ""
    events: Annotated[list[str] | None, Marker(enum=EVENTS)] = None
    exit_code: Annotated[int | None, Marker(nullable=True)] = None
    timeout: Annotated[str | None, Marker(nullable=True)] = None


class DependsOn(ApiStruct, frozen=True):
    """Tasks that must be ready before a task starts.

    Attributes:
        name: Names of the awaited tasks.
        iteration: `any` when one of them is enough, `all` (the default) otherwise.
    """

    name: list[str] | None = None
    iteration: str = ""


class PartitionPolicy(ApiStruct, frozen=True):
    """Division of a task into partitions of equal size.

    Attributes:
        total_partitions: Number of partitions.
        partition_size: Pods in a partition.
        network_topology: Network nearness inside a partition.
        min_partitions: Partitions that must be schedulable for the task to start.
    """

    total_partitions: Annotated[int, Marker(minimum=1, required=True)] = 0
    partition_size: Annotated[int, Marker(minimum=1, required=True)] = 0
    network_topology: Annotated[NetworkTopology | None, Marker(nullable=True)] = None
    min_partitions: Annotated[int, Marker(minimum=0, default=0)] = 0


class Volume(ApiStruct, frozen=True):
    """A persistent volume mounted into every pod of the Job.

    Attributes:
        mount_path: Where it is mounted.
        volume_claim_name: Name of an existing claim.
        volume_claim: Claim to create.
    """

    mount_path: Annotated[str, Marker(min_length=1, pattern="^[^:]*$", required=True)] = ""
    volume_claim_name: Annotated[str, Marker(max_length=253)] = ""
    volume_claim: Annotated[
        dict[str, Any] | None, Preserved("VolumeClaim"), Marker(nullable=True)
    ] = None


class Task(ApiStruct, frozen=True):
    """A group of equal pods with one role.

    Attributes:
        name: Role of the pods, unique in the Job; `default<index>` when left out.
        replicas: Number of pods.
        min_available: Pods that must be schedulable together; `replicas` when left out.
        template: Pod template, kept as it is.
        policies: What to do when something happens to one of its pods.
        topology_policy: NUMA policy of its pods.
        max_retry: Container restarts after which the task counts as failed.
        depends_on: Tasks that must be ready first.
        partition_policy: Division into partitions.
    """

    name: Annotated[str, Marker(max_length=63, pattern=DNS_LABEL_PATTERN)] = ""
    replicas: Annotated[int | None, Marker(minimum=0)] = None
    min_available: Annotated[int | None, Marker(minimum=0, nullable=True)] = None
    template: Annotated[dict[str, Any] | None, Preserved("PodTemplate")] = None
    policies: list[LifecyclePolicy] | None = None
    topology_policy: Annotated[
        str, Marker(enum=("none", "best-effort", "restricted", "single-numa-node"))
    ] = ""
    max_retry: Annotated[int | None, Marker(minimum=0)] = None
    depends_on: Annotated[DependsOn | None, Marker(nullable=True)] = None
    partition_policy: Annotated[PartitionPolicy | None, Marker(nullable=True)] = None

    @property
    def size(self) -> int:
        """Number of pods, 0 when left out."""
        return self.replicas or 0

    @property
    def minimum(self) -> int:
        """Pods that must be schedulable together: stated, or by partitions, or all of them."""
        if self.min_available is not None:
            return self.min_available
        return self.in_partitions or self.size

    @property
    def in_partitions(self) -> int:
        """Pods of the partitions that must be schedulable together."""
        partitions = self.partition_policy
        return max(partitions.min_partitions * partitions.partition_size, 0) if partitions else 0

    def pod_spec(self) -> dict[str, Any]:
        """`spec` of the pod template, empty when there is none."""
        return object_in(self.template, "spec")

    def pod_metadata(self) -> dict[str, Any]:
        """`metadata` of the pod template, empty when there is none."""
        return object_in(self.template, "metadata")


class JobSpec(ApiStruct, frozen=True):
    """What the user asks for.

    Attributes:
        scheduler_name: Scheduler that places the pods.
        min_available: Pods that must be schedulable together for the Job to start and to run.
        volumes: Persistent volumes mounted into every pod.
        tasks: The groups of pods.
        policies: What to do when something happens to a pod or a task.
        plugins: Job plugins by name with their arguments, for example `svc: []`.
        running_estimate: How long the Job is expected to run.
        queue: Queue whose resources the Job uses.
        max_retry: Restarts after which the Job fails.
        ttl_seconds_after_finished: Seconds after which a finished Job is deleted.
        priority_class_name: PriorityClass of the Job and of its pods.
        min_success: Succeeded pods that make the Job complete.
        network_topology: How near to each other the pods must be.
    """

    scheduler_name: Annotated[str, Marker(max_length=63)] = ""
    min_available: Annotated[int | None, Marker(minimum=0)] = None
    volumes: list[Volume] | None = None
    tasks: Annotated[list[Task] | None, Marker(min_items=1)] = None
    policies: list[LifecyclePolicy] | None = None
    plugins: dict[str, list[str]] | None = None
    running_estimate: str | None = None
    queue: Annotated[
        str, Marker(max_length=253, pattern=DNS_SUBDOMAIN_PATTERN, default="default")
    ] = ""
    max_retry: Annotated[int | None, Marker(minimum=0, default=3)] = None
    ttl_seconds_after_finished: Annotated[int | None, Marker(minimum=0, nullable=True)] = None
    priority_class_name: Annotated[str, Marker(max_length=253, pattern=DNS_SUBDOMAIN_PATTERN)] = ""
    min_success: Annotated[int | None, Marker(minimum=1, nullable=True)] = None
    network_topology: Annotated[NetworkTopology | None, Marker(nullable=True)] = None


class JobState(ApiStruct, frozen=True):
    """Phase of a Job and why it is in it.

    Attributes:
        phase: Where the Job stands.
        reason: One word why.
        message: One sentence why.
        last_transition_time: When the phase was entered.
    """

    phase: Annotated[str, Marker(enum=PHASES)] = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Annotated[str | None, Marker(format="date-time")] = None


class TaskState(ApiStruct, frozen=True):
    """Pods of a task by pod phase.

    Attributes:
        phase: Number of pods in each pod phase.
    """

    phase: dict[str, int] | None = None


class JobCondition(ApiStruct, frozen=True):
    """A phase that the Job has been in.

    Attributes:
        status: The phase.
        last_transition_time: When it was entered.
    """

    status: Annotated[str, Marker(enum=PHASES, required=True)] = ""
    last_transition_time: Annotated[str | None, Marker(format="date-time")] = None


class JobStatus(ApiStruct, frozen=True):
    """Status of a Job.

    Attributes:
        state: Phase and reason.
        min_available: `spec.minAvailable` that the counts were judged by.
        task_status_count: Pods by task and pod phase.
        pending: Pods that wait.
        running: Pods that run.
        succeeded: Pods that succeeded.
        failed: Pods that failed.
        terminating: Pods that are being removed.
        unknown: Pods of unknown state.
        version: Incarnation, counted up with each restart.
        retry_count: Restarts so far.
        running_duration: How long the Job has run.
        controlled_resources: Objects that plugins own.
        conditions: Phases that the Job has been in.
    """

    state: JobState = JobState()
    min_available: int = 0
    task_status_count: dict[str, TaskState] | None = None
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    version: int = 0
    retry_count: int = 0
    running_duration: str | None = None
    controlled_resources: dict[str, str] | None = None
    conditions: list[JobCondition] | None = None


class Job(ApiStruct, frozen=True, weakref=True, gc=True):
    """A batch job of several tasks, admitted, wired, gang-scheduled and run as one.

    Attributes:
        spec: What the user asks for.
        status: Its observed state.
    """

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def tasks(self) -> list[Task]:
        """The tasks, empty when left out."""
        return self.spec.tasks or []

    @property
    def replicas(self) -> int:
        """Number of pods over all tasks."""
        return sum([task.replicas or 0 for task in self.spec.tasks or ()])

    def task(self, name: str) -> Task | None:
        """Find a task by name."""
        return next((task for task in self.tasks if task.name == name), None)
