"""Binding: the write that places a pod."""

from pumice.embedded import statuses
from pumice.embedded.calls import Call
from pumice.embedded.objects import Objects
from pumice.embedded.storage import Obj

__all__ = ["bind"]


def bind(objects: Objects, call: Call, binding: Obj) -> None:
    """Place a pod on a node, once.

    Raises:
        ApiStatusError: 400, 404, 409 when the pod is placed already, is being deleted, is gated or
            is not the one meant, 422 when the target is not a node.
    """
    kind = call.resource.kind
    target = binding.get("target") or {}
    metadata = binding.get("metadata") or {}
    if target.get("kind", "Node") not in {"", "Node"} or not target.get("name"):
        raise statuses.bad_request(
            f"a binding needs a target of kind Node with a name, found {target}"
        )
    current = objects.get(call)
    pod = current.obj
    for field, title in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, found = metadata.get(field), pod["metadata"][field]
        if wanted and wanted != found:
            why = f"Precondition failed: {title} in precondition: {wanted}, {title} in object meta: {found}"
            raise statuses.conflict(kind, call.name, why)
    if pod["metadata"].get("deletionTimestamp"):
        why = f"pod {call.name} is being deleted, cannot be assigned to a host"
        raise statuses.conflict(kind, call.name, why, subresource="binding")
    if pod["spec"].get("nodeName"):
        why = f'pod {call.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        raise statuses.conflict(kind, call.name, why, subresource="binding")
    if pod["spec"].get("schedulingGates"):
        why = f"pod {call.name} has non-empty .spec.schedulingGates"
        raise statuses.conflict(kind, call.name, why, subresource="binding")
    if not call.dry_run:
        objects.storage.put(
            call.resource.key, _bound(pod, target["name"], metadata, objects.identities.now())
        )


def _bound(pod: Obj, node: str, metadata: Obj, moment: str) -> Obj:
    bound = {**pod, "spec": {**pod["spec"], "nodeName": node}}
    if metadata.get("annotations"):
        annotations = {**(pod["metadata"].get("annotations") or {}), **metadata["annotations"]}
        bound["metadata"] = {**pod["metadata"], "annotations": annotations}
    status = pod.get("status") or {}
    others = [each for each in status.get("conditions") or () if each.get("type") != "PodScheduled"]
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": moment,
    }
    bound["status"] = {**status, "conditions": [*others, scheduled]}
    return bound
