"""Defaults of a PodGroup: its queue, its priority class, the mode of its topology.

The CRD sets queue `default` before webhooks are called, so the object does not show whether its user chose that queue.
The applied manifest does: kubectl keeps it in an annotation, server-side apply in the managed fields. Only a queue that
is named there counts as chosen.
"""

from typing import Any

import msgspec

from pumice.api import keys
from pumice.api.jobs import NetworkTopology
from pumice.api.podgroups import PodGroupSpec
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.drafts import DraftGroupMeta, DraftPodGroup

_HARD = "hard"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NO_SPEC = PodGroupSpec()


def pod_group_defaults(
    case: Case, group: DraftPodGroup, old: DraftPodGroup | None, namespace: str
) -> None:
    """Write defaults into the case's patch.

    In an update a default is written again only if the stored object has it, so that no update changes the queue. The
    namespace may be in the review only.
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
    """The queue of a PodGroup."""
    if spec.queue not in ("", keys.DEFAULT_QUEUE):
        return spec.queue
    found = case.view.namespace(namespace)
    wanted = found.metadata.annotation(keys.NAMESPACE_QUEUE) if found is not None else ""
    if not wanted or (spec.queue and _is_chosen(metadata)):
        return keys.DEFAULT_QUEUE
    return wanted


def _is_chosen(metadata: DraftGroupMeta) -> bool:
    """True if the applied manifest itself names queue `default`."""
    if text := metadata.annotation(_LAST_APPLIED):
        try:
            spec = msgspec.json.decode(text, type=dict[str, Any]).get("spec")
        except (ValueError, RecursionError):
            return False
        return isinstance(spec, dict) and spec.get("queue") == keys.DEFAULT_QUEUE
    # The fields of other writes include what the CRD has written.
    entries = metadata.managed_fields or ()
    return any("f:queue" in (each.owned() or ()) for each in entries if each.operation == "Apply")


def _mode(case: Case, topology: NetworkTopology | None, pointer: str) -> None:
    if topology is not None and not topology.mode:
        case.patch.set(f"{pointer}/mode", _HARD)
