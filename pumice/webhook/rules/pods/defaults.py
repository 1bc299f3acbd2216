"""Defaults of pods: values of the resource group, and the gate that holds a pod until its queue has resources.

Each step adds only missing values, so a second pass changes nothing, and unknown fields of tolerations and gates are
kept.
"""

from typing import Any

from pumice.api.keys import QUEUE_ALLOCATION_GATE
from pumice.webhook.patches import escape
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.drafts import DraftPod, DraftPodPlace
from pumice.webhook.rules.resource_groups import ResourceGroup
from pumice.webhook.rules.rule import warned

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

Raw = dict[str, Any]

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


def pod_defaults(case: Case, pod: DraftPod, namespace: str) -> None:
    """Write the defaults of a pod into the case's patch; most pods get none.

    The namespace may be in the review only. Gates do not depend on resource groups.
    """
    annotations = pod.metadata.annotations
    gating = case.settings.scheduling_gates_queue_admission and annotations is not None
    group = case.groups.find(namespace, annotations or {})
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
