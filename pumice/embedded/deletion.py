"""Deletion: preconditions, grace, propagation, finalizers.

An object without finalizers and grace period is removed immediately. Otherwise it gets a `deletionTimestamp` and stays
until its finalizers are removed and, for a pod on a node, until the node has stopped it.
"""

from dataclasses import dataclass
from typing import Any

from pumice.api import kinds
from pumice.api.fields import FieldError
from pumice.api.meta import format_time, parse_time
from pumice.embedded import statuses
from pumice.embedded.objects import Objects, is_finished
from pumice.embedded.resources import Call
from pumice.embedded.storage import Obj, Version

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_PROPAGATION = {"Foreground": FOREGROUND, "Orphan": ORPHAN, "Background": None}


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of a delete request.

    Attributes:
        propagation: `Foreground`, `Background`, `Orphan`, or empty for the default (background,
            unless a finalizer says otherwise).
        uid: Delete only the object with this uid.
        resource_version: Delete only this version.
        grace: Grace period in seconds; None for the default of the kind.
    """

    propagation: str = ""
    uid: str = ""
    resource_version: str = ""
    grace: int | None = None

    @classmethod
    def read(cls, body: Obj, query: Any) -> "DeleteOptions":
        """Read the options from the body, or from the query where the body leaves them out.

        Raises:
            ApiStatusError: 400 or 422 for values that do not exist.
        """
        conditions = body.get("preconditions") or {}
        orphans = body.get("orphanDependents", query.get("orphanDependents"))
        propagation = body.get("propagationPolicy") or query.get("propagationPolicy") or ""
        if not propagation and orphans is not None:
            propagation = "Orphan" if str(orphans).lower() == "true" else "Background"
        if propagation and propagation not in _PROPAGATION:
            message = (
                f'Unsupported value: "{propagation}": supported values: "Foreground", '
                '"Background", "Orphan", "nil"'
            )
            error = FieldError("propagationPolicy", message, "API-ENUM", "FieldValueNotSupported")
            raise statuses.invalid_options("DeleteOptions", error)
        grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
        try:
            seconds = None if grace is None else int(grace)
        except (TypeError, ValueError) as error:
            raise statuses.bad_request(f"invalid gracePeriodSeconds: {grace!r}") from error
        return cls(
            propagation=propagation,
            uid=conditions.get("uid") or "",
            resource_version=conditions.get("resourceVersion") or "",
            grace=seconds,
        )


@dataclass(frozen=True, slots=True)
class Deleted:
    """How a deletion ended.

    Attributes:
        version: The object as it is, or was last.
        gone: Whether it has been removed.
    """

    version: Version
    gone: bool


def delete(objects: Objects, call: Call, options: DeleteOptions) -> Deleted:
    """Delete an object, or mark it as deleted while finalizers or a grace period hold it.

    Raises:
        ApiStatusError: 404, 409 for preconditions, or what admission answers.
    """
    current = objects.get(call)
    old = current.obj
    _check(call, old, options)
    objects.admission.validate(call, "DELETE", None, old)
    obj = _marked(call, old, options, objects.identities.clock())
    if is_finished(obj):
        # Only kinds that are wound up show the mark in their last state.
        last = obj if call.resource.strategy.graceful else old
        return Deleted(objects.remove(call, last), gone=True)
    if obj == old:
        return Deleted(current, gone=False)
    if call.dry_run:
        return Deleted(Version(obj, current.revision), gone=False)
    return Deleted(objects.storage.put(call.resource.key, obj), gone=False)


def _check(call: Call, old: Obj, options: DeleteOptions) -> None:
    metadata, kind = old["metadata"], call.resource.kind
    for title, wanted, found, reason in (
        (
            "UID",
            options.uid,
            metadata["uid"],
            "The object might have been deleted and then recreated",
        ),
        (
            "ResourceVersion",
            options.resource_version,
            metadata["resourceVersion"],
            "The object might have been modified",
        ),
    ):
        if wanted and wanted != found:
            why = (
                f"the {title} in the precondition ({wanted}) does not match the {title} in "
                f"record ({found}). {reason}"
            )
            raise statuses.precondition_failed(kind, call.name, why)
    if kind == kinds.NAMESPACE and call.name in {"default", "kube-public", "kube-system"}:
        raise statuses.forbidden(kind, call.name, "this namespace may not be deleted")


def _marked(call: Call, old: Obj, options: DeleteOptions, now: float) -> Obj:
    """The object with deletion timestamp, grace period and finalizers."""
    metadata = dict(old["metadata"])
    strategy = call.resource.strategy
    grace = strategy.grace(old)
    if grace and options.grace is not None:
        grace = max(options.grace, 0)
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = format_time(now + grace)
        if call.resource.kind != kinds.NAMESPACE:
            metadata["deletionGracePeriodSeconds"] = grace
        if metadata.get("generation"):
            metadata["generation"] += 1
    elif options.grace is not None and grace < (
        before := metadata.get("deletionGracePeriodSeconds", 0)
    ):
        # A shorter grace period counts from the first request, but it does not end in the past.
        requested = (parse_time(metadata["deletionTimestamp"]) or 0.0) - before
        end = max(requested + grace, now)
        metadata["deletionTimestamp"] = format_time(end)
        metadata["deletionGracePeriodSeconds"] = grace
    finalizers = _finalizers(metadata.get("finalizers") or [], options.propagation)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    obj = {**old, "metadata": metadata}
    if call.resource.kind == kinds.NAMESPACE:
        obj["status"] = {**old.get("status", {}), "phase": "Terminating"}
    return obj


def _finalizers(current: list[str], propagation: str) -> list[str]:
    """The finalizers that a propagation policy wants; an unset policy leaves them alone."""
    if not propagation:
        return current
    rest = [each for each in current if each not in {FOREGROUND, ORPHAN}]
    wanted = _PROPAGATION[propagation]
    return [*rest, wanted] if wanted else rest
