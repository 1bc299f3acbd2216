"""Ownership of objects.

The controller changes and removes what its Job controls, and nothing else. A name does not prove ownership: a user,
another controller or an earlier Job of the same name may have created an object with it. The uid in the controller's
owner reference does.
"""

from typing import Any

from pumice.api.kinds import JOB, Kind
from pumice.api.meta import ObjectMeta, Raw, controller_of

__all__ = [
    "controller_key",
    "controller_raw",
    "controller_reference",
    "controls",
    "controls_raw",
    "described",
    "refers_to",
]


def controller_reference(job: ObjectMeta, kind: Kind = JOB) -> Raw:
    """The owner reference of a Job's object, so that the object is collected with the Job.

    Args:
        job: The owner's metadata.
        kind: The owner's kind.
    """
    return {
        **kind.type_meta,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def refers_to(reference: Raw, kind: Kind) -> bool:
    """True if an owner reference names an object of a kind, or an object is of it."""
    return (reference.get("apiVersion"), reference.get("kind")) == (kind.api_version, kind.kind)


def controls(job: ObjectMeta, meta: ObjectMeta) -> bool:
    """Whether this very Job (by uid) controls an object."""
    owner = controller_of(meta)
    return owner is not None and bool(owner.uid) and owner.uid == job.uid


def controls_raw(job: ObjectMeta, obj: Raw) -> bool:
    """`controls` for an object as raw JSON."""
    return bool(job.uid) and controller_raw(obj).get("uid") == job.uid


def described(obj: Raw) -> str:
    """The controller of an object as text for a message: `Deployment web`, or `no controller`."""
    owner = controller_raw(obj)
    return f"{owner.get('kind')} {owner.get('name')}" if owner else "no controller"


def controller_raw(obj: Raw) -> dict[str, Any]:
    """The owner reference of an object's controller; empty if it has none."""
    for owner in (obj.get("metadata") or {}).get("ownerReferences") or ():
        if isinstance(owner, dict) and owner.get("controller"):
            return owner
    return {}


def controller_key(obj: Raw, kind: Kind | None = None) -> list[tuple[str, str]]:
    """Namespace and uid of an object's controller, for an index; empty if it has none of the kind.

    Owner references are valid only within a namespace: users of another one could write one with the same uid.
    """
    owner = controller_raw(obj)
    if not owner or (kind is not None and not refers_to(owner, kind)):
        return []
    return [(obj["metadata"].get("namespace", ""), owner.get("uid", ""))]
