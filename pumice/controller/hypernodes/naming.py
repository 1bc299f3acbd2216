"""Names of discovered HyperNodes: `hypernode-<type>-tier<n>-<5 characters>`.

The characters follow from the path of the domain, so two passes that do not see each other's writes use the same name,
and a deleted HyperNode gets the same name again. An existing HyperNode keeps its name, also if Volcano chose it.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence

from pumice.api.meta import Raw
from pumice.controller.hypernodes.domains import Path, Tier

__all__ = ["SOURCE", "SOURCE_LABEL", "names_of"]

SOURCE_LABEL = "volcano.sh/network-topology-source"
"""Label that says how a HyperNode was discovered."""

SOURCE = "label"

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
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
        number, index = divmod(number, len(_ALPHABET))
        suffix += _ALPHABET[index]
    return prefix + suffix
