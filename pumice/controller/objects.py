"""Objects that a Job's plugins and volumes want: Services, ConfigMaps, Secrets, claims.

Each pass keeps them up to date while the Job runs. They are kept in restarts and removed when the Job has ended. An
object of the same name with another owner is never changed or removed; the Job waits and reports the conflict.

Secrets with key pairs are created once and keep their keys as long as pods may use them. A Secret that is missing is created
with a new pair; of an existing one only other fields are updated. A Secret without usable keys is replaced after all pods
that may have mounted it are gone.

The controller changes and removes what its Job controls, and nothing else. A name does not prove ownership: a user, another
controller or an earlier Job of the same name may have created an object with it. The uid in the controller's owner reference
does.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from pumice.api import keys
from pumice.api.kinds import CONFIG_MAP, JOB, PERSISTENT_VOLUME_CLAIM, SECRET, Kind, of_object
from pumice.api.meta import ObjectMeta, Raw, controller_of
from pumice.controller.plan import CreateObject, DeleteObject, UpdateObject, difference
from pumice.plugins import KeySecret, shards


def controller_reference(job: ObjectMeta, kind: Kind = JOB) -> Raw:
    """The owner reference of a Job's object, so that the object is collected with the Job."""
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


MADE_LATER = "<made by the controller>"
"""Placeholder for a key that has not been created."""

_WHOLE = ("data", "binaryData", "stringData")
_SECTIONS = ("spec", *_WHOLE)


class UnknownKindError(ValueError):
    """The controller cannot write objects of this kind; the message names it."""


@dataclass(frozen=True, slots=True)
class NameConflict:
    """A name that the Job needs and that an object with another owner has.

    Attributes:
        kind: Kind of the object.
        name: Its name.
        owner: Who controls it.
    """

    kind: str
    name: str
    owner: str

    @property
    def message(self) -> str:
        """The problem and how to fix it."""
        return (
            f"{self.kind} {self.name} exists and does not belong to this Job"
            f" (it is controlled by {self.owner}); delete it or give the Job another name"
        )


class Settled(msgspec.Struct, frozen=True):
    """Writes that bring objects to their wanted state.

    Attributes:
        creates: Objects that are missing.
        updates: Objects that differ.
        conflicts: Names that objects of other owners have.
    """

    creates: tuple[CreateObject, ...]
    updates: tuple[UpdateObject, ...]
    conflicts: tuple[NameConflict, ...]


def owned(job: ObjectMeta, manifests: Iterable[Raw], kind: Kind = JOB) -> list[Raw]:
    """Manifests with the Job's owner reference and with its name in a label.

    Args:
        job: The owner's metadata.
        manifests: The objects.
        kind: The owner's kind; objects of other owners than Volcano Jobs do not get the label.

    Raises:
        UnknownKindError: One is of a kind that Pumice does not know.
    """
    return [_owned(job, manifest, kind) for manifest in manifests]


def _owned(job: ObjectMeta, manifest: Raw, kind: Kind) -> Raw:
    manifest = _as_stored(manifest, _kind(manifest))
    meta = manifest.get("metadata") or {}
    labels = {keys.JOB_NAME: job.name, keys.JOB_NAMESPACE: job.namespace}
    if kind != JOB:
        labels = {keys.WIRED_FOR: kind.kind}
    return {
        **manifest,
        "metadata": {
            **meta,
            "namespace": job.namespace,
            "labels": {**(meta.get("labels") or {}), **labels},
            "ownerReferences": [controller_reference(job, kind)],
        },
    }


def settle(job: ObjectMeta, wanted: Sequence[Raw], present: Iterable[Raw]) -> Settled:
    """Compare wanted with present objects.

    Args:
        job: The Job's metadata.
        wanted: Manifests as `owned` returns them, of kinds that Pumice knows.
        present: Objects of the Job's namespace, of any owner.
    """
    found = _by_identity(present)
    creates: list[CreateObject] = []
    updates: list[UpdateObject] = []
    conflicts: list[NameConflict] = []
    for manifest in wanted:
        kind, name = _identity(manifest)
        stored = found.get((kind, name))
        if stored is None:
            creates.append(CreateObject(kind, manifest))
        elif not controls_raw(job, stored):
            conflicts.append(NameConflict(kind.kind, name, described(stored)))
        elif patch := _patch(kind, stored, manifest):
            updates.append(UpdateObject(kind, job.namespace, name, patch))
    return Settled(tuple(creates), tuple(updates), tuple(conflicts))


def remove(job: ObjectMeta, wanted: Sequence[Raw], present: Iterable[Raw]) -> list[DeleteObject]:
    """Delete those wanted objects that exist and belong to the Job; claims keep their data."""
    found = _by_identity(present)
    kept = (_identity(each) for each in wanted)
    there = (found[each] for each in kept if each in found and each[0] != PERSISTENT_VOLUME_CLAIM)
    return [*_deletes(job, there), *spare(job, wanted, present)]


def spare(job: ObjectMeta, wanted: Sequence[Raw], present: Iterable[Raw]) -> list[DeleteObject]:
    """Delete those of the Job's ConfigMaps with parts of files that are no longer needed.

    A Job that shrinks needs fewer of them; the others would hold outdated content.
    """
    names = {name for kind, name in map(_identity, wanted) if kind == CONFIG_MAP}
    return _deletes(
        job,
        (
            each
            for each in present
            if each.get("kind") == CONFIG_MAP.kind
            and (name := each["metadata"]["name"]) not in names
            and shards.first_of(name) in names
        ),
    )


def _deletes(job: ObjectMeta, present: Iterable[Raw]) -> list[DeleteObject]:
    """Delete the given objects that belong to the Job and are not being deleted."""
    return [
        DeleteObject(_kind(each), job.namespace, meta["name"], meta.get("uid", ""))
        for each in present
        if controls_raw(job, each) and not (meta := each["metadata"]).get("deletionTimestamp")
    ]


def _patch(kind: Kind, stored: Raw, manifest: Raw) -> Raw:
    meta = stored["metadata"]
    if kind == PERSISTENT_VOLUME_CLAIM or meta.get("deletionTimestamp"):
        return {}
    target = {key: manifest[key] for key in _SECTIONS if key in manifest}
    target["metadata"] = {
        key: manifest["metadata"][key]
        for key in ("labels", "annotations")
        if key in manifest["metadata"]
    }
    patch = difference(stored, target, _WHOLE)
    if patch:
        guard = {key: meta.get(key) for key in ("uid", "resourceVersion")}
        patch["metadata"] = patch.get("metadata", {}) | guard
    return patch


def _as_stored(manifest: Raw, kind: Kind) -> Raw:
    """The manifest as the API server will store it: texts of a Secret are encoded."""
    texts = manifest.get("stringData") if kind == SECRET else None
    if not texts:
        return manifest
    data = encoded(texts.items())
    rest = {key: value for key, value in manifest.items() if key != "stringData"}
    return {**rest, "data": {**(manifest.get("data") or {}), **data}}


def _by_identity(objects: Iterable[Raw]) -> dict[tuple[Kind, str], Raw]:
    return {_identity(each): each for each in objects}


def _identity(manifest: Raw) -> tuple[Kind, str]:
    return _kind(manifest), manifest["metadata"]["name"]


def _kind(manifest: Raw) -> Kind:
    if refers_to(manifest, PERSISTENT_VOLUME_CLAIM):
        return PERSISTENT_VOLUME_CLAIM
    kind = of_object(manifest)
    if kind is None:
        raise UnknownKindError(
            f"a plugin wants a {manifest.get('apiVersion')} {manifest.get('kind')},"
            " which is no kind that Pumice knows"
        )
    return kind


def encoded(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Texts as `data` of a Secret holds them."""
    return {key: base64.b64encode(text.encode()).decode() for key, text in texts}


def secret_manifests(job: ObjectMeta, secrets: Iterable[KeySecret], kind: Kind = JOB) -> list[Raw]:
    """The Secrets as the Job's own, without their keys."""
    return owned(job, [_manifest(secret) for secret in secrets], kind)


def with_placeholders(manifest: Raw, secret: KeySecret) -> Raw:
    """The Secret with a placeholder for each key, for uses without a key pair."""
    names = (secret.private_key, *secret.public_keys)
    later = encoded((name, MADE_LATER) for name in names)
    return manifest | {"data": later | manifest["data"]}


def settle_keys(
    job: ObjectMeta,
    secrets: Sequence[KeySecret],
    present: Sequence[Raw],
    *,
    pods: bool,
    kind: Kind = JOB,
) -> tuple[Settled, list[DeleteObject]]:
    """Compare the wanted Secrets with the present ones.

    Args:
        job: The Job's metadata.
        secrets: The wanted Secrets.
        present: Objects of the Job's namespace, of any owner.
        pods: Whether the Job has pods, which may hold the keys.
        kind: The Job's kind.

    Returns:
        The differences, and Secrets without usable keys that must be created again.
    """
    creates: list[CreateObject] = []
    conflicts: list[NameConflict] = []
    updates: list[UpdateObject] = []
    deletes: list[DeleteObject] = []
    found = {each["metadata"]["name"]: each for each in present if each.get("kind") == SECRET.kind}
    for secret, manifest in zip(secrets, secret_manifests(job, secrets, kind), strict=True):
        stored = found.get(secret.name)
        keys: dict[str, str] = {}
        if stored is not None and controls_raw(job, stored):
            data = stored.get("data") or {}
            names = (secret.private_key, *secret.public_keys)
            keys = {name: data[name] for name in names if name in data}
            if not pods and not all(_readable(keys.get(name)) for name in names):
                meta = stored["metadata"]
                if not meta.get("deletionTimestamp"):
                    uid = meta.get("uid", "")
                    deletes.append(DeleteObject(SECRET, job.namespace, secret.name, uid))
                continue
        wanted = [manifest | {"data": keys | manifest["data"]}]
        settled = settle(job, wanted, () if stored is None else (stored,))
        creates += [CreateObject(SECRET, each.manifest, secret) for each in settled.creates]
        updates += settled.updates
        conflicts += settled.conflicts
    return Settled(tuple(creates), tuple(updates), tuple(conflicts)), deletes


def _manifest(secret: KeySecret) -> Raw:
    return {
        **SECRET.type_meta,
        "metadata": {"name": secret.name, "namespace": secret.namespace},
        "data": encoded(secret.texts.items()),
    }


def _readable(value: object) -> bool:
    """True if a key has a value in valid base64."""
    if not isinstance(value, str) or not value:
        return False
    try:
        return bool(base64.b64decode(value, validate=True))
    except binascii.Error:
        return False
