"""Network domains, derived from labels of Nodes, and the settings of their discovery.

A domain is identified by its type and its path: its own value and the values of all wider levels. So rack `r1` of one
cluster and rack `r1` of another one are two domains.

The path of a Node ends where it lacks the label of the next wider level. If exactly one longer path begins with this
path, the Node belongs to that domain. If there is none, it belongs to a domain without a wider one. If there are
several, it belongs to none.

`reading` reads the settings from `volcano-controller.conf`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["OFF", "Discovery", "Labels", "Path", "Tier", "TopologyType", "find_tiers"]

_NOT_IN_NAMES = re.compile(r"[^a-z0-9.-]")


@dataclass(frozen=True, slots=True)
class TopologyType:
    """One hierarchy of network domains.

    Attributes:
        name: Its name.
        keys: Keys of Node labels, that of tier 1 first.
    """

    name: str
    keys: tuple[str, ...]

    def prefix(self, tier: int) -> str:
        """Prefix of the names of its HyperNodes of a tier."""
        return f"hypernode-{_NOT_IN_NAMES.sub('-', self.name.lower())}-tier{tier}-"


@dataclass(frozen=True, slots=True)
class Discovery:
    """Settings of the discovery.

    Attributes:
        enabled: Whether HyperNodes are discovered by labels. Existing ones stay when this is turned off.
        types: The types of topology.
        complete: Whether these are all types, so that HyperNodes of no type can be deleted.
        problems: What is wrong, each with its path.
        not_built: Sources that are enabled and that Pumice does not have, each with its path.
        keep_when_empty: Whether the HyperNodes of a type stay when no Node has its labels any more.
        delete_when_disabled: Whether all discovered HyperNodes go when discovery is not enabled.
    """

    enabled: bool = False
    types: tuple[TopologyType, ...] = ()
    complete: bool = False
    problems: tuple[str, ...] = ()
    not_built: tuple[str, ...] = ()
    keep_when_empty: bool = False
    delete_when_disabled: bool = False


OFF = Discovery()
"""The settings without any configuration."""


Labels = Mapping[str, str]

Path = tuple[str, ...]
"""Values of labels from one level upwards."""


@dataclass(slots=True)
class Tier:
    """The domains of a tier.

    Attributes:
        type: The type of topology.
        number: 1 for domains of Nodes.
        domains: Members of each domain by its path: names of Nodes on tier 1, paths of the next lower tier otherwise.
        undecided: Names or paths that could belong to several domains, and so belong to none.
    """

    type: TopologyType
    number: int
    domains: dict[Path, list[str] | list[Path]] = field(default_factory=dict)
    undecided: list[str] | list[Path] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Key of the label."""
        return self.type.keys[self.number - 1]


def find_tiers(type_: TopologyType, nodes: Mapping[str, Labels]) -> list[Tier]:
    """The domains of a type, tier 1 first.

    Args:
        type_: The type of topology.
        nodes: Labels of all Nodes by name.
    """
    paths = {name: path for name in sorted(nodes) if (path := _path(type_.keys, nodes[name]))}
    tiers: list[Tier] = []
    members: Iterable[tuple[str | Path, Path]] = paths.items()
    for number in range(1, len(type_.keys) + 1):
        tier = Tier(type_, number)
        whole = _completed({path[number - 1 :] for path in paths.values() if len(path) >= number})
        for member, path in members:
            if (found := whole[path]) is None:
                tier.undecided.append(member)  # type: ignore[arg-type]
            else:
                tier.domains.setdefault(found, []).append(member)  # type: ignore[arg-type]
        tiers.append(tier)
        members = [(path, path[1:]) for path in sorted(tier.domains) if len(path) > 1]
    return tiers


def _path(keys: Iterable[str], labels: Labels) -> Path:
    """The values of a Node from tier 1 upwards, up to the first label that it lacks."""
    found = []
    for key in keys:
        if (value := labels.get(key)) is None:
            break
        found.append(value)
    return tuple(found)


def _completed(paths: Iterable[Path]) -> dict[Path, Path | None]:
    """For each path the longest one that begins with it; None if there are several."""
    found: dict[Path, Path | None] = {}
    for path, after in pairwise([*sorted(paths), ()]):
        if after[: len(path)] == path:
            continue  # the next one says more
        for length in range(1, len(path) + 1):
            part = path[:length]
            found[part] = None if part in found else path
    return found
