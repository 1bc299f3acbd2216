"""The gang as a whole: its queue, its size, what it needs at least, its priority and its place."""

from pumice.api.podgroups import PodGroup
from pumice.api.quantities import MILLI, parse_milli
from pumice.webhook.rules.case import Case, Check
from pumice.webhook.rules.network_topology import contradiction
from pumice.webhook.rules.priority_classes import PG_PRIORITY, priority_class
from pumice.webhook.rules.queue_references import QueueRules, queue_reference
from pumice.webhook.rules.resource_names import is_integer, misspelt
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.tiers import PG_TIER, network_tier

__all__ = ["CHECKS", "INT32_MAX", "PG_TOPO_BOTH", "RULES"]

INT32_MAX = 2**31 - 1
"""The largest count that other programs can read."""

PG_QUEUE = QueueRules.of("PG", "PodGroup", tree_is_stricter=True)
PG_TOPO_BOTH = Rule(
    "PG-TOPO-BOTH",
    "networkTopology names its highest tier by number or by name, not both",
    "The two may disagree, and which of them counts would be a guess.",
    "networkTopology: {highestTierAllowed: 1, highestTierName: rack}",
    reason="FieldValueForbidden",
)
PG_MIN_MEMBER = Rule(
    "PG-MIN-MEMBER",
    "minMember is 0 or more",
    "There is no gang of fewer pods than none.",
    "minMember: -1",
    stricter=True,
)
PG_MIN_TASK = Rule(
    "PG-MIN-TASK",
    "minTaskMember is 0 or more for every task",
    "No task waits for fewer pods than none.",
    "minTaskMember: {worker: -1}",
    stricter=True,
)
PG_MIN_SUM = Rule(
    "PG-MIN-SUM",
    "minMember is at least the sum of minTaskMember",
    "With a smaller minMember the scheduler does not look at the single tasks: the gang starts "
    "with any minMember pods.",
    "minMember: 2, minTaskMember: {ps: 1, worker: 4}",
    level="warn",
    compares=True,
)
PG_MIN_RESOURCES = Rule(
    "PG-MIN-RESOURCES",
    "minResources holds quantities of 0 or more, whole ones of what is counted",
    "The scheduler compares them with what is free; what it cannot read it cannot compare.",
    "minResources: {memory: 10 GB}",
    stricter=True,
)
PG_RESOURCE = Rule(
    "PG-RESOURCE",
    "resource names are spelt right",
    "A gang that needs a resource which does not exist waits for ever.",
    "minResources: {nvdia.com/gpu: 8}",
    level="warn",
)

RULES = (
    *PG_QUEUE.all,
    PG_TOPO_BOTH,
    PG_MIN_MEMBER,
    PG_MIN_TASK,
    PG_MIN_SUM,
    PG_MIN_RESOURCES,
    PG_RESOURCE,
)


def _queue(case: Case, group: PodGroup) -> None:
    if group.spec.queue:
        queue_reference(case, PG_QUEUE, group.spec.queue)


def _topology(case: Case, group: PodGroup) -> None:
    topology = group.spec.network_topology
    if problem := contradiction(topology):
        case.report(PG_TOPO_BOTH, "spec.networkTopology.highestTierName", problem)
    else:
        network_tier(case, PG_TIER, "spec.networkTopology", topology)


def _members(case: Case, group: PodGroup) -> None:
    spec = group.spec
    if not 0 <= spec.min_member <= INT32_MAX:
        message = f"must be between 0 and {INT32_MAX}, found {spec.min_member}"
        case.report(PG_MIN_MEMBER, "spec.minMember", message)
    if not spec.min_task_member:
        return
    total, readable = 0, True
    for task, minimum in sorted(spec.min_task_member.items()):
        total += minimum
        if not 0 <= minimum <= INT32_MAX:
            message = f"must be between 0 and {INT32_MAX}, found {minimum}"
            case.report(PG_MIN_TASK, f"spec.minTaskMember.{task}", message)
            readable = False
    if readable and 0 <= spec.min_member < total:
        message = (
            f"{spec.min_member} is less than the {total} pods that minTaskMember asks for in all, "
            "so the single tasks are not looked at"
        )
        case.report(PG_MIN_SUM, "spec.minMember", message, excess=total - spec.min_member)


def _resources(case: Case, group: PodGroup) -> None:
    for name, value in sorted((group.spec.min_resources or {}).items()):
        path = f"spec.minResources.{name}"
        if hint := misspelt(name, case.suggestions):
            case.report(PG_RESOURCE, path, f'resource "{name}" is not known{hint}')
        try:
            amount = parse_milli(value)
        except ValueError as error:
            case.report(PG_MIN_RESOURCES, path, str(error))
            continue
        if amount < 0:
            case.report(PG_MIN_RESOURCES, path, f"must be 0 or more, found {value}")
        elif amount % MILLI and is_integer(name):
            case.report(PG_MIN_RESOURCES, path, f"must be a whole number, found {value}")


def _priority(case: Case, group: PodGroup) -> None:
    priority_class(case, PG_PRIORITY, "spec.priorityClassName", group.spec.priority_class_name)


CHECKS: tuple[Check[PodGroup], ...] = (
    (PG_QUEUE.missing, _queue),
    (PG_TOPO_BOTH, _topology),
    (PG_MIN_MEMBER, _members),
    (PG_MIN_RESOURCES, _resources),
    (PG_PRIORITY, _priority),
)
"""What is judged about the gang as a whole, in the order in which problems are told."""
