"""The PodGroup of a Job: the pods that the scheduler must place together.

It is created before any pod. Pods are created after the scheduler has let the group enqueue, so a Job that cannot start
costs the cluster one object and not a thousand.

A task that waits for another (`dependsOn`) is not counted before it starts: the gang could never be
complete, because the scheduler would wait for pods that wait for the scheduler.

`minResources` are the resource requests of the minimum set of pods that a Job needs. The scheduler does not try a gang
for which a queue or the cluster has less than this. The set of pods follows from
priority: tasks are taken in the order of their PriorityClass, and in the order of the spec if priorities are equal.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from pumice.api import keys
from pumice.api.jobs import Job, NetworkTopology, Task
from pumice.api.kinds import POD_GROUP
from pumice.api.meta import Raw
from pumice.api.names import pod_group_name
from pumice.api.pods import PodSpec
from pumice.api.quantities import QuantityError, format_milli
from pumice.api.requests import Amounts, add, quota_usage
from pumice.controller.jobs.subject import UnusableError, min_available
from pumice.controller.objects import controller_reference
from pumice.controller.podgroups import COPIED, note_of_copies

_ENCODER = msgspec.json.Encoder()
_LONGEST = 8 * 1024
"""Bytes of the longest pod template whose usage is remembered, and of all names of resources whose quantities are."""


def wanted(
    job: Job,
    priorities: Mapping[str, int],
    waiting: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
    lost: Mapping[str, int] | None = None,
    partial: Mapping[str, Sequence[str]] | None = None,
    *,
    strict: bool = False,
) -> Raw:
    """The PodGroup of a Job.

    Args:
        job: The Job, complete as `subject.read` returns it.
        priorities: PriorityClass values by name.
        waiting: Names of tasks that must not start yet and have no pods.
        annotations: Annotations that plugins add.
        lost: Numbers of pods by task that succeeded and exist no longer: the gang needs as many fewer.
        partial: Partitions by task of which some of these pods were.
        strict: Whether it has the Job's PriorityClass also where pods have a lower one, as in Volcano.

    Raises:
        UnusableError: A pod template requests a value that is not a quantity.
    """
    meta, labels = job.metadata, dict(job.metadata.labels or {})
    copied = {
        key: text
        for key, text in (dict(meta.annotations or {}) | dict(annotations or {})).items()
        if key not in (keys.LAST_APPLIED, COPIED)
    }
    noted = note_of_copies(labels, copied)
    spec = _sizes(job, priorities, waiting, lost or {}, partial or {})
    if job.spec.priority_class_name:
        spec["priorityClassName"] = _priority_class(job, {} if strict else priorities)
    if topology := _topology(job.spec.network_topology):
        spec["networkTopology"] = topology
    policies = [
        policy
        for task in job.tasks
        for policy in _sub_groups(task, (partial or {}).get(task.name, ()))
    ]
    for policy in policies:
        if policy["name"] in waiting:
            policy["minSubGroups"] = 0
    if policies:
        spec["subGroupPolicy"] = policies
    return {
        **POD_GROUP.type_meta,
        "metadata": {
            "name": pod_group_name(meta.name, meta.uid),
            "namespace": meta.namespace,
            "labels": labels,
            "annotations": copied | noted | {keys.JOB_VERSION: str(job.status.version)},
            "ownerReferences": [controller_reference(meta)],
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def _sizes(
    job: Job,
    priorities: Mapping[str, int],
    waiting: Sequence[str],
    lost: Mapping[str, int],
    partial: Mapping[str, Sequence[str]],
) -> Raw:
    """The fields of the spec that say how much the gang needs, and in which queue."""
    tasks = [task for task in job.tasks if task.name not in waiting]
    minimum = min_available(job)
    if waiting:
        minimum = min(minimum, sum(task.minimum for task in tasks))
    if lost:
        minimum = max(min(minimum, 1), minimum - sum(lost.values()))
        tasks = [
            _without(task, lost.get(task.name, 0), len(partial.get(task.name, ())))
            for task in tasks
        ]
    return {
        "minMember": minimum,
        "minTaskMember": {task.name: task.minimum for task in tasks},
        "queue": job.spec.queue or keys.DEFAULT_QUEUE,
        "minResources": min_resources(job, tasks, minimum, priorities),
    }


def _without(task: Task, succeeded: int, partial: int) -> Task:
    """A task without pods that succeeded and exist no longer, which were of some of its partitions."""
    policy = task.partition_policy
    if policy is not None:
        fewer = max(0, policy.min_partitions - partial)
        policy = msgspec.structs.replace(policy, min_partitions=fewer)
    return msgspec.structs.replace(
        task,
        replicas=task.size - succeeded,
        min_available=max(0, task.minimum - succeeded),
        partition_policy=policy,
    )


def _priority_class(job: Job, priorities: Mapping[str, int]) -> str:
    """The PriorityClass of the PodGroup: the Job's, or the lowest of its pods if that is lower.

    Quotas limit pods by their priority, and a gang enters its queue before it has pods.
    """
    own = job.spec.priority_class_name
    of_pods = (str(task.pod_spec().get("priorityClassName")) for task in job.tasks if task.size)
    found = (own, *(name for name in of_pods if name in priorities))
    return min(found, key=lambda name: priorities.get(name, 0))


def _topology(topology: NetworkTopology | None) -> Raw | None:
    if topology is None:
        return None
    found: Raw = {"mode": topology.mode or "hard"}
    if topology.highest_tier_allowed is not None:
        found["highestTierAllowed"] = topology.highest_tier_allowed
    elif topology.highest_tier_name:
        found["highestTierName"] = topology.highest_tier_name
    return found


def _sub_groups(task: Task, partial: Sequence[str]) -> list[Raw]:
    """The policies that make sub-groups of a task's partitions.

    A partition some of whose pods succeeded and are gone cannot be complete any more: what is left of it, for example a pod
    that is restarted, is placed pod by pod, where the partition is.
    """
    policy = task.partition_policy
    if policy is None:
        return []
    whole: Raw = {
        "name": task.name,
        "subGroupSize": policy.partition_size,
        "minSubGroups": policy.min_partitions,
        "labelSelector": {"matchLabels": {keys.TASK_SPEC: task.name}},
        "matchLabelKeys": [keys.PARTITION_ID],
    }
    if topology := _topology(policy.network_topology):
        whole["networkTopology"] = topology
    if not partial:
        return [whole]
    those = {"key": keys.PARTITION_ID, "operator": "In", "values": list(partial)}
    rest = whole | {
        "name": f"{task.name}/partial",
        "subGroupSize": 1,
        "minSubGroups": 0,
        "labelSelector": whole["labelSelector"] | {"matchExpressions": [those]},
    }
    whole["minSubGroups"] = max(0, policy.min_partitions - len(partial))
    return [rest, whole]


def min_resources(
    job: Job, tasks: Sequence[Task], minimum: int, priorities: Mapping[str, int]
) -> dict[str, str]:
    """Resources of the `minimum` most important pods, as quantities by name.

    Args:
        job: The Job.
        tasks: Those of its tasks that count now.
        minimum: Pods that are needed over these tasks.
        priorities: PriorityClass values by name; an unknown class counts as 0.

    Raises:
        UnusableError: A pod template requests a value that is not a quantity.
    """
    total: Amounts = {}
    for task, count in needed_pods(by_priority(tasks, priorities), minimum):
        if count:
            add(total, _usage(job, task), count)
    write = _written if sum(map(len, total)) <= _LONGEST else _written.__wrapped__
    return dict(write(tuple(sorted(total.items()))))


def by_priority(tasks: Sequence[Task], priorities: Mapping[str, int]) -> list[Task]:
    """Tasks by the value of their template's PriorityClass, highest first, otherwise as given."""
    return sorted(
        tasks, key=lambda task: -priorities.get(str(task.pod_spec().get("priorityClassName")), 0)
    )


def needed_pods(tasks: Sequence[Task], minimum: int) -> list[tuple[Task, int]]:
    """How many pods of each task are among the `minimum` needed ones.

    Those of partitions that must start together are, whatever the minimum of the task: of other tasks there are fewer then.
    """
    counts_tasks = minimum >= sum(task.minimum for task in tasks)
    taken = by_minimum(tasks, minimum) if counts_tasks else by_walk(tasks, minimum)
    parts = [min(task.in_partitions, task.size) for task in tasks]
    counts = [max(count, part) for (_, count), part in zip(taken, parts, strict=True)]
    more = sum(counts) - sum(count for _, count in taken)
    for place in reversed(range(len(tasks) if more else 0)):
        least = max(parts[place], tasks[place].minimum if counts_tasks else 0)
        fewer = min(more, max(counts[place] - least, 0))
        counts[place] -= fewer
        more -= fewer
    return list(zip(tasks, counts, strict=True))


def by_walk(tasks: Sequence[Task], minimum: int) -> list[tuple[Task, int]]:
    """Take all replicas, task by task, until the minimum is reached."""
    taken: list[tuple[Task, int]] = []
    for task in tasks:
        count = min(task.size, minimum)
        minimum -= count
        taken.append((task, count))
    return taken


def by_minimum(tasks: Sequence[Task], minimum: int) -> list[tuple[Task, int]]:
    """Take each task's own minimum first, then fill up from what is left, task by task.

    A minimum of 0 for the Job stands for the sum of the tasks' minimums.
    """
    left = minimum or sum(task.minimum for task in tasks)
    taken: list[int] = []
    for task in tasks:
        count = min(task.minimum, left)
        left -= count
        taken.append(count)
    for position, task in enumerate(tasks):
        more = min(task.size - taken[position], left)
        left -= more
        taken[position] += more
    return list(zip(tasks, taken, strict=True))


def _usage(job: Job, task: Task) -> Amounts:
    """What a pod of a task counts as in a quota. Each pass over a Job asks for it, and Jobs have equal pods."""
    try:
        template = _ENCODER.encode(task.pod_spec())
        compute = _usage_of if len(template) <= _LONGEST else _usage_of.__wrapped__
        return compute(template)
    except (QuantityError, msgspec.ValidationError, RecursionError, UnicodeError) as error:
        position = next(at for at, each in enumerate(job.tasks) if each.name == task.name)
        raise UnusableError(
            f"spec.tasks[{position}].template.spec cannot be read: {error}"
        ) from error


@lru_cache(256)
def _written(amounts: tuple[tuple[str, int], ...]) -> tuple[tuple[str, str], ...]:
    """Amounts as quantities; those of a gang are the same in each pass."""
    return tuple([(name, format_milli(amount)) for name, amount in amounts])


@lru_cache(256)
def _usage_of(template: bytes) -> Amounts:
    return quota_usage(msgspec.convert(_stated(msgspec.json.decode(template)), PodSpec))


def _stated(value: Any) -> Any:
    """JSON without nulls, which an API server treats as absent in pods."""
    if isinstance(value, dict):
        return {key: _stated(each) for key, each in value.items() if each is not None}
    return [_stated(each) for each in value] if isinstance(value, list) else value
