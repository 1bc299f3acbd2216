"""Rules of pods: the defaults that schedulers and controllers read, and what may change later; and of their owners' templates."""

from typing import Any

from pumice.api.fields import FieldError
from pumice.embedded import schemas
from pumice.embedded.naming import plain_label_problem
from pumice.embedded.storage import Obj
from pumice.embedded.strategies import Strategy, field_invalid, field_required

_SPEC_DEFAULTS: tuple[tuple[str, Any], ...] = (
    ("restartPolicy", "Always"),
    ("terminationGracePeriodSeconds", 30),
    ("dnsPolicy", "ClusterFirst"),
    ("schedulerName", "default-scheduler"),
    ("enableServiceLinks", True),
)
_ENUMS = (
    ("restartPolicy", ("Always", "OnFailure", "Never")),
    ("dnsPolicy", ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")),
)
_MUTABLE = ("activeDeadlineSeconds", "schedulingGates", "terminationGracePeriodSeconds")
_IMMUTABLE_MESSAGE = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def is_terminal(pod: Obj) -> bool:
    """Whether a pod has ended."""
    return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}


class PodStrategy(Strategy):
    """A pod starts Pending; once it exists only little of its spec may change."""

    types = schemas.POD
    returns_deleted = True
    graceful = True

    def __init__(self) -> None:
        super().__init__(has_status=True, has_generation=True)

    def default(self, obj: Obj) -> None:
        """Write the defaults of the pod and of its containers."""
        spec = obj.setdefault("spec", {})
        for field, value in _SPEC_DEFAULTS:
            if spec.get(field) is None:
                spec[field] = value
        spec.setdefault("securityContext", {})
        for group in ("containers", "initContainers"):
            for container in spec.get(group) or ():
                _default_container(container, host_network=bool(spec.get("hostNetwork")))

    def prepare_create(self, obj: Obj) -> None:
        """Start Pending, and say so where scheduling is held back."""
        obj["status"] = {"phase": "Pending", "qosClass": _quality(obj["spec"])}
        if obj["spec"].get("schedulingGates"):
            gated = {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": obj["metadata"]["creationTimestamp"],
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
            obj["status"]["conditions"] = [gated]

    def prepare_status(self, new: Obj, old: Obj) -> Obj:
        """Keep the QoS class, which is set at creation."""
        result = super().prepare_status(new, old)
        quality = (old.get("status") or {}).get("qosClass")
        if quality:
            result["status"] = {**(result.get("status") or {}), "qosClass": quality}
        return result

    def validate(self, obj: Obj, /) -> list[FieldError]:
        """A pod has containers with names and images."""
        spec = obj["spec"]
        errors = _container_errors(spec.get("containers"), "spec.containers")
        if spec.get("initContainers"):
            errors += _container_errors(spec["initContainers"], "spec.initContainers")
        if not spec.get("containers"):
            errors.append(field_required("spec.containers"))
        for field, values in _ENUMS:
            if spec[field] not in values:
                supported = ", ".join(f'"{value}"' for value in values)
                message = f'Unsupported value: "{spec[field]}": supported values: {supported}'
                errors.append(
                    FieldError(f"spec.{field}", message, "API-ENUM", "FieldValueNotSupported")
                )
        return errors

    def validate_update(self, new: Obj, old: Obj, /) -> list[FieldError]:
        """Only images, deadlines, new tolerations and lifted scheduling gates may differ."""
        before, after = old["spec"], new["spec"]
        if before == after:
            return []
        errors = []
        if not _is_prefix(before.get("tolerations") or [], after.get("tolerations") or []):
            message = (
                "Forbidden: existing toleration can not be modified except its tolerationSeconds"
            )
            errors.append(
                FieldError("spec.tolerations", message, "API-IMMUTABLE", "FieldValueForbidden")
            )
        gates = [gate.get("name") for gate in before.get("schedulingGates") or []]
        added = [
            gate for gate in after.get("schedulingGates") or [] if gate.get("name") not in gates
        ]
        if added:
            message = "Forbidden: only deletion is allowed, but found new scheduling gates"
            errors.append(
                FieldError("spec.schedulingGates", message, "API-IMMUTABLE", "FieldValueForbidden")
            )
        if _fixed_part(before, gated=bool(gates)) != _fixed_part(after, gated=bool(gates)):
            errors.append(
                FieldError("spec", _IMMUTABLE_MESSAGE, "API-IMMUTABLE", "FieldValueForbidden")
            )
        return errors

    def grace(self, obj: Obj, /) -> int:
        """A pod that runs on a node is stopped there first."""
        if not obj["spec"].get("nodeName") or is_terminal(obj):
            return 0
        return int(obj["spec"].get("terminationGracePeriodSeconds") or 0)


class WorkloadStrategy(Strategy):
    """A kind of which pods are made here. Its spec has the fields that Kubernetes knows, and a template with containers."""

    types = schemas.WORKLOAD

    def __init__(self, *fields: str, ends: bool = False) -> None:
        """Describe a kind.

        Args:
            fields: What its spec may have beside `selector` and `template`.
            ends: Whether its pods end, so that containers which have ended are not always started again.
        """
        super().__init__(has_status=True, has_generation=True)
        self._fields = {"selector", "template", *fields}
        self._ends = ends

    def decode(self, obj: Obj) -> list[str]:
        """Drop what the spec does not have, such as the tasks of a Job of another group."""
        dropped = super().decode(obj)
        spec = obj.get("spec") or {}
        unknown = [field for field in spec if field not in self._fields]
        for field in unknown:
            del spec[field]
        return [*dropped, *(f"spec.{field}" for field in unknown)]

    def validate(self, obj: Obj, /) -> list[FieldError]:
        """The template has containers with names and images."""
        path = "spec.template.spec"
        spec = ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
        errors = _container_errors(spec.get("containers"), f"{path}.containers")
        if not spec.get("containers"):
            errors.append(field_required(f"{path}.containers"))
        if self._ends and spec.get("restartPolicy", "Always") == "Always":
            errors.append(
                field_required(f"{path}.restartPolicy", 'valid values: "OnFailure", "Never"')
            )
        return errors


def _default_container(container: Obj, *, host_network: bool) -> None:
    image = container.get("image")
    if image and "imagePullPolicy" not in container:
        tag = image.rpartition("/")[2].partition(":")[2]
        latest = "@" not in image and tag in {"", "latest"}
        container["imagePullPolicy"] = "Always" if latest else "IfNotPresent"
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    resources = container.setdefault("resources", {})
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host_network and "containerPort" in port:
            port.setdefault("hostPort", port["containerPort"])


def _quality(spec: Obj) -> str:
    """Quality of service class, which decides about eviction under pressure."""
    containers = [
        each for group in ("containers", "initContainers") for each in spec.get(group) or ()
    ]
    guaranteed, any_resource = bool(containers), False
    for container in containers:
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        any_resource |= any(name in {"cpu", "memory"} for name in (*requests, *limits))
        guaranteed &= all(
            name in limits and requests.get(name) == limits[name] for name in ("cpu", "memory")
        )
    if not any_resource:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _container_errors(containers: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, container in enumerate(containers or ()):
        here = f"{path}[{index}]"
        name = container.get("name")
        if not name:
            errors.append(field_required(f"{here}.name"))
        elif problem := plain_label_problem(name):
            errors.append(field_invalid(f"{here}.name", name, problem))
        elif name in seen:
            message = f'Duplicate value: "{name}"'
            errors.append(
                FieldError(f"{here}.name", message, "API-DUPLICATE", "FieldValueDuplicate")
            )
        seen.add(name)
        if not container.get("image"):
            errors.append(field_required(f"{here}.image"))
    return errors


def _is_prefix(before: list[Any], after: list[Any]) -> bool:
    def bare(toleration: Obj) -> Obj:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    kept = [bare(each) for each in after]
    return all(bare(each) in kept for each in before)


def _fixed_part(spec: Obj, *, gated: bool) -> Obj:
    """The spec without what may change; while a pod is gated, where it may go may change too."""
    fixed = {
        key: value
        for key, value in spec.items()
        if key not in _MUTABLE
        and key != "tolerations"
        and not (gated and key in {"nodeSelector", "affinity"})
    }
    for group in ("containers", "initContainers"):
        if group in fixed:
            fixed[group] = [{**each, "image": ""} for each in fixed[group]]
    return fixed
