"""Subresources that are more than a part of their object.

`binding` is the write that places a pod. `scale` is the number of replicas of a workload, which `kubectl scale` reads and
writes.
"""

from pumice.api.fields import FieldError
from pumice.api.kinds import Kind
from pumice.embedded import schemas, statuses
from pumice.embedded.objects import Objects
from pumice.embedded.resources import Call
from pumice.embedded.storage import Obj

SCALE = Kind("autoscaling", "v1", "Scale", "scales")


def scale_of(obj: Obj) -> Obj:
    """The Scale of a ReplicaSet, ReplicationController, Deployment or StatefulSet."""
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas = spec.get("replicas", 1)  # the API server's default, which this one does not write
    counted: Obj = {"replicas": status.get("replicas", 0)}
    if selector := _selector(spec.get("selector") or {}):
        counted["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": counted,
    }


def scaled(call: Call, obj: Obj, scale: Obj) -> Obj:
    """A workload with the replicas of a Scale; the workload is edited.

    Raises:
        ApiStatusError: 400 or 422: the Scale has another form, or a negative number of replicas.
    """
    schemas.check(schemas.SCALE, scale, "Scale", "autoscaling/v1")
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        error = FieldError("spec.replicas", message, "API-NEGATIVE", "FieldValueInvalid")
        raise statuses.invalid(SCALE, call.name, [error])
    preconditions = scale.get("metadata") or {}
    for key in ("uid", "resourceVersion"):
        if preconditions.get(key):
            obj["metadata"][key] = preconditions[key]
    obj["spec"] = {**(obj.get("spec") or {}), "replicas": replicas}
    return obj


def _selector(selector: Obj) -> str:
    """A selector as `kubectl -l` takes it; that of a ReplicationController is a map of labels."""
    is_map = not {"matchLabels", "matchExpressions"} & selector.keys()
    labels = selector if is_map else selector.get("matchLabels") or {}
    parts = [(key, f"{key}={value}") for key, value in labels.items()]
    for each in selector.get("matchExpressions") or () if not is_map else ():
        key, values = each["key"], f"({','.join(sorted(each.get('values') or ()))})"
        text = {"In": f"{key} in {values}", "NotIn": f"{key} notin {values}", "Exists": key}
        parts.append((key, text.get(each["operator"], f"!{key}")))
    return ",".join(text for _, text in sorted(parts))


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
