"""Secrets with key pairs. They are created once and keep their keys as long as pods may use them.

A Secret that is missing is created with a new pair; an existing one keeps its keys, and only other fields are updated.
A Secret without usable keys is replaced after all pods that may have mounted it are gone.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence

from pumice.api.kinds import JOB, SECRET, Kind
from pumice.api.meta import ObjectMeta, Raw
from pumice.controller.objects import NameConflict, Settled, owned, settle
from pumice.controller.owners import controls_raw
from pumice.controller.plan import CreateObject, DeleteObject, UpdateObject
from pumice.plugins import KeySecret

__all__ = ["MADE_LATER", "encoded", "manifests", "settle_keys", "with_placeholders"]

MADE_LATER = "<made by the controller>"
"""Placeholder for a key that has not been created."""


def encoded(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Texts as `data` of a Secret holds them."""
    return {key: base64.b64encode(text.encode()).decode() for key, text in texts}


def manifests(job: ObjectMeta, secrets: Iterable[KeySecret], kind: Kind = JOB) -> list[Raw]:
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
    for secret, manifest in zip(secrets, manifests(job, secrets, kind), strict=True):
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
