"""PodGroups: defaults, queue, size, minimum resources, priority, topology, and the sub-groups of `spec.subGroupPolicy`.

All sub-groups are checked and every problem of each is reported.

The CRD sets queue `default` before webhooks are called, so the object does not show whether its user chose that queue.
The applied manifest does: kubectl keeps it in an annotation, server-side apply in the managed fields. Only a queue that
is named there counts as chosen.
"""

from functools import partial
from typing import Any

import msgspec

from pumice.api import keys
from pumice.api.jobs import NetworkTopology
from pumice.api.meta import MAX_INT32
from pumice.api.names import qualified_name_problem
from pumice.api.podgroups import PodGroup, PodGroupSpec, SubGroupPolicy
from pumice.webhook.rules.case import Case, Check, run
from pumice.webhook.rules.drafts import DraftGroupMeta, DraftPodGroup
from pumice.webhook.rules.labels import ADDED, MOST_ANNOTATIONS, MOST_LABELS, not_many_on
from pumice.webhook.rules.pods import POD_DURATION, durations
from pumice.webhook.rules.references import (
    POD_GROUP,
    check_topology,
    priority_class,
    queue_reference,
)
from pumice.webhook.rules.resource_names import amount_problem, misspelt
from pumice.webhook.rules.rule import Rule, stricter, warned
from pumice.webhook.rules.templates import shapes
from pumice.webhook.rules.templates.metadata import label_selector
from pumice.webhook.rules.templates.table import Site
from pumice.webhook.rules.updates import judge

PG_MIN_MEMBER = stricter(
    "PG-MIN-MEMBER",
    "minMember is 0 or more",
    "A negative size has no meaning.",
    "minMember: -1",
)
PG_MIN_TASK = stricter(
    "PG-MIN-TASK",
    "minTaskMember is 0 or more for every task",
    "A negative size has no meaning.",
    "minTaskMember: {worker: -1}",
)
PG_MIN_SUM = warned(
    "PG-MIN-SUM",
    "minMember is at least the sum of minTaskMember",
    "With a smaller minMember the scheduler ignores minTaskMember: the gang starts "
    "with any minMember pods.",
    "minMember: 2, minTaskMember: {ps: 1, worker: 4}",
    compares=True,
)
PG_MIN_RESOURCES = stricter(
    "PG-MIN-RESOURCES",
    "minResources holds quantities of 0 or more, and integers for counted resources",
    "The scheduler compares them with the free resources.",
    "minResources: {memory: 10 GB}",
)
PG_RESOURCE = warned(
    "PG-RESOURCE",
    "resource names are spelt right",
    "A gang that needs a resource that does not exist waits forever.",
    "minResources: {nvdia.com/gpu: 8}",
)
PG_PART_NAME = stricter(
    "PG-PART-NAME",
    "sub-groups have different names",
    "The pods of two sub-groups of one name could not be told apart.",
    "subGroupPolicy: [{name: workers}, {name: workers}]",
    reason="FieldValueDuplicate",
)
PG_PART_SIZE = stricter(
    "PG-PART-SIZE",
    "a sub-group has at least 1 pod, and the least number of sub-groups is 0 or more",
    "A negative size has no meaning.",
    "subGroupPolicy: [{name: workers, subGroupSize: 0}]",
)
PG_PART_SELECTOR = shapes.stricter(
    "PG-PART-SELECTOR",
    "the label selector of a sub-group is valid",
    "No pod matches an invalid selector, so the sub-group would stay empty.",
    "labelSelector: {matchExpressions: [{key: role, operator: Is, values: [worker]}]}",
)
_LABEL_SELECTOR = label_selector(PG_PART_SELECTOR)
PG_PART_KEYS = stricter(
    "PG-PART-KEYS",
    "matchLabelKeys are keys of labels, each named once",
    "Pods have no labels with other keys.",
    'matchLabelKeys: ["rack number"]',
)
PG_PART_SUM = warned(
    "PG-PART-SUM",
    "the sub-groups that must start together are no more than minMember",
    "The gang needs more pods than minMember says, so it may enter a queue that has no room for it.",
    "minMember: 4, subGroupPolicy: [{name: workers, subGroupSize: 4, minSubGroups: 2}]",
    compares=True,
)

PG_MANY_LABELS = stricter(
    "PG-MANY-LABELS",
    f"a PodGroup has at most {MOST_LABELS + ADDED} labels and {MOST_ANNOTATIONS + ADDED} annotations",
    "Controller and scheduler keep those of all PodGroups.",
    "metadata: {labels: {l0: a, l1: a, …, l320: a}}",
    reason="FieldValueTooMany",
)


PG_QUEUE_MOVED = stricter(
    "PG-QUEUE-MOVED",
    "the queue of a PodGroup does not change while its pods hold places",
    "Pods are charged to the queue under which they were bound until they end.",
    "queue: research, where the stored PodGroup has queue: default, and its phase is Running",
    reason="FieldValueForbidden",
)


def _moved(case: Case, group: PodGroup, old: PodGroup) -> None:
    before, after = (each.spec.queue or keys.DEFAULT_QUEUE for each in (old, group))
    holds = old.status.phase in _PLACED or old.status.running > 0
    if before != after and holds and not group.metadata.deletion_timestamp:
        message = (
            f'can not change from "{before}" to "{after}" while pods of the PodGroup hold places; create another one, or '
            "wait until they have ended"
        )
        case.report(PG_QUEUE_MOVED, "spec.queue", message)


_PLACED = ("Running", "Unknown")
"""Phases of PodGroups whose pods have places."""


def _queue(case: Case, group: PodGroup) -> None:
    if group.spec.queue:
        queue_reference(case, POD_GROUP, group.spec.queue)


def _topology(case: Case, group: PodGroup) -> None:
    check_topology(case, POD_GROUP, "spec.networkTopology", group.spec.network_topology)


def _is_count(case: Case, rule: Rule, path: str, number: int, least: int = 0) -> bool:
    """Whether a number is large enough and fits into 32 bits, as other programs read it."""
    if not least <= number <= MAX_INT32:
        case.report(rule, path, f"must be between {least} and {MAX_INT32}, found {number}")
        return False
    return True


def _members(case: Case, group: PodGroup) -> None:
    spec = group.spec
    _is_count(case, PG_MIN_MEMBER, "spec.minMember", spec.min_member)
    if not spec.min_task_member:
        return
    total, readable = 0, True
    for task, minimum in sorted(spec.min_task_member.items()):
        total += minimum
        if not _is_count(case, PG_MIN_TASK, f"spec.minTaskMember.{task}", minimum):
            readable = False
    if readable and 0 <= spec.min_member < total:
        message = (
            f"{spec.min_member} is less than the {total} pods of minTaskMember in all, "
            "so minTaskMember is ignored"
        )
        case.report(PG_MIN_SUM, "spec.minMember", message, excess=total - spec.min_member)


def _resources(case: Case, group: PodGroup) -> None:
    for name, value in sorted((group.spec.min_resources or {}).items()):
        path = f"spec.minResources.{name}"
        if hint := misspelt(name, case.suggestions):
            case.report(PG_RESOURCE, path, f'resource "{name}" is not known{hint}')
        if problem := amount_problem(value, name):
            case.report(PG_MIN_RESOURCES, path, problem)


def _priority(case: Case, group: PodGroup) -> None:
    priority_class(case, POD_GROUP, "spec.priorityClassName", group.spec.priority_class_name)


def _names(case: Case, group: PodGroup) -> None:
    first: dict[str, int] = {}
    for index, policy in enumerate(group.spec.sub_group_policy or ()):
        if policy.name and first.setdefault(policy.name, index) != index:
            message = (
                f'"{policy.name}" is the name of spec.subGroupPolicy[{first[policy.name]}] already'
            )
            case.report(PG_PART_NAME, f"spec.subGroupPolicy[{index}].name", message)


def _parts(case: Case, group: PodGroup) -> None:
    for index, policy in enumerate(group.spec.sub_group_policy or ()):
        path = f"spec.subGroupPolicy[{index}]"
        inner, within = f"{path}.networkTopology", f'in subGroupPolicy "{policy.name}": '
        check_topology(case, POD_GROUP, inner, policy.network_topology, within)
        _size(case, path, policy, group.spec.min_member)
        _selector(case, path, policy)


def _size(case: Case, path: str, policy: SubGroupPolicy, minimum: int) -> None:
    size, count = policy.sub_group_size, policy.min_sub_groups
    if size is not None:
        _is_count(case, PG_PART_SIZE, f"{path}.subGroupSize", size, least=1)
    if count is None or not _is_count(case, PG_PART_SIZE, f"{path}.minSubGroups", count):
        return
    if (needed := count * max(size or 1, 1)) > minimum > 0:
        message = f"{count} sub-groups of {size or 1} are {needed} pods, more than spec.minMember ({minimum})"
        case.report(PG_PART_SUM, f"{path}.minSubGroups", message, excess=needed - minimum)


def _selector(case: Case, path: str, policy: SubGroupPolicy) -> None:
    if policy.label_selector is not None:
        selector = msgspec.to_builtins(policy.label_selector)
        _LABEL_SELECTOR(Site(case, f"{path}.labelSelector"), selector, "", {})
    seen: set[str] = set()
    for index, key in enumerate(policy.match_label_keys or ()):
        where = f"{path}.matchLabelKeys[{index}]"
        if wrong := qualified_name_problem(key):
            case.report(PG_PART_KEYS, where, wrong)
        elif key in seen:
            case.report(PG_PART_KEYS, where, f'"{key}" is listed twice', "FieldValueDuplicate")
        seen.add(key)


CHECKS: tuple[Check[PodGroup], ...] = (
    (POD_GROUP.missing, _queue),
    (POD_GROUP.two_tiers, _topology),
    (PG_MIN_MEMBER, _members),
    (PG_MIN_RESOURCES, _resources),
    (POD_GROUP.priority, _priority),
    (PG_PART_NAME, _names),
    (PG_PART_SIZE, _parts),
    (PG_MANY_LABELS, not_many_on(PG_MANY_LABELS)),
    (POD_DURATION, durations),
)


def validate(case: Case, group: PodGroup, old: PodGroup | None) -> None:
    """Check a PodGroup; its status is not read.

    Volcano does not check updates, so with `strict-upstream` their problems only warn.
    """
    case.stricter = old is not None
    judge(case, CHECKS, group, old)
    if old is not None:
        run(case, ((PG_QUEUE_MOVED, partial(_moved, old=old)),), group)


_HARD = "hard"
_NO_SPEC = PodGroupSpec()


def pod_group_defaults(case: Case, group: DraftPodGroup, old: DraftPodGroup | None) -> None:
    """Write defaults into the case's patch.

    In an update a default is written again only if the stored object has it, so that no update changes the queue.
    """
    if group.spec is None:
        case.patch.missing("/spec")
    spec = group.spec or _NO_SPEC
    stored = None if old is None else old.spec or _NO_SPEC
    queue = _chosen_queue(case, group.metadata, spec)
    if queue != spec.queue and (stored is None or stored.queue == queue):
        case.patch.set("/spec/queue", queue)
    if not spec.priority_class_name and not case.settings.strict_upstream:
        default = case.view.default_priority_class()
        name = default.metadata.name if default is not None else ""
        if name and (stored is None or stored.priority_class_name == name):
            case.patch.set("/spec/priorityClassName", name)
    _mode(case, spec.network_topology, "/spec/networkTopology")
    for index, policy in enumerate(spec.sub_group_policy or ()):
        _mode(case, policy.network_topology, f"/spec/subGroupPolicy/{index}/networkTopology")


def _chosen_queue(case: Case, metadata: DraftGroupMeta, spec: PodGroupSpec) -> str:
    """The queue of a PodGroup; its namespace may be in the review only."""
    if spec.queue not in ("", keys.DEFAULT_QUEUE):
        return spec.queue
    found = case.view.namespace(metadata.namespace or case.namespace)
    wanted = found.metadata.annotation(keys.NAMESPACE_QUEUE) if found is not None else ""
    if not wanted or (spec.queue and _is_chosen(metadata)):
        return keys.DEFAULT_QUEUE
    return wanted


def _is_chosen(metadata: DraftGroupMeta) -> bool:
    """True if the applied manifest itself names queue `default`."""
    if text := metadata.annotation(keys.LAST_APPLIED):
        try:
            spec = msgspec.json.decode(text, type=dict[str, Any]).get("spec")
        except (ValueError, RecursionError):
            return False
        return isinstance(spec, dict) and spec.get("queue") == keys.DEFAULT_QUEUE
    # The fields of other writes include what the CRD has written.
    entries = metadata.managed_fields or ()
    return any("f:queue" in (each.owned() or ()) for each in entries if each.operation == "Apply")


def _mode(case: Case, topology: NetworkTopology | None, pointer: str) -> None:
    if topology is not None and not topology.mode:
        case.patch.set(f"{pointer}/mode", _HARD)
