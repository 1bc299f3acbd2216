"""The JobFlow, Jobs that wait for each other, and the JobTemplate, from which its Jobs are created.

Group `flow.volcano.sh/v1alpha1`.
"""

from dataclasses import dataclass
from typing import Annotated

from pumice.api import keys
from pumice.api.jobs import JobSpec, TaskState
from pumice.api.markers import Marker
from pumice.api.meta import ApiStruct, ObjectMeta

PHASES = ("Succeed", "Terminating", "Failed", "Running", "Pending")
"""Phases of a JobFlow, in Volcano's order."""

RETAIN_POLICIES = ("retain", "delete")
"""What happens to the Jobs when all have completed."""

FAILURE_POLICIES = ("continue", "stop")
"""What happens to the Jobs that run when one has failed; the first is the default."""

MAX_RETRIES = 10
"""Further Jobs that a flow whose Job has failed may get."""

JOBS = 1000
"""Jobs that a JobFlow may have, retries included: its status says something about each, and an object has room for 1.5 MB."""


class HttpHeader(ApiStruct, frozen=True):
    """A header of an HTTP request.

    Attributes:
        name: Its name.
        value: Its value.
    """

    name: Annotated[str, Marker(required=True)] = ""
    value: Annotated[str, Marker(required=True)] = ""


class HttpGet(ApiStruct, frozen=True):
    """An address of a task's pods that must answer.

    Attributes:
        task_name: Task of the awaited Job.
        path: Path of the request.
        port: Port of the request.
        http_header: Header that is sent along.
    """

    task_name: str = ""
    path: str = ""
    port: Annotated[int, Marker(minimum=0, maximum=65535)] = 0
    http_header: HttpHeader | None = None


class TcpSocket(ApiStruct, frozen=True):
    """A port of a task's pods that must accept connections.

    Attributes:
        task_name: Task of the awaited Job.
        port: The port.
    """

    task_name: str = ""
    port: Annotated[int, Marker(minimum=0, maximum=65535, required=True)] = 0


class TaskStatus(ApiStruct, frozen=True):
    """A phase that all pods of a task must be in.

    Attributes:
        task_name: Task of the target's Job; all of its tasks when left out.
        phase: The phase, for example `Running`.
    """

    task_name: str = ""
    phase: str = ""


class Probe(ApiStruct, frozen=True):
    """What must be true of the targets that have not completed.

    Attributes:
        http_get_list: Addresses that must answer; not supported.
        tcp_socket_list: Ports that must accept connections; not supported.
        task_status_list: Phases that all pods of tasks must be in.
    """

    http_get_list: list[HttpGet] | None = None
    tcp_socket_list: list[TcpSocket] | None = None
    task_status_list: list[TaskStatus] | None = None


class FlowDependsOn(ApiStruct, frozen=True):
    """What a Job of a JobFlow waits for.

    Attributes:
        targets: Names of the flows whose Jobs must have completed.
        probe: What is enough of targets that have not completed.
    """

    targets: list[str] | None = None
    probe: Probe | None = None


class FlowPatch(ApiStruct, frozen=True):
    """Differences between a Job and its JobTemplate.

    Attributes:
        job_spec: The fields that differ; nothing in it is defaulted.
    """

    job_spec: Annotated[JobSpec | None, Marker(partial=True)] = None


class Flow(ApiStruct, frozen=True):
    """One Job of a JobFlow.

    Attributes:
        name: Name of the JobTemplate from which the Job is created.
        depends_on: What it waits for.
        patch: Differences between the Job and its JobTemplate.
    """

    name: Annotated[str, Marker(min_length=1, required=True)] = ""
    depends_on: FlowDependsOn | None = None
    patch: FlowPatch | None = None


class JobFlowSpec(ApiStruct, frozen=True):
    """Flows of a JobFlow, and what happens to their Jobs at the end.

    Attributes:
        flows: The Jobs.
        job_retain_policy: What happens to them when all have completed: `retain` or `delete`.
    """

    flows: list[Flow] | None = None
    job_retain_policy: Annotated[str, Marker(enum=RETAIN_POLICIES)] = ""


class RunningHistory(ApiStruct, frozen=True):
    """A phase that a Job was in.

    Attributes:
        start_timestamp: Since when.
        end_timestamp: Until when.
        state: The phase.
    """

    start_timestamp: Annotated[str | None, Marker(format="date-time")] = None
    end_timestamp: Annotated[str | None, Marker(format="date-time")] = None
    state: str = ""


class FlowJobStatus(ApiStruct, frozen=True):
    """How one of the Jobs fares.

    Attributes:
        name: Name of the Job.
        state: Its phase.
        start_timestamp: When it started.
        end_timestamp: When it ended.
        restart_count: How often it started again.
        running_histories: Phases it was in.
    """

    name: str = ""
    state: str = ""
    start_timestamp: Annotated[str | None, Marker(format="date-time")] = None
    end_timestamp: Annotated[str | None, Marker(format="date-time")] = None
    restart_count: int = 0
    running_histories: list[RunningHistory] | None = None


class FlowCondition(ApiStruct, frozen=True):
    """What was last seen of one of the Jobs.

    Attributes:
        phase: Its phase; the reason why there is no Job, if something prevents it.
        create_time: When it was created.
        running_duration: How long it has run.
        task_status_count: Its pods by task and pod phase.
    """

    phase: str = ""
    create_time: Annotated[str | None, Marker(format="date-time")] = None
    running_duration: str | None = None
    task_status_count: dict[str, TaskState] | None = None


class JobFlowState(ApiStruct, frozen=True):
    """Where a JobFlow stands.

    Attributes:
        phase: The phase.
    """

    phase: Annotated[str, Marker(enum=PHASES)] = ""


class JobFlowStatus(ApiStruct, frozen=True):
    """Status of a JobFlow.

    Attributes:
        pending_jobs: Jobs that wait.
        running_jobs: Jobs that run.
        failed_jobs: Jobs that failed.
        completed_jobs: Jobs that completed.
        terminated_jobs: Jobs that were terminated.
        un_know_jobs: Jobs of unknown phase.
        job_status_list: How each Job fares.
        conditions: What was last seen of each Job.
        state: Where the JobFlow stands.
    """

    pending_jobs: list[str] | None = None
    running_jobs: list[str] | None = None
    failed_jobs: list[str] | None = None
    completed_jobs: list[str] | None = None
    terminated_jobs: list[str] | None = None
    un_know_jobs: list[str] | None = None
    job_status_list: list[FlowJobStatus] | None = None
    conditions: dict[str, FlowCondition] | None = None
    state: JobFlowState = JobFlowState()


class JobFlow(ApiStruct, frozen=True):
    """Jobs that wait for each other.

    Attributes:
        spec: Which Jobs, in what order.
        status: The observed state of its Jobs.
    """

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: JobFlowSpec = JobFlowSpec()
    status: JobFlowStatus = JobFlowStatus()

    @property
    def flows(self) -> list[Flow]:
        """The flows, empty when left out."""
        return self.spec.flows or []


class JobTemplateStatus(ApiStruct, frozen=True):
    """Jobs that were created from a JobTemplate.

    Attributes:
        job_depends_on_list: The Jobs that were created from it.
    """

    job_depends_on_list: list[str] | None = None


class JobTemplate(ApiStruct, frozen=True):
    """A template of Jobs, which JobFlows create.

    Attributes:
        spec: What the Jobs ask for.
        status: The Jobs that were created from it.
    """

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobTemplateStatus = JobTemplateStatus()


def job_name(job_flow: str, flow: str, retry: int = 0) -> str:
    """Name of a Job of a JobFlow: `<job flow>-<flow>`, for a retry `<job flow>-<flow>-retry-<number>`."""
    name = f"{job_flow}-{flow}"
    return f"{name}-retry-{retry}" if retry else name


@dataclass(frozen=True, slots=True)
class FailureOptions:
    """What annotations of a JobFlow say about Jobs that fail.

    Attributes:
        stop: Whether the Jobs that run are terminated when the JobFlow has failed.
        retries: How many further Jobs a flow gets whose Job has failed.
        invalid: Annotations that cannot be read, each with what it must be; they have no effect.
    """

    stop: bool = False
    retries: int = 0
    invalid: tuple[tuple[str, str], ...] = ()


def failure_options(meta: ObjectMeta) -> FailureOptions:
    """What the annotations of a JobFlow say about Jobs that fail."""
    policy = meta.annotation(keys.ON_FAILURE, FAILURE_POLICIES[0])
    number = meta.annotation(keys.FLOW_RETRIES, "0")
    invalid = []
    if policy not in FAILURE_POLICIES:
        invalid.append((keys.ON_FAILURE, f"must be one of {', '.join(FAILURE_POLICIES)}"))
    retries = int(number) if number.isascii() and number.isdigit() and len(number) < 4 else -1
    if not 0 <= retries <= MAX_RETRIES:
        invalid.append((keys.FLOW_RETRIES, f"must be an integer from 0 to {MAX_RETRIES}"))
        retries = 0
    return FailureOptions(policy == "stop", retries, tuple(invalid))
