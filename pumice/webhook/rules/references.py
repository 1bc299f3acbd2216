"""References of Jobs and PodGroups: queue, priority classes, highest tier of the network topology."""

from collections.abc import Callable
from typing import NamedTuple

from pumice.api import keys
from pumice.api.jobs import Job, NetworkTopology
from pumice.api.kinds import HYPER_NODE, PRIORITY_CLASS, QUEUE
from pumice.api.messages import counted
from pumice.api.queues import Queue, users_of
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.queues.tree import first_ten
from pumice.webhook.rules.rule import Rule, stricter, warned


class References(NamedTuple):
    """The rules about references of one kind."""

    missing: Rule
    unknown: Rule
    not_open: Rule
    namespace: Rule
    root: Rule
    not_leaf: Rule
    priority: Rule
    tier: Rule
    two_tiers: Rule
    mode: Rule


def _about_queues(prefix: str, noun: str, tree: Callable[..., Rule]) -> dict[str, Rule]:
    """The rules about the queue of a kind."""
    named = f"the queue of a {noun}"
    return {
        "missing": Rule(
            f"{prefix}-QUEUE-MISSING",
            f"{named} exists",
            "Pods of a queue that does not exist would wait forever.",
            "queue: reserch",
            reason="FieldValueNotFound",
        ),
        "unknown": warned(
            f"{prefix}-QUEUE-UNKNOWN",
            f"{named} is in the given files or the cluster",
            "Without a cluster, or its state in files, it is unknown whether the queue exists.",
            "queue: research",
            reason="FieldValueNotFound",
        ),
        "not_open": Rule(
            f"{prefix}-QUEUE-NOT-OPEN",
            f"{named} is open",
            "A closed queue accepts no new Jobs and PodGroups.",
            "queue: closed-for-maintenance",
        ),
        "namespace": Rule(
            f"{prefix}-QUEUE-NAMESPACE",
            f"{named} is for its namespace",
            f"Annotation `{keys.NAMESPACES}` of a Queue says which namespaces may use it.",
            f"queue: only-for-team-a (a Queue with the annotation {keys.NAMESPACES} team-a, named by another namespace)",
            reason="FieldValueForbidden",
        ),
        "root": tree(
            f"{prefix}-QUEUE-ROOT",
            f"{named} is not root",
            "The queue root holds the other queues; pods run in leaf queues only.",
            "queue: root",
        ),
        "not_leaf": tree(
            f"{prefix}-QUEUE-NOT-LEAF",
            f"{named} has no queues below it",
            "Its share is divided among its children; pods run in leaf queues only.",
            "queue: department (with queues team-a and team-b below it)",
        ),
    }


def _of_kind(prefix: str, noun: str, tree: Callable[..., Rule]) -> References:
    """The rules about references of a kind."""
    return References(
        **_about_queues(prefix, noun, tree),
        priority=warned(
            f"{prefix}-PRIORITY",
            f"the priority class of a {noun} exists",
            "A gang whose class does not exist has priority 0, and the API server refuses pods that name it.",
            "priorityClassName: hihg-priority",
            reason="FieldValueNotFound",
        ),
        tier=warned(
            f"{prefix}-TIER",
            f"the network tier that a {noun} names exists",
            "Below the lowest tier there are no nodes, so pods wait forever in mode hard; above the "
            "highest, nothing is limited.",
            "networkTopology: {highestTierName: rakc}",
            reason="FieldValueNotFound",
        ),
        two_tiers=Rule(
            f"{prefix}-TOPO-BOTH",
            "networkTopology names its highest tier by number or by name, not both",
            "The two could contradict each other.",
            "networkTopology: {highestTierAllowed: 1, highestTierName: rack}",
            reason="FieldValueForbidden",
        ),
        mode=warned(
            f"{prefix}-TOPO-MODE",
            "networkTopology names a tier in mode hard, and none in mode soft",
            "A tier has no effect in mode soft, and mode hard without a tier counts as soft: either may keep the pods less near "
            "to each other than was meant.",
            "networkTopology: {mode: soft, highestTierAllowed: 1}",
            compares=True,
        ),
    )


JOB = _of_kind("JOB", "Job", Rule)
# Volcano lets PodGroups name inner queues.
POD_GROUP = _of_kind("PG", "PodGroup", stricter)

JOB_PRIORITY_HIGHER = warned(
    "JOB-PRIORITY-HIGHER",
    "the priority class of a Job is not higher than those of its pods",
    "Quotas limit the pods of a priority, so a gang is ordered by the lowest priority of its pods, and the Job's class "
    "has no effect.",
    "priorityClassName: high-priority, tasks: [{template: {spec: {priorityClassName: low-priority}}}]",
)

RULES = (*JOB, JOB_PRIORITY_HIGHER, *POD_GROUP)


def job_queue(case: Case, job: Job) -> None:
    """Check the Job's queue."""
    queue_reference(case, JOB, job.spec.queue or keys.DEFAULT_QUEUE)


def queue_reference(case: Case, rules: References, name: str) -> None:
    """Check the queue that `spec.queue` names.

    A queue without a state counts as open: its controller has not handled it yet.
    """
    path, noun = "spec.queue", "job" if rules is JOB else "PodGroup"
    if name == keys.ROOT_QUEUE:
        message = (
            f"can not submit {noun} to root queue: it only holds other queues, name one of those"
        )
        case.report(rules.root, path, message)
        return
    queue = case.queue(name)
    if queue is None:
        hint = case.did_you_mean(name, [each.metadata.name for each in case.view.queues()])
        if case.view.knows(QUEUE):
            missing = "job queue" if rules is JOB else "queue"
            message = f'unable to find {missing} "{name}": there is no such queue{hint}'
            case.report(rules.missing, path, message)
        else:
            message = f'queue "{name}" is not in the given files, so it was not checked{hint}'
            case.report(rules.unknown, path, message)
        return
    if not queue.is_open:
        message = (
            f'can only submit {noun} to queue with state `Open`, found queue "{name}" in state '
            f"{queue.status.state}"
        )
        case.report(rules.not_open, path, message)
    _for_namespace(case, rules, queue)
    if children := case.view.children(name):
        below = counted(len(children), "queue")
        names = sorted(each.metadata.name for each in children)
        message = (
            f'can only submit {noun} to leaf queue, found {below} below "{name}"; name one of those: '
            f"{first_ten(names)}"
        )
        case.report(rules.not_leaf, path, message)


def _for_namespace(case: Case, rules: References, queue: Queue) -> None:
    """Check that the queue is for the object's namespace; what is not known of it the scheduler will know."""
    users = users_of(queue)
    if users is None or not case.namespace:
        return
    namespace = case.view.namespace(case.namespace)
    if users.selector is not None and namespace is None:
        return
    if not users.admit(case.namespace, (namespace.metadata.labels or {}) if namespace else {}):
        message = (
            f'queue "{queue.metadata.name}" is not for namespace "{case.namespace}" (annotation {keys.NAMESPACES} of the '
            "Queue); name another queue"
        )
        case.report(rules.namespace, "spec.queue", message)


def priority_class(case: Case, rules: References, path: str, name: str) -> None:
    """Warn about a priority class that does not exist, if the cluster's classes are known."""
    view = case.view
    if not name or view.priority_class(name) is not None or not view.knows(PRIORITY_CLASS):
        return
    hint = case.did_you_mean(name, [each.metadata.name for each in view.priority_classes()])
    case.report(rules.priority, path, f'there is no PriorityClass "{name}"{hint}')


def job_priorities(case: Case, job: Job) -> None:
    """Check the priority classes of the Job and of its pods."""
    own = job.spec.priority_class_name
    priority_class(case, JOB, "spec.priorityClassName", own)
    highest = case.view.priority_class(own) if own else None
    for index, task in enumerate(job.tasks):
        name = task.pod_spec().get("priorityClassName")
        if name and isinstance(name, str):
            path = f"spec.tasks[{index}].template.spec.priorityClassName"
            priority_class(case, JOB, path, name)
            given = case.view.priority_class(name)
            if highest is not None and given is not None and given.value < highest.value:
                message = (
                    f'"{name}" ({given.value}) is lower than "{own}" ({highest.value}) of spec.priorityClassName, so '
                    "the gang is ordered by the lower; use one class for both"
                )
                case.report(JOB_PRIORITY_HIGHER, path, message)


def check_topology(
    case: Case, rules: References, path: str, topology: NetworkTopology | None, within: str = ""
) -> None:
    """Check mode and tier of a topology; the refusal of two tiers begins with `within`.

    Whether a tier exists is checked if the cluster's HyperNodes are known.
    """
    if topology is None:
        return
    number, name = topology.highest_tier_allowed, topology.highest_tier_name
    if number is not None and name:
        message = (
            f"{within}must not specify 'highestTierAllowed' and 'highestTierName' together, found "
            f'{number} and "{name}"; keep one of the two'
        )
        case.report(rules.two_tiers, f"{path}.highestTierName", message)
    elif number is None and not name:
        if topology.mode != "soft":
            message = "mode hard without a tier counts as soft; set highestTierAllowed or highestTierName, or mode to soft"
            case.report(rules.mode, path, message, "FieldValueRequired")
    elif topology.mode == "soft":
        field = "highestTierName" if name else "highestTierAllowed"
        message = (
            "has no effect in mode soft, in which every tier is tried, the lowest first, and then the whole cluster; "
            "leave it out, or set mode to hard"
        )
        case.report(rules.mode, f"{path}.{field}", message)
    else:
        _tier_exists(case, rules, path, number, name)


def _tier_exists(case: Case, rules: References, path: str, number: int | None, name: str) -> None:
    view = case.view
    if not view.knows(HYPER_NODE):
        return
    if number is not None and number not in view.tiers():
        known = ", ".join(map(str, sorted(view.tiers()))) or "none"
        message = f"there is no HyperNode of tier {number}, tiers are: {known}"
        case.report(rules.tier, f"{path}.highestTierAllowed", message)
    if name and name not in view.tier_names():
        hint = case.did_you_mean(name, view.tier_names())
        known = ", ".join(sorted(view.tier_names())) or "none"
        message = f'there is no HyperNode of tier "{name}"{hint}, tiers are: {known}'
        case.report(rules.tier, f"{path}.highestTierName", message)


def job_topologies(case: Case, job: Job) -> None:
    """Check the topology of the Job and of each task's partitions."""
    found = [("spec.networkTopology", job.spec.network_topology)]
    for index, task in enumerate(job.tasks):
        if task.partition_policy is not None:
            path = f"spec.tasks[{index}].partitionPolicy.networkTopology"
            found.append((path, task.partition_policy.network_topology))
    for path, topology in found:
        check_topology(case, JOB, path, topology)
