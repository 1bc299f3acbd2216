"""The writes of discovery, computed from Nodes, configuration and existing HyperNodes.

Only what discovery writes is compared: tier, name of the tier, members and the two labels. Other fields of a discovered
HyperNode are kept. HyperNodes without the label of the source are not touched, and the status is not written here.
"""

from collections.abc import Iterable, Mapping, Sequence

from pumice.api.kinds import HYPER_NODE
from pumice.api.messages import listed
from pumice.api.meta import Raw
from pumice.controller.hypernodes.domains import Labels, Path, Tier, find_tiers
from pumice.controller.hypernodes.naming import SOURCE, SOURCE_LABEL, names_of
from pumice.controller.hypernodes.settings import Discovery, TopologyType
from pumice.controller.plan import CreateObject, DeleteObject, Plan, RecordEvent, Step, UpdateObject

__all__ = ["plan_discovery"]

_PROBLEMS = 900
"""Bytes of the longest list of problems; an event has 1,024 characters."""

_NAMED = 3
"""Maximum number of objects that a message names."""


def plan_discovery(
    discovery: Discovery, nodes: Mapping[str, Labels], existing: Iterable[Raw]
) -> Plan:
    """The writes for HyperNodes, and events about the configuration.

    Lower tiers come first, so that a HyperNode exists before the one that contains it. Deletions come last.

    Args:
        discovery: The configuration.
        nodes: Labels of all Nodes by name.
        existing: All HyperNodes.
    """
    events = _events(discovery)
    known = {each["metadata"]["name"]: each for each in existing}
    wanted: dict[str, Raw] = {}
    if not discovery.enabled:
        return Plan.of(events, _deletes(known, wanted) if discovery.delete_when_disabled else [])
    kept: dict[str, Raw] = {}
    stages: dict[int, list[Step]] = {}
    for type_ in discovery.types:
        names: dict[Path, str] = {}
        before = len(wanted)
        for tier in find_tiers(type_, nodes):
            events += _undecided(tier, names)
            members = {
                path: sorted(names[each] if isinstance(each, tuple) else each for each in found)
                for path, found in tier.domains.items()
            }
            names = names_of(tier, members, known)
            for path, name in sorted(names.items()):
                wanted[name] = _manifest(tier, path, name, members[path])
                stages.setdefault(tier.number, []).extend(_write(known.get(name), wanted[name]))
        if discovery.keep_when_empty and len(wanted) == before:
            left = _discovered_by(type_, known)
            events += _empty(type_, left)
            kept |= left
    deletes = _deletes(known, wanted | kept) if discovery.complete else []
    return Plan.of(events, *(stages[number] for number in sorted(stages)), deletes)


def _deletes(known: Mapping[str, Raw], wanted: Mapping[str, Raw]) -> list[Step]:
    """Deletions of discovered HyperNodes that are not wanted."""
    return [_delete(known[name]) for name in sorted(known) if _goes(known[name], wanted)]


def _discovered_by(type_: TopologyType, known: Mapping[str, Raw]) -> dict[str, Raw]:
    """The HyperNodes that were discovered for a type."""
    prefixes = tuple(type_.prefix(tier) for tier in range(1, len(type_.keys) + 1))
    return {
        name: each for name, each in known.items() if name.startswith(prefixes) and _goes(each, {})
    }


def _empty(type_: TopologyType, left: Mapping[str, Raw]) -> list[Step]:
    """An event about HyperNodes that stay although no Node has the labels of their type."""
    if not left:
        return []
    message = (
        f"type {type_.name!r}: no Node has the label {type_.keys[0]}; its {len(left)} HyperNodes stay,"
        " because keepWhenEmpty is true; set it to false if they are to go"
    )
    return [RecordEvent("Warning", "TopologyEmpty", message)]


def _manifest(tier: Tier, path: Path, name: str, members: Sequence[str]) -> Raw:
    kind = "Node" if tier.number == 1 else HYPER_NODE.kind
    return {
        "apiVersion": HYPER_NODE.api_version,
        "kind": HYPER_NODE.kind,
        "metadata": {"name": name, "labels": {SOURCE_LABEL: SOURCE, tier.key: path[0]}},
        "spec": {
            "tier": tier.number,
            "tierName": tier.key,
            "members": [
                {"type": kind, "selector": {"exactMatch": {"name": each}}} for each in members
            ],
        },
    }


def _write(stored: Raw | None, wanted: Raw) -> list[Step]:
    if stored is None:
        return [CreateObject(HYPER_NODE, wanted)]
    meta = stored["metadata"]
    labels = _changed(meta.get("labels") or {}, wanted["metadata"]["labels"])
    spec = _changed(stored.get("spec") or {}, wanted["spec"])
    if not labels and not spec:
        return []
    patch: Raw = {"metadata": {"uid": meta["uid"]}}
    if labels:
        patch["metadata"]["labels"] = labels
    if spec:
        patch["spec"] = spec
    return [UpdateObject(HYPER_NODE, "", meta["name"], patch)]


def _changed(stored: Raw, wanted: Raw) -> Raw:
    return {key: value for key, value in wanted.items() if stored.get(key) != value}


def _goes(stored: Raw, wanted: Mapping[str, Raw]) -> bool:
    meta = stored["metadata"]
    return (
        (meta.get("labels") or {}).get(SOURCE_LABEL) == SOURCE
        and meta["name"] not in wanted
        and "deletionTimestamp" not in meta
    )


def _delete(stored: Raw) -> DeleteObject:
    meta = stored["metadata"]
    return DeleteObject(HYPER_NODE, "", meta["name"], meta["uid"])


def _events(discovery: Discovery) -> list[Step]:
    events: list[Step] = [
        RecordEvent("Warning", "DiscoverySourceNotBuilt", each) for each in discovery.not_built
    ]
    if discovery.problems:
        message = (
            f"{listed(discovery.problems, '; ', _PROBLEMS)}; what cannot be read stays as it was"
        )
        events.append(RecordEvent("Warning", "InvalidDiscovery", message))
    return events


def _undecided(tier: Tier, names: Mapping[Path, str]) -> list[Step]:
    """An event about members whose domain cannot be derived from labels."""
    if not tier.undecided:
        return []
    found = sorted(names[each] if isinstance(each, tuple) else each for each in tier.undecided)
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    kind = "Nodes" if tier.number == 1 else "HyperNodes"
    message = (
        f"type {tier.type.name!r}: {kind} {', '.join(found[:_NAMED])}{more} could belong to several "
        f"domains of {tier.key}, which have the same value in different wider domains, and belong to "
        "none; add the labels of the wider levels"
    )
    return [RecordEvent("Warning", "AmbiguousTopology", message)]
