"""Defaults of a PodGroup: its queue, its priority class, the mode of its topology.

The CRD writes `default` where no queue stands, before anybody is asked, so that an object alone cannot
tell whether its user chose that queue. Whoever applies a manifest leaves word of it, though: kubectl in
an annotation, server-side apply in the managed fields. Who says there that the queue is `default` is
believed; everybody else is taken to have chosen none.
"""

import msgspec

from pumice.api import keys
from pumice.api.jobs import NetworkTopology
from pumice.api.meta import ApiStruct
from pumice.api.podgroups import PodGroupSpec
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.drafts import DraftGroupMeta, DraftPodGroup

__all__ = ["pod_group_defaults"]

_HARD = "hard"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NO_SPEC = PodGroupSpec()


class _AppliedSpec(ApiStruct, frozen=True):
    queue: str | None = None


class _Applied(ApiStruct, frozen=True):
    """A manifest as kubectl keeps it."""

    spec: _AppliedSpec | None = None


class _OwnedSpec(msgspec.Struct, frozen=True):
    queue: dict[str, msgspec.Raw] | None = msgspec.field(default=None, name="f:queue")


class _Owned(msgspec.Struct, frozen=True):
    """Fields that somebody has applied."""

    spec: _OwnedSpec | None = msgspec.field(default=None, name="f:spec")


_applied = msgspec.json.Decoder(_Applied)
_owned = msgspec.json.Decoder(_Owned)


def pod_group_defaults(
    case: Case, group: DraftPodGroup, old: DraftPodGroup | None, namespace: str
) -> None:
    """Write defaults into the case's patch.

    An update gets a default again only if the stored object has it, so nobody is moved by being updated.

    Args:
        case: Where the patch goes.
        group: The PodGroup as it came.
        old: The PodGroup as it is stored, when it is an update.
        namespace: Its namespace, which may stand in the review only.
    """
    if group.spec is None:
        case.patch.missing("/spec")
    spec = group.spec or _NO_SPEC
    stored = None if old is None else old.spec or _NO_SPEC
    queue = _queue(case, group.metadata, spec, namespace)
    if queue != spec.queue and (stored is None or stored.queue == queue):
        case.patch.set("/spec/queue", queue)
    if not spec.priority_class_name and not case.settings.strict_upstream:
        default = case.view.default_priority_class()
        name = default.metadata.name if default is not None else ""
        if name and (stored is None or stored.priority_class_name == name):
            case.patch.set("/spec/priorityClassName", name)
    _mode(case, spec.network_topology, "/spec/networkTopology")
    for index, policy in enumerate(spec.sub_group_policy or ()):
        _mode(case, policy.network_topology, f"/spec/subGroupPolicy/{index}/networkTopology")


def _queue(case: Case, metadata: DraftGroupMeta, spec: PodGroupSpec, namespace: str) -> str:
    """The queue that a PodGroup belongs into."""
    if spec.queue not in ("", keys.DEFAULT_QUEUE):
        return spec.queue
    found = case.view.namespace(namespace)
    wanted = found.metadata.annotation(keys.NAMESPACE_QUEUE) if found is not None else ""
    if not wanted or (spec.queue and _is_chosen(metadata)):
        return keys.DEFAULT_QUEUE
    return wanted


def _is_chosen(metadata: DraftGroupMeta) -> bool:
    """Whether whoever applied the manifest says that its queue is `default`."""
    if text := metadata.annotation(_LAST_APPLIED):
        try:
            applied = _applied.decode(text)
        except (ValueError, RecursionError):
            return False
        return applied.spec is not None and applied.spec.queue == keys.DEFAULT_QUEUE
    for entry in metadata.managed_fields or ():
        if entry.operation != "Apply":
            continue  # of other writes, what the CRD has written is among their fields
        try:
            owned = _owned.decode(entry.fields_v1)
        except (ValueError, RecursionError):
            continue
        if owned.spec is not None and owned.spec.queue is not None:
            return True
    return False


def _mode(case: Case, topology: NetworkTopology | None, pointer: str) -> None:
    if topology is not None and not topology.mode:
        case.patch.set(f"{pointer}/mode", _HARD)
