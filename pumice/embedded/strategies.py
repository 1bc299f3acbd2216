"""Processing of new and changed objects: defaults, fields that clients may not set, checks.

`Strategy` is what all kinds share; a kind with rules of its own overrides what differs. Objects are
edited in place here: they are private copies until they are stored.
"""

import json
from collections.abc import Callable

from pumice.api.fields import FieldError
from pumice.embedded import schemas
from pumice.embedded.naming import object_name_problem
from pumice.embedded.storage import Obj

NameCheck = Callable[[str], str | None]


def field_required(path: str, why: str = "") -> FieldError:
    """An error for a missing field, worded as Kubernetes does."""
    message = f"Required value: {why}" if why else "Required value"
    return FieldError(path, message, "API-REQUIRED", "FieldValueRequired")


def field_invalid(path: str, value: object, why: str) -> FieldError:
    """An error for a bad value, worded as Kubernetes does."""
    shown = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return FieldError(path, f"Invalid value: {shown}: {why}", "API-INVALID", "FieldValueInvalid")


class Strategy:
    """A kind without rules of its own.

    Attributes:
        types: Schema of what is read of it.
        custom: Whether a CRD defines the kind.
        has_status: Whether `status` is written through its subresource only.
        has_generation: Whether `metadata.generation` counts changes of what is wanted.
        unconditional_update: Whether an update may leave `resourceVersion` out.
        graceful: Whether a deleted object has a grace period.
        returns_deleted: Whether a deletion answers with the object instead of a Status.
    """

    types = schemas.PLAIN
    custom = False
    returns_deleted = False
    graceful = False

    def __init__(
        self,
        *,
        has_status: bool = False,
        has_generation: bool = False,
        unconditional_update: bool = True,
        name_problem: NameCheck = object_name_problem,
    ) -> None:
        self.has_status = has_status
        self.has_generation = has_generation
        self.unconditional_update = unconditional_update
        self.name_problem = name_problem

    def decode(self, obj: Obj) -> list[str]:
        """Drop what the kind does not have and write defaults.

        Returns:
            Paths of the fields dropped.

        Raises:
            ApiStatusError: 400 for what cannot be read.
        """
        schemas.check(self.types, obj, obj["kind"], obj["apiVersion"].rpartition("/")[2])
        self.default(obj)
        return []

    def default(self, obj: Obj) -> None:
        """Write defaults."""

    def prepare_create(self, obj: Obj) -> None:
        """Undo what a client may not set on a new object."""
        if self.has_status:
            obj.pop("status", None)

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """Undo what a client may not change through the object itself."""
        if self.has_status:
            _copy_field("status", old, new)

    def prepare_status(self, new: Obj, old: Obj) -> Obj:
        """What a write to `/status` makes of the object: all of the old one but its status."""
        metadata = dict(old["metadata"])
        for field in ("labels", "annotations"):
            if field in new["metadata"]:
                metadata[field] = new["metadata"][field]
            else:
                metadata.pop(field, None)
        result = {**old, "metadata": metadata}
        _copy_field("status", new, result)
        return result

    def wants_generation(self, new: Obj, old: Obj) -> bool:
        """Whether the change from `old` to `new` is one of what is wanted."""
        return self.has_generation and new.get("spec") != old.get("spec")

    def validate(self, _obj: Obj, /) -> list[FieldError]:
        """All violations of an object that is otherwise well-formed."""
        return []

    def validate_update(self, _new: Obj, _old: Obj, /) -> list[FieldError]:
        """All violations that lie in the change."""
        return []

    def grace(self, _obj: Obj, /) -> int:
        """Seconds for which a deleted object stays: its grace period."""
        return 0


def _copy_field(field: str, source: Obj, target: Obj) -> None:
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)
