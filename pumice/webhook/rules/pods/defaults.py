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
    if gates is None:
        case.patch.set("/spec/schedulingGates", [_GATE])
    else:
        case.patch.set("/spec/schedulingGates/-", _GATE)
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
    spec, patch = pod.spec or _NO_SPEC, case.patch
    _node_selector(case, spec, group)
    if group.affinity is not None and spec.affinity is None:
        patch.set("/spec/affinity", group.affinity)
    _tolerations(case, spec, group)
    wanted, named = group.scheduler_name, spec.scheduler_name
    if wanted and wanted != named:
        patch.set("/spec/schedulerName", wanted)
        if named not in ("", _BUILTIN_SCHEDULER):
            message = (
                f'"{named}" becomes "{wanted}", the scheduler of resource group "{group.name}"'
            )
            case.report(POD_GROUP_SCHEDULER, "spec.schedulerName", message)


def _node_selector(case: Case, spec: DraftPodPlace, group: ResourceGroup) -> None:
    """Select the group's nodes; for a label with two values the group's is used."""
    selector = spec.node_selector
    if selector is None:
        if group.labels:
            case.patch.set("/spec/nodeSelector", group.labels)
        return
    for key, value in group.labels.items():
        if selector.get(key) != value:
            case.patch.set(f"/spec/nodeSelector/{escape(key)}", value)


def _tolerations(case: Case, spec: DraftPodPlace, group: ResourceGroup) -> None:
    if spec.tolerations is None:
        if group.tolerations:
            case.patch.set("/spec/tolerations", list(group.tolerations))
        return
    present = [_plain(each) for each in spec.tolerations]
    for wanted in group.tolerations:
        if _plain(wanted) not in present:
            case.patch.set("/spec/tolerations/-", wanted)


def _plain(toleration: dict[str, Any]) -> dict[str, Any]:
    """A toleration without default values: an empty operator means `Equal`."""
    return {
        key: value
        for key, value in toleration.items()
        if value not in ("", None) and (key, value) != ("operator", "Equal")
    }
