"""Writing what claims are to be bound to, and taking it back."""

from contextlib import suppress
from typing import TypeVar

import msgspec

from pumice.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, Kind
from pumice.api.meta import ObjectMeta, Raw
from pumice.api.volumes import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from pumice.cluster.errors import Conflict, NotFound
from pumice.scheduler.model.claim_choices import VolumeChoice
from pumice.scheduler.worker.context import TermContext

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)


class BindingError(Exception):
    """A claim cannot be bound as decided."""


class ClaimWriter:
    """Reserves volumes for claims, and selects nodes for those that volumes are provisioned for."""

    def __init__(self, context: TermContext) -> None:
        self._context = context

    async def write(self, key: str, choice: VolumeChoice, written: dict[str, str]) -> None:
        """Write what a claim is to be bound to.

        Args:
            key: `namespace/name` of the claim.
            choice: The choice.
            written: Gets the version of the object that was written; an empty one while the answer is not known.

        Raises:
            BindingError: An object is not as it was when it was chosen.
            ApiError: The API server refused the write.
        """
        claim, name = self._context.caches.claims.named(key), key.partition("/")[2]
        if claim is None:
            raise BindingError(f'persistentvolumeclaim "{name}" has been deleted')
        if claim.spec.volume_name:
            return
        context = self._context
        meta: Raw = {}
        if not choice.volume:
            written[key] = claim.metadata.resource_version
            if claim.selected_node == choice.node:
                return
            meta = {"annotations": {SELECTED_NODE: choice.node}}
            body: Raw = {"metadata": _at(claim.metadata) | meta}
            kind, target, namespace = PERSISTENT_VOLUME_CLAIM, name, claim.metadata.namespace
        else:
            volume = context.caches.volumes.get(choice.volume)
            if volume is None:
                raise BindingError(f'persistentvolume "{choice.volume}" has been deleted')
            written[key] = volume.metadata.resource_version
            owner = volume.spec.claim_ref
            if owner is not None and owner.uid and is_for(volume, claim):
                return
            if owner is not None and not is_for(volume, claim):
                raise BindingError(
                    f'persistentvolume "{choice.volume}" has been given to another claim'
                )
            if owner is None:
                meta = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
            reference = {
                "apiVersion": "v1",
                "kind": PERSISTENT_VOLUME_CLAIM.kind,
                "namespace": claim.metadata.namespace,
                "name": name,
                "uid": claim.metadata.uid,
            }
            body = {"metadata": _at(volume.metadata) | meta, "spec": {"claimRef": reference}}
            kind, target, namespace = PERSISTENT_VOLUME, choice.volume, ""
        written[key] = ""
        request = context.client.patch(kind, target, namespace or None, body, metadata_only=True)
        try:
            answer = await context.sent.send(request)
        except Conflict:
            del written[key]
            raise
        written[key] = str(answer["metadata"].get("resourceVersion", ""))
        context.metrics.writes.labels(kind.kind.lower(), "written").inc()

    async def take_back(self, key: str, choice: VolumeChoice, uid: str) -> None:
        """Take back what has been written for a claim, unless it is bound.

        Raises:
            ApiError: The API server refused a write; it is to be repeated.
        """
        namespace, _, name = key.partition("/")
        claim = await self._read(PERSISTENT_VOLUME_CLAIM, name, namespace, PersistentVolumeClaim)
        if choice.volume:
            volume = await self._read(PERSISTENT_VOLUME, choice.volume, None, PersistentVolume)
            if volume is not None and _is_only_reserved(volume, claim, uid):
                await self._patch(PERSISTENT_VOLUME, volume.metadata, _unreserved(volume))
        elif (
            claim is not None
            and claim.metadata.uid == uid
            and not claim.spec.volume_name
            and claim.selected_node == choice.node
        ):
            nothing: Raw = {"metadata": {"annotations": {SELECTED_NODE: None}}}
            await self._patch(PERSISTENT_VOLUME_CLAIM, claim.metadata, nothing)

    async def _read(self, kind: Kind, name: str, namespace: str | None, type_: type[T]) -> T | None:
        try:
            found = await self._context.client.get(kind, name, namespace)
        except NotFound:
            return None
        return msgspec.convert(found, type_)

    async def _patch(self, kind: Kind, meta: ObjectMeta, body: Raw) -> None:
        body["metadata"] = _at(meta) | body.get("metadata", {})
        context = self._context
        request = context.client.patch(
            kind, meta.name, meta.namespace or None, body, metadata_only=True
        )
        with suppress(NotFound):
            await context.sent.send(request)
            context.metrics.writes.labels(kind.kind.lower(), "taken back").inc()


def _at(meta: ObjectMeta) -> Raw:
    """Metadata of a patch that is for an object as it was read only."""
    return {"uid": meta.uid, "resourceVersion": meta.resource_version}


def is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is reserved for a claim, or bound to it."""
    owner, meta = volume.spec.claim_ref, claim.metadata
    return (
        owner is not None
        and (owner.namespace, owner.name) == (meta.namespace, meta.name)
        and owner.uid in ("", meta.uid)
    )


def _is_only_reserved(
    volume: PersistentVolume, claim: PersistentVolumeClaim | None, uid: str
) -> bool:
    """Whether a volume is reserved for a claim and nothing has begun to bind the two.

    The controller of volumes marks the volume `Bound` before it writes the claim, so that a volume which is not may be taken
    back as it was read.
    """
    owner = volume.spec.claim_ref
    if owner is None or owner.uid != uid or volume.status.phase == "Bound":
        return False
    return claim is None or claim.spec.volume_name != volume.metadata.name


def _unreserved(volume: PersistentVolume) -> Raw:
    """A patch after which a volume is as before: free, or reserved by name by its creator."""
    if BOUND_BY_CONTROLLER in (volume.metadata.annotations or {}):
        return {
            "metadata": {"annotations": {BOUND_BY_CONTROLLER: None}},
            "spec": {"claimRef": None},
        }
    return {"spec": {"claimRef": {"uid": None}}}
