"""Objects that plugins want for the pods of other controllers: Services, ConfigMaps, Secrets, policies.

Admission wires the pods; their own controllers set their names and numbers. This module keeps the objects up to date
while the owner exists. They are collected with the owner by their owner references. Objects of a group that is gone are
deleted.
"""

from collections.abc import Iterable, Sequence

from pumice.api import keys
from pumice.api.kinds import of_object
from pumice.api.meta import ObjectMeta, Raw
from pumice.controller.jobs.situation import unexpected_error
from pumice.controller.jobs.sync import CONFLICT_SECONDS
from pumice.controller.objects import (
    NameConflict,
    UnknownKindError,
    controls_raw,
    owned,
    secret_manifests,
    settle,
    settle_keys,
)
from pumice.controller.plan import DeleteObject, Plan, RecordEvent, RequeueAfter
from pumice.plugins import PluginError
from pumice.plugins.other_owners import Owner, OwnerWirings, RequestError, Wired
from pumice.plugins.other_owners.wired_pods import kind_of

_MOST_EVENTS = 10
"""Maximum number of events of one kind about an owner: a thousand groups may have the same problem."""


def plan_wiring(owner: Owner, wirings: OwnerWirings, present: Sequence[Raw]) -> Plan:
    """The plan for the objects that plugins want for an owner.

    Args:
        owner: The owner.
        wirings: Its plugins.
        present: Objects of its namespace that are its own, or have a name that it needs.
    """
    if owner.ended or owner.metadata.deletion_timestamp:
        return Plan()
    kind = kind_of(owner)
    meta = ObjectMeta(
        name=owner.metadata.name, namespace=owner.metadata.namespace, uid=owner.metadata.uid
    )
    try:
        found = list(wirings.of(owner))
        usable = [each for each in found if not each.errors]
        plain = owned(meta, _objects(usable), kind)
        secrets = [secret for each in usable for secret in each.wiring.secrets()]
    except (RequestError, PluginError, UnknownKindError) as error:
        return Plan.of([_warning("PluginError", str(error))])
    except Exception as error:
        return Plan.of([_warning("PluginError", unexpected_error(error))])
    settled = settle(meta, plain, present)
    # Pods are not watched here, so a Secret that they may use is never replaced.
    made, _ = settle_keys(meta, secrets, present, pods=True, kind=kind)
    creates = [*settled.creates, *made.creates]
    conflicts = (*settled.conflicts, *made.conflicts)
    return Plan.of(
        _events(found, conflicts, new=bool(creates)),
        [*creates, *settled.updates, *made.updates],
        _surplus(meta, [*plain, *secret_manifests(meta, secrets, kind)], present),
        [RequeueAfter(CONFLICT_SECONDS)] if conflicts else [],
    )


def _objects(wired: Iterable[Wired]) -> list[Raw]:
    return [manifest for each in wired for manifest in each.wiring.objects()]


def _events(
    wired: Sequence[Wired], conflicts: Sequence[NameConflict], *, new: bool
) -> list[RecordEvent]:
    """Events about an owner, the first of each kind; warnings are recorded once."""
    found = {
        "PluginError": [error for each in wired for error in each.errors],
        "PluginArgument": [doubt for each in wired for doubt in each.doubts] if new else [],
        "NameConflict": [conflict.message for conflict in conflicts],
    }
    return [
        _warning(reason, message)
        for reason, messages in found.items()
        for message in list(dict.fromkeys(messages))[:_MOST_EVENTS]
    ]


def _surplus(meta: ObjectMeta, wanted: Sequence[Raw], present: Iterable[Raw]) -> list[DeleteObject]:
    """Objects of the owner that nothing wants any more."""
    names = {(each["kind"], each["metadata"]["name"]) for each in wanted}
    deletes = []
    for each in present:
        found, kind = each["metadata"], of_object(each)
        if (
            kind is not None
            and keys.WIRED_FOR in (found.get("labels") or {})
            and controls_raw(meta, each)
            and (kind.kind, found["name"]) not in names
            and not found.get("deletionTimestamp")
        ):
            deletes.append(DeleteObject(kind, meta.namespace, found["name"], found.get("uid", "")))
    return deletes


def _warning(reason: str, message: str) -> RecordEvent:
    return RecordEvent("Warning", reason, message)
