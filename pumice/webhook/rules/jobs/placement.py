"""Where the pods of a Job may run: their scheduler, whole CPUs under a NUMA policy, and tasks divided into partitions.

The gang of a Job waits for pods that Pumice's scheduler does not place. Under a NUMA policy nodes pin whole CPUs, so
containers must request whole CPUs.

The size of a partition is fixed when the Job is created; the number of partitions follows the replicas, so a
divided task is scaled by changing both (`updates.py`). Numbers are of any size, so products do not overflow.
"""

from typing import Any

from pumice.api.jobs import Job, PartitionPolicy, Task
from pumice.api.meta import MAX_INT32
from pumice.api.quantities import MILLI, parse_milli
from pumice.api.raw import object_in
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.jobs.min_available import bounds
from pumice.webhook.rules.rule import Rule, stricter, warned
from pumice.webhook.rules.templates.table import entries

JOB_NUMA_CPU = Rule(
    "JOB-NUMA-CPU",
    "under a NUMA policy every container requests whole CPUs",
    "The node pins whole CPUs; a fraction of one cannot be aligned.",
    "topologyPolicy: restricted, template: {… resources: {requests: {cpu: 500m}}}",
)
JOB_SCHEDULER = warned(
    "JOB-SCHEDULER",
    "no schedulerName of a Job names another scheduler",
    "The gang of the Job waits for its pods, and pods with another schedulerName are not placed with it.",
    "template: {spec: {schedulerName: default-scheduler}}",
)


def numa(case: Case, job: Job) -> None:
    """Check the CPU requests of every task that has a NUMA policy."""
    for index, task in enumerate(job.tasks):
        if task.topology_policy in ("", "none"):
            continue
        spec = task.pod_spec()
        for field in ("containers", "initContainers"):
            for position, container in entries(spec.get(field)):
                which, cpu = _cpu(container)
                if problem := _problem(cpu):
                    where = f"spec.tasks[{index}].template.spec.{field}[{position}]"
                    message = (
                        f'{problem}, and topologyPolicy "{task.topology_policy}" pins whole CPUs'
                    )
                    case.report(JOB_NUMA_CPU, f"{where}.resources.{which}.cpu", message)


def _cpu(container: dict[str, Any]) -> tuple[str, object]:
    """The CPU request of a container; without requests its limits count as requests."""
    resources = object_in(container, "resources")
    has_limits = isinstance(resources.get("limits"), dict)
    which = "limits" if has_limits and not resources.get("requests") else "requests"
    return which, object_in(resources, which).get("cpu")


def _problem(cpu: object) -> str | None:
    if cpu is None:
        return f"{_NOT_WHOLE}, found none"
    try:
        milli = parse_milli(cpu)
    except ValueError:
        return None  # the rules on templates report it
    return f"{_NOT_WHOLE}, found {cpu}" if milli < MILLI or milli % MILLI else None


_NOT_WHOLE = "the cpu request isn't an integer of 1 or more"


def scheduler_names(case: Case, job: Job) -> None:
    """Check the scheduler of the Job and of every template that names one."""
    named: dict[str, object] = {"spec.schedulerName": job.spec.scheduler_name}
    for index, task in enumerate(job.tasks):
        path = f"spec.tasks[{index}].template.spec.schedulerName"
        named[path] = task.pod_spec().get("schedulerName")
    ours = case.settings.scheduler_names
    for path, name in named.items():
        if isinstance(name, str) and name and name not in ours:
            message = (
                f'scheduler "{name}" does not place pods together with their gang, '
                f"so the Job may wait for ever; remove it or write {' or '.join(ours)}"
            )
            case.report(JOB_SCHEDULER, path, message)


PART_TOTAL = Rule(
    "PART-TOTAL",
    "partitionPolicy.totalPartitions is at least 1",
    "A divided task has at least one partition.",
    "partitionPolicy: {totalPartitions: 0, partitionSize: 4}",
)
PART_SIZE = Rule(
    "PART-SIZE",
    "partitionPolicy.partitionSize is at least 1",
    "A partition without pods cannot be placed.",
    "partitionPolicy: {totalPartitions: 2, partitionSize: 0}",
)
PART_MIN_TOTAL = stricter(
    "PART-MIN-TOTAL",
    "minPartitions is at most totalPartitions",
    "The gang would wait for partitions that do not exist.",
    "partitionPolicy: {totalPartitions: 2, partitionSize: 4, minPartitions: 3}",
    compares=True,
)
PART_PRODUCT = Rule(
    "PART-PRODUCT",
    "a divided task has totalPartitions × partitionSize replicas",
    "The remaining pods would belong to no partition.",
    "replicas: 8, partitionPolicy: {totalPartitions: 2, partitionSize: 3}",
    compares=True,
)
PART_MIN = Rule(
    "PART-MIN",
    "minAvailable of a divided task is minPartitions × partitionSize",
    "Partitions start as a whole, so another number has no meaning.",
    "minAvailable: 4, partitionPolicy: {totalPartitions: 4, partitionSize: 2, minPartitions: 1}",
    compares=True,
)


def partitions(case: Case, job: Job) -> None:
    """Check the partition policy of every task that has one."""
    for index, task in enumerate(job.tasks):
        if task.partition_policy is not None:
            _partition(case, task, task.partition_policy, f"spec.tasks[{index}]")


def _partition(case: Case, task: Task, policy: PartitionPolicy, path: str) -> None:
    total, size, least = policy.total_partitions, policy.partition_size, policy.min_partitions
    within = f"{path}.partitionPolicy"
    for rule, field, named, number in (
        (PART_TOTAL, "totalPartitions", "'TotalPartitions'", total),
        (PART_SIZE, "partitionSize", "'PartitionSize'", size),
    ):
        if number <= 0:
            message = f"{named} must be greater than 0, found {number}"
            case.report(rule, f"{within}.{field}", message, excess=1 - number)
        else:
            bounds(case, f"{within}.{field}", number)
    bounds(case, f"{within}.minPartitions", least)
    if total <= 0 or size <= 0 or max(total, size, least) > MAX_INT32:
        return
    if least > total:
        message = f"must be at most totalPartitions ({total}), found {least}"
        case.report(PART_MIN_TOTAL, f"{within}.minPartitions", message, excess=least - total)
    if task.size != total * size:
        message = (
            f"'Replicas' are not equal to TotalPartitions*PartitionSize = {total} * {size} = {total * size}, "
            f"found {task.size}"
        )
        fitting, rest = divmod(task.size, size)
        if fitting > 0 and not rest:
            message += f"; with totalPartitions: {fitting} it would be"
        case.report(PART_PRODUCT, f"{path}.replicas", message, excess=abs(task.size - total * size))
    minimum = task.min_available
    if least > 0 and minimum is not None and minimum != least * size:
        case.report(
            PART_MIN,
            f"{path}.minAvailable",
            f"'MinAvailable' is not equal to MinPartitions*PartitionSize = {least} * {size} = {least * size}, "
            f"found {minimum}; leave it out to get this value",
            excess=abs(minimum - least * size),
        )
