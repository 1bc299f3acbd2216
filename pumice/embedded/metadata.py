"""The parts of `metadata` that belong to the server, and the checks of the rest."""

import random
import uuid
from collections.abc import Callable
from functools import lru_cache

from msgspec.structs import replace

from pumice.api.fields import FieldError
from pumice.api.kinds import Kind
from pumice.api.meta import format_time
from pumice.api.names import RANDOM_LETTERS
from pumice.embedded import schemas, statuses
from pumice.embedded.naming import (
    label_key_problem,
    label_value_problem,
    plain_label_problem,
)
from pumice.embedded.resources import Resource
from pumice.embedded.storage import Obj
from pumice.embedded.strategies import field_invalid, field_required

_SERVER_FIELDS = ("uid", "creationTimestamp", "selfLink")
_KEPT_FIELDS = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)
_MAX_PREFIX = 58
_cached_key_problem = lru_cache(maxsize=4096)(label_key_problem)
_cached_value_problem = lru_cache(maxsize=4096)(label_value_problem)


class Identities:
    """Times, uids and generated names of one server."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._random = random.Random(0)  # the same in every run

    def now(self) -> str:
        """The moment as Kubernetes writes it."""
        return format_time(self.clock())

    def uid(self) -> str:
        """A new uid."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def name(self, prefix: str) -> str:
        """A new name for `generateName`: the prefix, cut where needed, and five letters."""
        suffix = "".join(self._random.choices(RANDOM_LETTERS, k=5))
        return prefix[:_MAX_PREFIX] + suffix

    def fill(self, obj: Obj) -> None:
        """Give a new object what only the server gives."""
        metadata = obj["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self.name(metadata["generateName"])
        metadata["uid"] = self.uid()
        metadata["creationTimestamp"] = self.now()


def check_shape(obj: Obj, kind: Kind, *, strict: bool) -> None:
    """Refuse a body that is not an object of this kind at all.

    Args:
        obj: The body; `apiVersion` and `kind` are filled in where they may be left out.
        kind: What it should be.
        strict: Whether `apiVersion` and `kind` must be given, as they must for a CRD's kinds.

    Raises:
        ApiStatusError: 400.
    """
    if not isinstance(obj, dict):
        raise statuses.bad_request(f"the body must be an object of kind {kind.kind}")
    if strict:
        for field in ("kind", "apiVersion"):
            if not obj.get(field):
                title = field[0].upper() + field[1:]
                raise statuses.bad_request(
                    f"the object provided is unrecognized (must be of type {kind.kind}): Object "
                    f"'{title}' is missing in the body"
                )
    for field, expected in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        found = obj.setdefault(field, expected)
        if found == expected:
            continue
        if strict:
            error = FieldError(field, f'Invalid value: "{found}": must be {expected}', "API-KIND")
            raise statuses.invalid(replace(kind, kind=str(obj["kind"])), "", [error])
        raise statuses.bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: the '
            f"{field} in the data ({found}) does not match the expected {field} ({expected})"
        )
    metadata = obj.get("metadata")
    if metadata is None:
        metadata = obj["metadata"] = {}
    schemas.check(schemas.METADATA, metadata, kind.kind, kind.version, "metadata")
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        if field in metadata and not metadata[field]:
            del metadata[field]


def wipe_server_fields(obj: Obj) -> None:
    """Drop from a new object what a client may not choose."""
    metadata = obj["metadata"]
    for field in (*_SERVER_FIELDS, "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        metadata.pop(field, None)


def copy_server_fields(new: Obj, old: Obj) -> None:
    """Restore in an update what a client may not change."""
    metadata, before = new["metadata"], old["metadata"]
    for field in _KEPT_FIELDS:
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)
    metadata.pop("selfLink", None)
    if "generateName" in before:
        metadata.setdefault("generateName", before["generateName"])


def metadata_errors(resource: Resource, obj: Obj) -> list[FieldError]:
    """Violations in names, labels, annotations and owners."""
    metadata = obj["metadata"]
    errors: list[FieldError] = []
    name = metadata.get("name")
    if not name:
        errors.append(field_required("metadata.name", "name or generateName is required"))
    elif problem := resource.strategy.name_problem(name):
        errors.append(field_invalid("metadata.name", name, problem))
    if resource.kind.namespaced:
        namespace = metadata.get("namespace")
        if not namespace:
            errors.append(field_required("metadata.namespace"))
        elif problem := plain_label_problem(namespace):
            errors.append(field_invalid("metadata.namespace", namespace, problem))
    for key, value in (metadata.get("labels") or {}).items():
        for text, problem in (
            (key, _cached_key_problem(key)),
            (value, _cached_value_problem(value)),
        ):
            if problem:
                errors.append(field_invalid("metadata.labels", text, problem))
    errors.extend(
        field_invalid("metadata.annotations", key, problem)
        for key in metadata.get("annotations") or {}
        if (problem := _cached_key_problem(key.lower()))
    )
    if not resource.kind.group:
        errors += _finalizer_name_errors(metadata.get("finalizers") or [])
    return errors + _owner_errors(metadata.get("ownerReferences") or [])


def _owner_errors(owners: list[Obj]) -> list[FieldError]:
    errors = []
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                what = "version must not be empty" if field == "apiVersion" else "must not be empty"
                errors.append(field_invalid(f"metadata.ownerReferences.{field}", "", what))
    controllers = [f"{each['kind']}/{each['name']}" for each in owners if each.get("controller")]
    if not errors and len(controllers) > 1:
        why = (
            'Only one reference can have Controller set to true. Found "true" in references '
            f"for {controllers[0]} and {controllers[1]}"
        )
        errors.append(field_invalid("metadata.ownerReferences", owners, why))
    return errors


def finalizer_errors(new: Obj, old: Obj) -> list[FieldError]:
    """A deleted object takes no new finalizers."""
    metadata, before = new["metadata"], old["metadata"]
    if not before.get("deletionTimestamp"):
        return []
    known = before.get("finalizers") or []
    added = [each for each in metadata.get("finalizers") or [] if each not in known]
    if not added:
        return []
    shown = ", ".join(f'"{each}"' for each in added)
    message = (
        "Forbidden: no new finalizers can be added if the object is being deleted, found new "
        f"finalizers []string{{{shown}}}"
    )
    return [FieldError("metadata.finalizers", message, "API-FORBIDDEN", "FieldValueForbidden")]


_STANDARD_FINALIZERS = frozenset({"foregroundDeletion", "kubernetes", "orphan"})


def _finalizer_name_errors(finalizers: list[str]) -> list[FieldError]:
    why = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        field_invalid(f"metadata.finalizers[{index}]", finalizer, why)
        for index, finalizer in enumerate(finalizers)
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS
    ]
