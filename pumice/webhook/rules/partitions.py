"""Partition policies: a task divided into partitions of equal size."""

from pumice.api.jobs import Job, Task
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

__all__ = ["PART_PRODUCT", "RULES", "partitions"]

PART_TOTAL = Rule(
    "PART-TOTAL",
    "partitionPolicy.totalPartitions is at least 1",
    "A task that is divided has parts.",
    "partitionPolicy: {totalPartitions: 0, partitionSize: 4}",
)
PART_SIZE = Rule(
    "PART-SIZE",
    "partitionPolicy.partitionSize is at least 1",
    "A partition without pods cannot be placed.",
    "partitionPolicy: {totalPartitions: 2, partitionSize: 0}",
)
PART_PRODUCT = Rule(
    "PART-PRODUCT",
    "a divided task has totalPartitions × partitionSize replicas",
    "Pods left over would belong to no partition.",
    "replicas: 8, partitionPolicy: {totalPartitions: 2, partitionSize: 3}",
    compares=True,
)
PART_MIN = Rule(
    "PART-MIN",
    "minAvailable of a divided task is minPartitions × partitionSize",
    "The gang would start with half a partition.",
    "minAvailable: 4, partitionPolicy: {totalPartitions: 4, partitionSize: 2, minPartitions: 1}",
    compares=True,
)

RULES = (PART_TOTAL, PART_SIZE, PART_PRODUCT, PART_MIN)


def partitions(case: Case, job: Job) -> None:
    """Check the partition policy of every task that has one."""
    for index, task in enumerate(job.tasks):
        if task.partition_policy is not None:
            _partition(case, task, f"spec.tasks[{index}]")


def _partition(case: Case, task: Task, path: str) -> None:
    policy = task.partition_policy
    if policy is None:
        return
    total, size = policy.total_partitions, policy.partition_size
    if total <= 0:
        where = f"{path}.partitionPolicy.totalPartitions"
        case.report(PART_TOTAL, where, f"must be at least 1, found {total}")
    if size <= 0:
        where = f"{path}.partitionPolicy.partitionSize"
        case.report(PART_SIZE, where, f"must be at least 1, found {size}")
    if total <= 0 or size <= 0:
        return
    if task.size != total * size:
        case.report(
            PART_PRODUCT,
            f"{path}.replicas",
            f"must be totalPartitions × partitionSize = {total} × {size} = {total * size}, found "
            f"{task.size}",
        )
    least, minimum = policy.min_partitions, task.min_available
    if least > 0 and minimum is not None and minimum != least * size:
        case.report(
            PART_MIN,
            f"{path}.minAvailable",
            f"must be minPartitions × partitionSize = {least} × {size} = {least * size}, found "
            f"{minimum}; leave it out to get this value",
        )
