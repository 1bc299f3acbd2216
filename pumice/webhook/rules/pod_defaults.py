"""What a pod gets on its way in: a gate, and what its resource group gives."""

from pumice.webhook.rules.case import Case
from pumice.webhook.rules.drafts import DraftPod
from pumice.webhook.rules.resource_groups import resource_group
from pumice.webhook.rules.scheduling_gates import scheduling_gate

__all__ = ["pod_defaults"]


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
