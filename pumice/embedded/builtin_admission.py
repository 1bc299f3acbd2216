"""The parts of Kubernetes' own admission that change objects."""

from collections.abc import Callable

import msgspec

from pumice.api import kinds
from pumice.api.runtime_classes import RuntimeClass, admit
from pumice.embedded import statuses
from pumice.embedded.calls import Call
from pumice.embedded.storage import Obj, Storage

__all__ = ["AdmissionPlugin", "namespace_lifecycle", "pod_priority", "runtime_class"]

AdmissionPlugin = Callable[[Call, Obj], None]
"""Called with a new object before the webhooks; may edit it, raises ApiStatusError to refuse."""

_NAMESPACES = ("", "namespaces")
_PRIORITY_CLASSES = ("scheduling.k8s.io", "priorityclasses")
_RUNTIME_CLASSES = ("node.k8s.io", "runtimeclasses")


def namespace_lifecycle(storage: Storage) -> AdmissionPlugin:
    """Objects are created in namespaces that exist and are not being deleted."""

    def check(call: Call, _obj: Obj) -> None:
        if not call.resource.kind.namespaced:
            return
        namespace = storage.get(_NAMESPACES, "", call.namespace)
        if namespace is None:
            raise statuses.not_found(kinds.NAMESPACE, call.namespace)
        if namespace.obj["metadata"].get("deletionTimestamp"):
            why = (
                f"unable to create new content in namespace {call.namespace} because it is being "
                "terminated"
            )
            causes = [
                {
                    "reason": "NamespaceTerminating",
                    "message": f"namespace {call.namespace} is being terminated",
                    "field": "metadata.namespace",
                }
            ]
            raise statuses.forbidden(call.resource.kind, call.name, why, causes=causes)

    return check


def pod_priority(storage: Storage) -> AdmissionPlugin:
    """A pod's `priorityClassName` becomes its priority and preemption policy."""

    def resolve(call: Call, obj: Obj) -> None:
        if call.resource.kind != kinds.POD:
            return
        spec = obj["spec"]
        name = spec.get("priorityClassName")
        chosen = _class_of(storage, name, call)
        if chosen is not None:
            spec["priorityClassName"] = chosen["metadata"]["name"]
        spec["priority"] = (chosen or {}).get("value", 0)
        policy = (chosen or {}).get("preemptionPolicy", "PreemptLowerPriority")
        spec.setdefault("preemptionPolicy", policy)

    return resolve


def runtime_class(storage: Storage) -> AdmissionPlugin:
    """A pod's `runtimeClassName` adds the overhead, node selector and tolerations of the class."""

    def resolve(call: Call, obj: Obj) -> None:
        if call.resource.kind != kinds.POD:
            return
        spec = obj["spec"]
        name = spec.get("runtimeClassName")
        found = storage.get(_RUNTIME_CLASSES, "", name) if name is not None else None
        if name is not None and found is None:
            why: str | None = f'pod rejected: RuntimeClass "{name}" not found'
        else:
            chosen = msgspec.convert(found.obj, RuntimeClass) if found is not None else None
            why = admit(spec, chosen)
        if why is not None:
            raise statuses.forbidden(call.resource.kind, call.name, why)

    return resolve


def _class_of(storage: Storage, name: str | None, call: Call) -> Obj | None:
    if name:
        found = storage.get(_PRIORITY_CLASSES, "", name)
        if found is None:
            why = f"no PriorityClass with name {name} was found"
            raise statuses.forbidden(call.resource.kind, call.name, why)
        return found.obj
    defaults = [
        version.obj
        for version in storage.table(_PRIORITY_CLASSES).items()
        if version.obj.get("globalDefault")
    ]
    return min(defaults, key=lambda each: int(each["value"]), default=None)
