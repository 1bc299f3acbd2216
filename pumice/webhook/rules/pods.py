"""Pods of the configured schedulers: their defaults, how many of them a Job may lose at a time, durations, and the number of labels.

Defaults are values of the resource group, and the gate that holds a pod until its queue has resources. Each step adds only
missing values, so a second pass changes nothing, and unknown fields of tolerations and gates are kept.
"""

import re

from pumice.api import keys
from pumice.api.durations import wait_problem
from pumice.api.jobs import Job
from pumice.api.keys import QUEUE_ALLOCATION_GATE
from pumice.api.meta import Raw
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.webhook.patches import escape
from pumice.webhook.rules import not_here_yet
from pumice.webhook.rules.case import Case, Check, run
from pumice.webhook.rules.drafts import DraftPod, DraftPodPlace
from pumice.webhook.rules.labels import ADDED, MOST_ANNOTATIONS, MOST_LABELS, not_many_on
from pumice.webhook.rules.resource_groups import ResourceGroup
from pumice.webhook.rules.rule import Rule, stricter, warned

POD_JDB_INT = Rule(
    "POD-JDB-INT",
    "a number of pods is greater than 0",
    "A budget of 0 pods allows every disruption or none.",
    'volcano.sh/jdb-min-available: "0"',
)
POD_JDB_PARSE = Rule(
    "POD-JDB-PARSE",
    "a disruption budget is an integer or a percentage",
    "A budget that cannot be parsed protects no pods.",
    "volcano.sh/jdb-min-available: half",
)
POD_JDB_FORM = stricter(
    "POD-JDB-FORM",
    "integers and percentages are written without signs and leading zeros",
    "Other programs parse `+5`, `05`, `%50` or `5%0` differently or not at all.",
    'volcano.sh/jdb-min-available: "%50"',
)
POD_JDB_PERCENT = Rule(
    "POD-JDB-PERCENT",
    "a percentage is between 1% and 99%",
    "0% protects no pods; with 100% no node can be drained.",
    "volcano.sh/jdb-max-unavailable: 100%",
)
POD_JDB_BOTH = Rule(
    "POD-JDB-BOTH",
    "a pod sets jdb-min-available or jdb-max-unavailable, not both",
    "The two may contradict each other.",
    'volcano.sh/jdb-min-available: "2", volcano.sh/jdb-max-unavailable: "1"',
    reason="FieldValueForbidden",
)
POD_MANY_LABELS = stricter(
    "POD-MANY-LABELS",
    f"a pod has at most {MOST_LABELS + ADDED} labels and {MOST_ANNOTATIONS + ADDED} annotations",
    "Scheduler and controller keep the labels and annotations of all pods.",
    "metadata: {labels: {l0: a, l1: a, …, l320: a}}",
    reason="FieldValueTooMany",
)

POD_COOLDOWN = warned(
    "POD-COOLDOWN",
    "a cool-down is a duration of 0 or more",
    "One that cannot be read protects the pod from nothing.",
    "labels: {volcano.sh/cooldown-time: ten-minutes}",
)
POD_DURATION = warned(
    "POD-DURATION",
    "how long pods run, as their user expects, is a duration of 0 or more",
    "Forecasts ignore one that cannot be read. Pods with an owner are not sent to the webhook for it.",
    "annotations: {pumice.dev/duration: two hours}",
)

_INTEGER = re.compile(r"([+-]?)0*(\d{1,19})", re.ASCII)
_LIMIT = 2**63
_PLAIN = re.compile(r"0|-?[1-9]\d*|(0|[1-9]\d*)%", re.ASCII)


def _disruption_budget(case: Case, pod: Pod) -> None:
    annotations = pod.metadata.annotations or {}
    present = [key for key in keys.BUDGETS if key in annotations]
    for key in present:
        _budget(case, key, annotations[key])
    if len(present) == len(keys.BUDGETS):
        message = f"not allow configure multiple annotations of this sort: {keys.BUDGETS[0]} is set too; keep one of the two"
        case.report(POD_JDB_BOTH, f"metadata.annotations[{keys.BUDGETS[1]}]", message)


_WANTED = "must be a positive integer or a valid percentage"


def _budget(case: Case, key: str, value: str) -> None:
    path, number = f"metadata.annotations[{key}]", _integer(value.replace("%", ""))
    if number is None:
        message = f'invalid value "{value}" for {key}: it {_WANTED}, such as 2 or 50%'
        case.report(POD_JDB_PARSE, path, message)
    elif "%" not in value and number <= 0:
        case.report(POD_JDB_INT, path, f'it {_WANTED}, found "{value}"')
    elif "%" in value and not 1 <= number <= 99:
        message = (
            f'{_WANTED}, found "{value}": it must be a valid percentage which between 1% ~ 99%'
        )
        case.report(POD_JDB_PERCENT, path, message)
    elif not _PLAIN.fullmatch(value):
        plain = f"{number}{'%' if '%' in value else ''}"
        case.report(POD_JDB_FORM, path, f'must be written as "{plain}", found "{value}"')


def _integer(text: str) -> int | None:
    """A number as Go reads it, in 64 bits; None if it is not a number."""
    digits = _INTEGER.fullmatch(text)
    number = int(digits[1] + digits[2]) if digits else _LIMIT
    return number if -_LIMIT <= number < _LIMIT else None


_Rules = tuple[tuple[Rule, str, str], ...]
_RUNS: _Rules = ((POD_DURATION, "annotations", keys.DURATION),)
_DURATIONS: _Rules = (
    (POD_COOLDOWN, "labels", keys.COOLDOWN_TIME),
    (POD_COOLDOWN, "annotations", keys.COOLDOWN_TIME),
    *_RUNS,
)
"""Rules about durations, each with the part of the metadata that holds it, and its key."""


def job_durations(case: Case, job: Job) -> None:
    """Check the durations that pods of a Job get, from the Job and from its templates."""
    durations(case, job)
    for index, task in enumerate(job.tasks):
        found = task.pod_metadata()
        path = f"spec.tasks[{index}].template.metadata"
        _durations(case, found.get("labels"), found.get("annotations"), path)


def durations(case: Case, found: Job | Pod | PodGroup) -> None:
    """Check the durations in the metadata of an object; no cool-down is read from a PodGroup."""
    meta, rules = found.metadata, _RUNS if isinstance(found, PodGroup) else _DURATIONS
    _durations(case, meta.labels, meta.annotations, "metadata", rules)


def _durations(
    case: Case, labels: object, annotations: object, path: str, rules: _Rules = _DURATIONS
) -> None:
    parts = {"labels": labels, "annotations": annotations}
    for rule, part, key in rules:
        entries = parts[part]
        text = entries.get(key) if isinstance(entries, dict) else None
        if isinstance(text, str) and (problem := wait_problem(text)):
            case.report(rule, f"{path}.{part}[{key}]", problem)


CHECKS: tuple[Check[Pod], ...] = (
    (POD_JDB_INT, _disruption_budget),
    (POD_COOLDOWN, durations),
    (POD_MANY_LABELS, not_many_on(POD_MANY_LABELS)),
    (not_here_yet.NOT_HERE_YET, not_here_yet.uses),
)


def validate(case: Case, pod: Pod, _: Pod | None) -> None:
    """Check a new pod of one of Pumice's schedulers; updates of pods are not reviewed."""
    if pod.spec.scheduler_name in case.settings.scheduler_names:
        run(case, CHECKS, pod)


POD_GROUP_SCHEDULER = warned(
    "POD-GROUP-SCHEDULER",
    "a pod names no other scheduler than its resource group",
    "The group's scheduler replaces the pod's, as in Volcano.",
    "annotations: {volcano.sh/resource-group: gpu}, schedulerName: mine",
)
POD_GATE_SCHEDULER = warned(
    "POD-GATE-SCHEDULER",
    "a pod with Pumice's scheduling gate names a configured scheduler",
    "Another scheduler does not remove the gate, so the pod would wait forever.",
    "annotations: {scheduling.volcano.sh/queue-allocation-gate: 'true'}, schedulerName: default-scheduler",
)

_NO_SPEC = DraftPodPlace()
_GATE = {"name": QUEUE_ALLOCATION_GATE}
_BUILTIN_SCHEDULER = "default-scheduler"
"""Scheduler that the API server sets if a pod names none."""


def _scheduling_gate(case: Case, pod: DraftPod, group: ResourceGroup | None) -> None:
    """Add the gate to a pod that requests it, unless it has it; its group may set another scheduler."""
    if (pod.metadata.annotations or {}).get(QUEUE_ALLOCATION_GATE) != "true":
        return
    spec = pod.spec or _NO_SPEC
    gates = spec.scheduling_gates
    if any(gate.get("name") == QUEUE_ALLOCATION_GATE for gate in gates or ()):
        return
    _append(case, "/spec/schedulingGates", gates, [_GATE])
    scheduler = (group.scheduler_name if group is not None else "") or spec.scheduler_name
    if scheduler not in case.settings.scheduler_names:
        path = f"metadata.annotations[{QUEUE_ALLOCATION_GATE}]"
        ours = ", ".join(case.settings.scheduler_names)
        message = f'holds a pod of scheduler "{scheduler}", which does not remove gates; configured schedulers: {ours}'
        case.report(POD_GATE_SCHEDULER, path, message)


def pod_defaults(case: Case, pod: DraftPod) -> None:
    """Write the defaults of a pod into the case's patch; most pods get none.

    Its namespace may be in the review only. Gates do not depend on resource groups.
    """
    annotations = pod.metadata.annotations
    gating = case.settings.scheduling_gates_queue_admission and annotations is not None
    group = case.groups.find(pod.metadata.namespace or case.namespace, annotations or {})
    if not gating and group is None:
        return
    if pod.spec is None:
        case.patch.missing("/spec")
    if gating:
        _scheduling_gate(case, pod, group)
    if group is not None:
        _resource_group(case, pod, group)


def _resource_group(case: Case, pod: DraftPod, group: ResourceGroup) -> None:
    """Set the values of a group; for a label of nodes with two values the group's is used."""
    spec, patch = pod.spec or _NO_SPEC, case.patch
    if spec.node_selector is None and group.labels:
        patch.set("/spec/nodeSelector", group.labels)
    elif spec.node_selector is not None:
        for key, value in group.labels.items():
            if spec.node_selector.get(key) != value:
                patch.set(f"/spec/nodeSelector/{escape(key)}", value)
    if group.affinity is not None and spec.affinity is None:
        patch.set("/spec/affinity", group.affinity)
    present = [_plain(each) for each in spec.tolerations or ()]
    wanted = [each for each in group.tolerations if _plain(each) not in present]
    _append(case, "/spec/tolerations", spec.tolerations, wanted)
    scheduler, named = group.scheduler_name, spec.scheduler_name
    if scheduler and scheduler != named:
        patch.set("/spec/schedulerName", scheduler)
        if named not in ("", _BUILTIN_SCHEDULER):
            message = (
                f'"{named}" becomes "{scheduler}", the scheduler of resource group "{group.name}"'
            )
            case.report(POD_GROUP_SCHEDULER, "spec.schedulerName", message)


def _append(case: Case, pointer: str, present: list[Raw] | None, added: list[Raw]) -> None:
    """Append items to a list, which may be missing."""
    if present is None and added:
        case.patch.set(pointer, added)
    elif present is not None:
        for each in added:
            case.patch.set(f"{pointer}/-", each)


def _plain(toleration: Raw) -> Raw:
    """A toleration without default values: an empty operator means `Equal`."""
    return {
        key: value
        for key, value in toleration.items()
        if value not in ("", None) and (key, value) != ("operator", "Equal")
    }
