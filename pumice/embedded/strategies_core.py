"""Rules of the small built-in kinds: namespaces, nodes, services, secrets."""

import base64
import itertools

from pumice.api.fields import FieldError
from pumice.embedded import schemas, statuses
from pumice.embedded.naming import plain_label_problem
from pumice.embedded.storage import Obj
from pumice.embedded.strategies import Strategy, field_invalid, field_required

NAMESPACE_FINALIZER = "kubernetes"
_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


class NamespaceStrategy(Strategy):
    """A namespace is Active until it is deleted, and stays until its content is gone."""

    types = schemas.NAMESPACE
    returns_deleted = True

    def __init__(self) -> None:
        super().__init__(has_status=True, name_problem=plain_label_problem)

    def prepare_create(self, obj: Obj) -> None:
        """Start Active, with the finalizer that the content's removal takes off."""
        labels = obj["metadata"].setdefault("labels", {})
        labels["kubernetes.io/metadata.name"] = obj["metadata"]["name"]
        finalizers = (obj.get("spec") or {}).get("finalizers") or []
        obj["spec"] = {"finalizers": list(dict.fromkeys([*finalizers, NAMESPACE_FINALIZER]))}
        obj["status"] = {"phase": "Active"}

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """Keep the finalizers: only `/finalize` writes them."""
        super().prepare_update(new, old)
        new["spec"] = old["spec"]


class NodeStrategy(Strategy):
    """A node may bring its status along when it registers."""

    types = schemas.NODE

    def __init__(self) -> None:
        super().__init__(has_status=True)

    def default(self, obj: Obj) -> None:
        """Write `spec`, and allocatable resources where only the capacity is given."""
        obj.setdefault("spec", {})
        status = obj.get("status")
        if status and "capacity" in status:
            status.setdefault("allocatable", dict(status["capacity"]))

    def prepare_create(self, obj: Obj) -> None:
        """Keep the status that a kubelet registers with."""
        obj.setdefault("status", {})


class ConfigMapStrategy(Strategy):
    """Configuration is text."""

    types = schemas.CONFIG_MAP

    def default(self, obj: Obj) -> None:
        """Drop empty parts."""
        for field in ("data", "binaryData"):
            if obj.get(field) == {}:
                del obj[field]


class SecretStrategy(Strategy):
    """Secrets take text in `stringData` and keep it as base64 in `data`."""

    types = schemas.SECRET

    def default(self, obj: Obj) -> None:
        """Write the type and move `stringData` over."""
        obj.setdefault("type", "Opaque")
        texts = obj.pop("stringData", None)
        if texts:
            data = obj["data"] = dict(obj.get("data") or {})
            for key, text in texts.items():
                data[key] = base64.b64encode(text.encode()).decode()
        for key, text in (obj.get("data") or {}).items():
            try:
                base64.b64decode(text or "", validate=True)
            except (ValueError, TypeError) as error:
                raise statuses.bad_request(
                    'Secret in version "v1" cannot be handled as a Secret: illegal base64 data '
                    f"in data[{key}]"
                ) from error


class EventStrategy(Strategy):
    """An event is in the namespace of its object."""

    types = schemas.EVENT

    def default(self, obj: Obj) -> None:
        """Write the fields that clients expect to be there."""
        for field in ("eventTime", "firstTimestamp", "lastTimestamp"):
            obj.setdefault(field, None)
        for field in ("reportingComponent", "reportingInstance"):
            obj.setdefault(field, "")

    def validate(self, obj: Obj, /) -> list[FieldError]:
        """Events of cluster-scoped objects are in namespace `default`."""
        involved = (obj.get("involvedObject") or {}).get("namespace", "")
        if involved in {obj["metadata"]["namespace"], ""}:
            return []
        why = "does not match event.namespace"
        return [field_invalid("involvedObject.namespace", involved, why)]


class PriorityClassStrategy(Strategy):
    """A priority class has a value and a policy."""

    types = schemas.PRIORITY_CLASS

    def __init__(self) -> None:
        super().__init__(has_generation=True)

    def default(self, obj: Obj) -> None:
        """Preempting is the default."""
        obj.setdefault("value", 0)
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def validate_update(self, new: Obj, old: Obj, /) -> list[FieldError]:
        """The value and the policy do not change."""
        return [
            FieldError(
                field,
                "Forbidden: may not be changed in an update.",
                "API-IMMUTABLE",
                "FieldValueForbidden",
            )
            for field in ("value", "preemptionPolicy")
            if new.get(field) != old.get(field)
        ]


class RuntimeClassStrategy(Strategy):
    """A runtime class names its handler."""

    types = schemas.RUNTIME_CLASS

    def validate(self, obj: Obj, /) -> list[FieldError]:
        """The handler is there."""
        return [] if obj.get("handler") else [field_required("handler")]


class ServiceStrategy(Strategy):
    """Services have an address unless they are headless or external."""

    types = schemas.SERVICE
    returns_deleted = True

    def __init__(self) -> None:
        super().__init__(has_status=True, name_problem=plain_label_problem)
        self._addresses = itertools.count(1)

    def default(self, obj: Obj) -> None:
        """Write the defaults that clients read back."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            if "port" in port:
                port.setdefault("targetPort", port["port"])
        if spec["type"] != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")

    def prepare_create(self, obj: Obj) -> None:
        """Give it an address."""
        obj["status"] = {"loadBalancer": {}}
        spec = obj["spec"]
        if spec["type"] == "ExternalName":
            return
        if not spec.get("clusterIP"):
            number = next(self._addresses)
            spec["clusterIP"] = f"10.96.{number // 256 % 256}.{number % 256}"
        spec["clusterIPs"] = [spec["clusterIP"]]
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """Keep the address where the update leaves it out."""
        super().prepare_update(new, old)
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if field in old["spec"] and not new["spec"].get(field):
                new["spec"][field] = old["spec"][field]

    def validate(self, obj: Obj, /) -> list[FieldError]:
        """A service with an address has ports with numbers."""
        spec = obj["spec"]
        errors = []
        ports = spec.get("ports") or []
        if not ports and spec.get("clusterIP") != "None" and spec["type"] != "ExternalName":
            errors.append(field_required("spec.ports"))
        if spec["type"] not in _SERVICE_TYPES:
            supported = ", ".join(f'"{each}"' for each in _SERVICE_TYPES)
            message = f'Unsupported value: "{spec["type"]}": supported values: {supported}'
            errors.append(
                FieldError("spec.type", message, "API-UNSUPPORTED", "FieldValueNotSupported")
            )
        for index, port in enumerate(ports):
            path = f"spec.ports[{index}]"
            number = port.get("port", 0)
            if not 0 < number < 65536:
                why = "must be between 1 and 65535, inclusive"
                errors.append(field_invalid(f"{path}.port", number, why))
            if len(ports) > 1 and not port.get("name"):
                errors.append(field_required(f"{path}.name"))
        return errors

    def validate_update(self, new: Obj, old: Obj, /) -> list[FieldError]:
        """The address does not change."""
        before, after = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
        if before and after and before != after:
            why = "may not change once set"
            return [field_invalid("spec.clusterIPs[0]", [after], why)]
        return []
