"""The writes of discovery, computed from Nodes, configuration and existing HyperNodes.

Only what discovery writes is compared: tier, name of the tier, members and the two labels. Other fields of a discovered
HyperNode are kept. HyperNodes without the label of the source are not touched, and the status is not written here.

Names are `hypernode-<type>-tier<n>-<5 characters>`. The characters follow from the path of the domain, so two passes that do
not see each other's writes use the same name, and a deleted HyperNode gets the same name again. An existing HyperNode keeps
its name, also if Volcano chose it.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from pumice.api.kinds import HYPER_NODE
from pumice.api.messages import listed
from pumice.api.meta import Raw
from pumice.api.names import RANDOM_LETTERS
from pumice.controller.hypernodes.domains import (
    Discovery,
    Labels,
    Path,
    Tier,
    TopologyType,
    find_tiers,
)
from pumice.controller.plan import CreateObject, DeleteObject, Plan, RecordEvent, Step, UpdateObject

SOURCE_LABEL = "volcano.sh/network-topology-source"
"""Label that says how a HyperNode was discovered."""

SOURCE = "label"

_LENGTH = 5


def names_of(
    tier: Tier, members: Mapping[Path, Sequence[str]], existing: Mapping[str, Raw]
) -> dict[Path, str]:
    """The name of each domain of a tier.

    Args:
        tier: The tier.
        members: Names of the members by domain.
        existing: All HyperNodes by name, those too that were not discovered.
    """
    prefix = tier.type.prefix(tier.number)
    kept = _kept(tier, members, existing)
    names = dict(kept)
    taken = set(existing) | set(kept.values())
    for path in sorted(tier.domains):
        if path not in names:
            names[path] = name = _free_name(prefix, tier, path, taken)
            taken.add(name)
    return names


def _kept(
    tier: Tier, members: Mapping[Path, Sequence[str]], existing: Mapping[str, Raw]
) -> dict[Path, str]:
    """Names of existing HyperNodes for the domains that they represent.

    If several HyperNodes could represent a domain, the one with the domain's own name is used, then the one with most
    members in common.
    """
    prefix = tier.type.prefix(tier.number)
    by_value: dict[str, list[str]] = {}
    for name in sorted(existing):
        labels = existing[name]["metadata"].get("labels") or {}
        if (
            name.rpartition("-")[0] == prefix[:-1]
            and labels.get(SOURCE_LABEL) == SOURCE
            and (value := labels.get(tier.key)) is not None
        ):
            by_value.setdefault(value, []).append(name)
    sharing: dict[str, list[Path]] = {}
    for path in sorted(tier.domains):
        sharing.setdefault(path[0], []).append(path)
    kept: dict[Path, str] = {}
    for value, paths in sharing.items():
        pairs = [
            (-_likeness(tier, path, members[path], name, existing[name]), path, name)
            for path in paths
            for name in by_value.get(value, ())
        ]
        used: set[str] = set()
        for likeness, path, name in sorted(pairs):
            if path not in kept and name not in used and (likeness or len(paths) == 1):
                kept[path] = name
                used.add(name)
    return kept


def _likeness(
    tier: Tier, path: Path, members: Collection[str], name: str, hyper_node: Raw
) -> float:
    if name == _name(tier.type.prefix(tier.number), tier, path, 0):
        return float("inf")
    listed = (
        ((each.get("selector") or {}).get("exactMatch") or {}).get("name")
        for each in (hyper_node.get("spec") or {}).get("members") or ()
    )
    return len(set(listed) & set(members))


def _free_name(prefix: str, tier: Tier, path: Path, taken: Collection[str]) -> str:
    attempt = 0
    while (name := _name(prefix, tier, path, attempt)) in taken:
        attempt += 1
    return name


def _name(prefix: str, tier: Tier, path: Path, attempt: int) -> str:
    keys = tier.type.keys[tier.number - 1 :]
    parts = (tier.type.name, *keys, *path, str(attempt))
    number = int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest(), "big")
    suffix = ""
    for _ in range(_LENGTH):
        number, index = divmod(number, len(RANDOM_LETTERS))
        suffix += RANDOM_LETTERS[index]
    return prefix + suffix


_PROBLEMS = 900
"""Bytes of the longest list of problems; an event has 1,024 characters."""

_NAMED = 3
"""Maximum number of objects that a message names."""


def plan_discovery(
    discovery: Discovery, nodes: Mapping[str, Labels], existing: Iterable[Raw]
) -> Plan:
    """The writes for HyperNodes, and events about the configuration.

    Lower tiers come first, so that a HyperNode exists before the one that contains it. Deletions come last.
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
        **HYPER_NODE.type_meta,
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
