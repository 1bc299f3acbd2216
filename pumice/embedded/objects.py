"""Creating, reading and changing objects, with Kubernetes' order of steps.

A creation consists of pruning and defaulting, mutating admission, fields that the server sets, checks, validating
admission, and the write. A change has the same steps, with the old object as a further input. All steps are
synchronous, so that every request is atomic without a lock. Deletion is in `deletion`.
"""

from collections.abc import Callable

from pumice.api import kinds
from pumice.api.fields import FieldError
from pumice.embedded import statuses
from pumice.embedded.admission import AdmissionChain, AdmissionPlugin
from pumice.embedded.metadata import (
    Identities,
    check_shape,
    copy_server_fields,
    finalizer_errors,
    metadata_errors,
    wipe_server_fields,
)
from pumice.embedded.ownership import Ownership
from pumice.embedded.resources import Call
from pumice.embedded.storage import Obj, Storage, Version

_RESTORED = ("uid", "creationTimestamp")

Change = Callable[[Version], Obj]
"""Make the wanted object from a copy of the current one."""


class Objects:
    """Creates, reads and changes objects.

    Args:
        storage: Where they are kept.
        identities: Gives times, uids and names.
        admission: Whom to ask.
        plugins: Built-in admission, asked before the webhook.
        records: Whether `metadata.managedFields` begins with the creation of an object, as in Kubernetes.
    """

    def __init__(
        self,
        storage: Storage,
        identities: Identities,
        admission: AdmissionChain,
        plugins: tuple[AdmissionPlugin, ...] = (),
        *,
        records: bool = False,
    ) -> None:
        self.storage = storage
        self.identities = identities
        self.admission = admission
        self.ownership = Ownership(identities.now, creations=records)
        self._plugins = plugins

    def get(self, call: Call) -> Version:
        """The current state of an object.

        Raises:
            ApiStatusError: 404 when there is none.
        """
        version = self.storage.get(call.resource.key, call.namespace, call.name)
        if version is None:
            raise statuses.not_found(call.resource.kind, call.name)
        return version

    def create(self, call: Call, obj: Obj, managed: list[Obj] | None = None) -> Version:
        """Create an object; the object given is taken over. An apply gives the field ownership that it has made.

        Raises:
            ApiStatusError: 400, 403, 404 (its namespace), 409 or 422, or what admission answers.
        """
        strategy = call.resource.strategy
        self._address(call, obj)
        metadata = obj["metadata"]
        if metadata.get("resourceVersion"):
            message = "resourceVersion should not be set on objects to be created"
            raise statuses.ApiStatusError(500, "", message)
        metadata.pop("resourceVersion", None)
        call.name = call.name or metadata.get("name", "")
        wipe_server_fields(obj)
        self._decode(call, obj)
        if call.resource.warning:
            call.warnings.append(call.resource.warning)
        self.ownership.created(call, obj, managed)
        for plugin in self._plugins:
            plugin(call, obj)
        mutated = self.admission.mutate(call, "CREATE", obj, None)
        if mutated is not obj:
            obj = mutated
            strategy.decode(obj)
        self.identities.fill(obj)
        call.name = obj["metadata"].get("name", "")
        if not call.name:
            raise statuses.invalid(call.resource.kind, "", metadata_errors(call.resource, obj))
        if strategy.has_generation:
            obj["metadata"]["generation"] = 1
        strategy.prepare_create(obj)
        errors = metadata_errors(call.resource, obj) + strategy.validate(obj)
        if errors:
            raise statuses.invalid(call.resource.kind, call.name, errors)
        self.admission.validate(call, "CREATE", obj, None)
        if self.storage.get(call.resource.key, call.namespace, call.name) is not None:
            raise statuses.already_exists(call.resource.kind, call.name)
        return self._write(call, obj)

    def restore(self, call: Call, obj: Obj) -> Version:
        """Take over an object as it was in another cluster, with its uid, times and status; the object given is taken over.

        Admission is not asked: it was asked there. What exists under the name is replaced.

        Raises:
            ApiStatusError: 400 or 422.
        """
        self._address(call, obj)
        self._decode(call, obj)
        kept = {key: obj["metadata"][key] for key in _RESTORED if key in obj["metadata"]}
        self.identities.fill(obj)
        obj["metadata"] |= kept
        strategy = call.resource.strategy
        errors = metadata_errors(call.resource, obj) + strategy.validate(obj)
        if errors:
            raise statuses.invalid(call.resource.kind, call.name, errors)
        return self._write(call, obj)

    def update(self, call: Call, obj: Obj) -> Version:
        """Replace an object, or its status; the object given is taken over.

        Raises:
            ApiStatusError: 400, 404, 409 or 422, or what admission answers.
        """
        return self.change(call, lambda _: obj)

    def change(self, call: Call, change: Change, *, records: bool = True) -> Version:
        """Change an object by a function of its current state.

        Args:
            call: What is changed.
            change: Makes the wanted object; what it raises is passed on.
            records: Whether field ownership is updated here.

        Raises:
            ApiStatusError: 400, 404, 409 or 422, or what admission answers.
        """
        current = self.get(call)
        old = current.obj
        obj = change(current)
        self._address(call, obj)
        _check_name(call, obj)
        self._decode(call, obj)
        self._check_versions(call, obj, old)
        copy_server_fields(obj, old)
        if records:
            self.ownership.changed(call, obj, old)
        mutated = self.admission.mutate(call, "UPDATE", obj, old)
        if mutated is not obj:
            obj = mutated
            call.resource.strategy.decode(obj)
        new = self._prepared(call, obj, old)
        errors = self._errors(call, new, old)
        if errors:
            raise statuses.invalid(call.resource.kind, call.name, errors)
        self.admission.validate(call, "UPDATE", new, old)
        if new == old:
            return current
        if is_finished(new):
            return self.remove(call, new)
        return self._write(call, new)

    def remove(self, call: Call, last: Obj) -> Version:
        """Take an object out, showing `last` as its final state."""
        if call.dry_run:
            return Version(last, self.storage.revision)
        return self.storage.remove(call.resource.key, call.namespace, call.name, dict(last))

    def _write(self, call: Call, obj: Obj) -> Version:
        # Lists of built-in kinds leave these two out; standing first they are easily cut off.
        ordered = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **obj}
        if call.dry_run:
            return Version(ordered, self.storage.revision)
        return self.storage.put(call.resource.key, ordered)

    def _address(self, call: Call, obj: Obj) -> None:
        """Bring kind and namespace of a body in line with the path."""
        kind = call.resource.kind
        check_shape(obj, kind, strict=call.resource.strategy.custom)
        metadata = obj["metadata"]
        found = metadata.get("namespace")
        if kind.namespaced:
            if found and found != call.namespace:
                raise statuses.bad_request(
                    "the namespace of the provided object does not match the namespace sent on "
                    "the request"
                )
            metadata["namespace"] = call.namespace
        else:
            metadata.pop("namespace", None)

    def _decode(self, call: Call, obj: Obj) -> None:
        dropped = call.resource.strategy.decode(obj)
        if not dropped or call.validation == "Ignore":
            return
        texts = [f'unknown field "{path}"' for path in sorted(dropped, key=_metadata_first)]
        if call.validation == "Strict":
            kind = call.resource.kind
            raise statuses.bad_request(
                f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
                f"strict decoding error: {', '.join(texts)}"
            )
        call.warnings.extend(texts)

    def _check_versions(self, call: Call, obj: Obj, old: Obj) -> None:
        metadata, before = obj["metadata"], old["metadata"]
        kind = call.resource.kind
        uid = metadata.get("uid")
        if uid and uid != before["uid"]:
            raise statuses.conflict(
                kind,
                call.name,
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
                f"{before['uid']}",
            )
        revision = metadata.get("resourceVersion")
        if revision:
            if revision != before["resourceVersion"]:
                raise statuses.conflict(kind, call.name)
        elif not call.resource.strategy.unconditional_update:
            raise statuses.version_missing(kind, call.name)
        metadata["resourceVersion"] = before["resourceVersion"]

    def _prepared(self, call: Call, obj: Obj, old: Obj) -> Obj:
        """The object with what this request may not change taken from the old one."""
        strategy = call.resource.strategy
        copy_server_fields(obj, old)
        obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if call.subresource == "status":
            managed = obj["metadata"].get("managedFields")
            new = strategy.prepare_status(obj, old)
            new["metadata"] = {**new["metadata"]}
            if managed is not None:
                new["metadata"]["managedFields"] = managed
            return new
        if call.resource.kind != kinds.NAMESPACE or call.subresource != "finalize":
            strategy.prepare_update(obj, old)
        if strategy.wants_generation(obj, old):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        return obj

    def _errors(self, call: Call, new: Obj, old: Obj) -> list[FieldError]:
        strategy = call.resource.strategy
        return [
            *metadata_errors(call.resource, new),
            *finalizer_errors(new, old),
            *strategy.validate(new),
            *strategy.validate_update(new, old),
        ]


def _check_name(call: Call, obj: Obj) -> None:
    name = obj["metadata"].get("name")
    if not name:
        raise statuses.bad_request(
            f"the name of the object ({call.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != call.name:
        raise statuses.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({call.name})"
        )


def is_finished(obj: Obj) -> bool:
    """Whether a deleted object can be removed: no finalizer and no grace period is left."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if (obj.get("spec") or {}).get("finalizers") and obj.get("kind") == "Namespace":
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def _metadata_first(path: str) -> tuple[bool, str]:
    """Order in which unknown fields are named."""
    return (not path.startswith("metadata."), path)
