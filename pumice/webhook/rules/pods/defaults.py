"""Defaults of pods: what the resource group gives, and the gate that holds a pod until its queue has room."""

from pumice.api.keys import QUEUE_ALLOCATION_GATE
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.drafts import DraftPod, DraftPodPlace
from pumice.webhook.rules.pods.resource_groups import resource_group
from pumice.webhook.rules.rule import Rule, rules_in
from pumice.webhook.rules.terms import Group

__all__ = ["RULES", "pod_defaults", "scheduling_gate"]

POD_GATE_SCHEDULER = Rule(
    "POD-GATE-SCHEDULER",
    "a pod that is held by a gate is one of our schedulers'",
    "Another scheduler does not take the gate away, so the pod would wait for ever.",
    "annotations: {scheduling.volcano.sh/queue-allocation-gate: 'true'}, schedulerName: default-scheduler",
    level="warn",
)

RULES = rules_in(globals())

_NO_SPEC = DraftPodPlace()
_GATE = {"name": QUEUE_ALLOCATION_GATE}


def scheduling_gate(case: Case, pod: DraftPod, group: Group | None) -> None:
    """Hold a pod that asks for it, unless it is held already.

    Args:
        case: Where the patch and the warnings go.
        pod: The pod as it came.
        group: Its resource group, which may give it another scheduler.
    """
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
        message = (
            f'holds a pod of scheduler "{scheduler}", which does not take gates away; ours: {ours}'
        )
        case.report(POD_GATE_SCHEDULER, path, message)


def pod_defaults(case: Case, pod: DraftPod, namespace: str) -> None:
    """Write what a pod gets into the case's patch; nothing for most pods.

    Args:
        case: Where the patch and the warnings go.
        pod: The pod as it came.
        namespace: Its namespace, which may stand in the review only.

    Gates do not depend on the file of resource groups.
    """
    annotations = pod.metadata.annotations
    gating = case.settings.scheduling_gates_queue_admission and annotations is not None
    group = case.groups.find(namespace, annotations or {}) if case.groups else None
    if not gating and group is None:
        return
    if pod.spec is None:
        case.patch.missing("/spec")
    if gating:
        scheduling_gate(case, pod, group)
    if group is not None:
        resource_group(case, pod, group)
