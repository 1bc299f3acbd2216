"""Admission by a function of this process, in the order and with the messages of a real API server.

The webhook's own review function is called with the review that kube-apiserver would have sent and
its answer is treated as kube-apiserver treats it, so that what is admitted here is admitted there.

The parts of Kubernetes' own admission that change objects are here, too.
"""

import base64
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import jsonpatch
import msgspec

from pumice.api import kinds
from pumice.api.kinds import Kind
from pumice.api.reviews import API_VERSION
from pumice.api.runtime_classes import RuntimeClass, admit
from pumice.embedded import statuses
from pumice.embedded.metadata import Identities
from pumice.embedded.resources import DEFAULT_USER, Call
from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.storage import Obj, Storage

Operation = Literal["CREATE", "UPDATE", "DELETE"]


class EndpointRegistration(Protocol):
    """One endpoint of the webhook and what it wants to be asked about."""

    @property
    def path(self) -> str:
        """Path of the endpoint."""

    @property
    def name(self) -> str:
        """Name of the webhook, as denials give it."""

    @property
    def mutating(self) -> bool:
        """Whether it changes objects."""

    @property
    def kind(self) -> Kind:
        """Kind of the objects."""

    @property
    def operations(self) -> tuple[str, ...]:
        """Operations: `CREATE`, `UPDATE`, `DELETE`."""


class EmbeddedAdmission(Protocol):
    """The webhook without its server."""

    def review(self, path: str, body: bytes) -> bytes:
        """Answer an AdmissionReview, both as JSON."""


_EXEMPT = "kube-system"
"""Namespace whose objects no webhook is asked about."""


class AdmissionChain:
    """Asks the registered endpoints about a request.

    Args:
        admission: Who answers; None admits everything.
        registrations: Which endpoints are asked about what, in the order of asking.
        identities: Makes the uid of a review.
    """

    def __init__(
        self,
        admission: EmbeddedAdmission | None,
        registrations: Sequence[EndpointRegistration],
        identities: Identities,
    ) -> None:
        self._admission = admission
        self._registrations = tuple(registrations) if admission is not None else ()
        self._identities = identities

    def mutate(self, call: Call, operation: Operation, obj: Obj, old: Obj | None) -> Obj:
        """Ask the mutating endpoints one after the other.

        Returns:
            The object as they want it; the one given when none changes it.

        Raises:
            ApiStatusError: When one denies the request or returns an invalid answer.
        """
        for registration in self._wanted(call, operation, mutating=True):
            response = self._ask(registration, call, operation, obj, old)
            if response.get("patch"):
                obj = _patched(registration, response, obj)
        return obj

    def validate(self, call: Call, operation: Operation, obj: Obj | None, old: Obj | None) -> None:
        """Ask the validating endpoints.

        Raises:
            ApiStatusError: When one denies the request or returns an invalid answer.
        """
        for registration in self._wanted(call, operation, mutating=False):
            self._ask(registration, call, operation, obj, old)

    def _wanted(
        self, call: Call, operation: Operation, *, mutating: bool
    ) -> list[EndpointRegistration]:
        if not self._registrations or call.subresource or not call.admit:
            return []
        kind = call.resource.kind
        if kind.namespaced and call.namespace == _EXEMPT:
            return []
        return [
            each
            for each in self._registrations
            if each.mutating is mutating
            and operation in each.operations
            and (each.kind.group, each.kind.plural) == (kind.group, kind.plural)
        ]

    def _ask(
        self,
        registration: EndpointRegistration,
        call: Call,
        operation: Operation,
        obj: Obj | None,
        old: Obj | None,
    ) -> dict[str, Any]:
        assert self._admission is not None
        uid = self._identities.uid()
        body = msgspec.json.encode(_review(uid, call, operation, obj, old))
        name = registration.name
        try:
            answer = msgspec.json.decode(self._admission.review(registration.path, body))
            response: dict[str, Any] = answer["response"]
            if response["uid"] != uid:
                raise ValueError(f"expected response.uid={uid!r}, got {response['uid']!r}")
        except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
            raise statuses.internal(f'failed calling webhook "{name}": {error}') from error
        call.warnings.extend(response.get("warnings") or ())
        if not response["allowed"]:
            raise _denial(name, response.get("status") or {})
        return response


def _review(
    uid: str, call: Call, operation: Operation, obj: Obj | None, old: Obj | None
) -> dict[str, Any]:
    kind = call.resource.kind
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    gvr = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    request: dict[str, Any] = {
        "uid": uid,
        "kind": gvk,
        "resource": gvr,
        "requestKind": gvk,
        "requestResource": gvr,
        "name": call.name,
        "operation": operation,
        "userInfo": {
            "username": DEFAULT_USER,
            "groups": ["system:masters", "system:authenticated"],
        },
        "object": obj,
        "oldObject": old,
        "dryRun": call.dry_run,
        "options": {"kind": f"{operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"},
    }
    if call.namespace:
        request["namespace"] = call.namespace
    return {"kind": "AdmissionReview", "apiVersion": API_VERSION, "request": request}


def _patched(registration: EndpointRegistration, response: dict[str, Any], obj: Obj) -> Obj:
    try:
        operations = msgspec.json.decode(base64.b64decode(response["patch"]))
        patched: Obj = jsonpatch.JsonPatch(operations).apply(obj)
    except (ValueError, TypeError, jsonpatch.JsonPatchException, LookupError) as error:
        name = registration.name
        raise statuses.internal(f'webhook "{name}" sent a patch that fails: {error}') from error
    return patched


def _denial(name: str, status: dict[str, Any]) -> ApiStatusError:
    """What kube-apiserver makes of a denial: the webhook's status, with who denied put in front."""
    denied_by = f'admission webhook "{name}" denied the request'
    why = status.get("message") or status.get("reason")
    message = f"{denied_by}: {why}" if why else f"{denied_by} without explanation"
    code = status.get("code") or 0
    return ApiStatusError(
        code if code >= 400 else 400, status.get("reason") or "", message, status.get("details")
    )


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
