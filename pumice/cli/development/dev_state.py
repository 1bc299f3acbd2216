"""Initial objects of `pumice dev`, and its log about Jobs and pods."""

from collections.abc import Iterable
from typing import Any

import structlog

from pumice.api import kinds
from pumice.api.kinds import Kind
from pumice.cli.exits import UserError
from pumice.cli.files.manifests import Manifest
from pumice.cli.output import note
from pumice.embedded import ApiStatusError, EmbeddedCluster
from pumice.embedded.storage import StoredWrite

_FIRST = ("Namespace", "CustomResourceDefinition", "PriorityClass", "Queue", "StorageClass", "Node")
"""Kinds to which others refer, in the order in which they are added."""
_LAST = ("PodGroup", "Pod")
_SHOWN: dict[tuple[str, str], Kind] = {
    (kind.group, kind.plural): kind
    for kind in (kinds.JOB, kinds.POD_GROUP, kinds.POD, kinds.INDEXED_JOB, kinds.REPLICA_SET)
}

_log = structlog.get_logger(__name__)


def load(cluster: EmbeddedCluster, manifests: Iterable[Manifest]) -> None:
    """Add objects to a cluster, before any component sees one of them.

    An object with a uid comes from another cluster and is stored unchanged. Other objects are created through
    admission. Kinds that the server does not have are left out with a note.

    Raises:
        UserError: An object is refused; each one is named.
    """
    refused = []
    for manifest in sorted(manifests, key=_order):
        obj = manifest.object
        try:
            call = cluster.store.call_of(obj, named=True)
        except ApiStatusError as error:
            note(f"{manifest.source}: {manifest.identity} is left out: {error.message}")
            continue
        if call.resource.kind == kinds.CRD and cluster.store.get(kinds.CRD, manifest.name):
            continue
        try:
            cluster.add_object(obj)
        except ApiStatusError as error:
            what = f"{manifest.source}: {manifest.identity}"
            refused += [f"{what}: {each.strip()}" for each in error.message.splitlines()]
    if refused:
        raise UserError("objects are refused", *refused)


def _order(manifest: Manifest) -> int:
    kind = manifest.object.get("kind", "")
    if kind in _FIRST:
        return _FIRST.index(kind)
    return len(_FIRST) + (1 + _LAST.index(kind) if kind in _LAST else 0)


def log_life(change: StoredWrite) -> None:
    """Log a change of phase or node of a Job, its PodGroup or its pods, in one line."""
    kind = _SHOWN.get(change.resource)
    if kind is None:
        return
    name = "/".join(change.key)
    if change.type == "DELETED":
        _log.info(f"{kind.kind} {name} is deleted")
        return
    before = _stage(change.old.obj) if change.old else {}
    now = _stage(change.new.obj)
    changed = {key: value for key, value in now.items() if before.get(key) != value}
    if change.old is None:
        _log.info(f"{kind.kind} {name} is created", **changed)
    elif changed:
        _log.info(f"{kind.kind} {name}", **changed)


def _stage(obj: dict[str, Any]) -> dict[str, Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    stage = {
        "node": spec.get("nodeName"),
        "phase": status.get("phase") or (status.get("state") or {}).get("phase"),
        "deleted": "in grace period" if obj["metadata"].get("deletionTimestamp") else None,
    }
    return {key: value for key, value in stage.items() if value}
