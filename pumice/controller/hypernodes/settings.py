"""What HyperNodes are discovered by; `reading` reads it from `volcano-controller.conf`."""

import re
from dataclasses import dataclass

__all__ = ["OFF", "Discovery", "TopologyType"]

_NOT_IN_NAMES = re.compile(r"[^a-z0-9.-]")


@dataclass(frozen=True, slots=True)
class TopologyType:
    """One way to see the network as a tree.

    Attributes:
        name: Its name.
        keys: Keys of Node labels, that of tier 1 first.
    """

    name: str
    keys: tuple[str, ...]

    def prefix(self, tier: int) -> str:
        """What names of its HyperNodes of a tier start with."""
        return f"hypernode-{_NOT_IN_NAMES.sub('-', self.name.lower())}-tier{tier}-"


@dataclass(frozen=True, slots=True)
class Discovery:
    """What is to be discovered.

    Attributes:
        enabled: Whether HyperNodes are discovered by labels. Those that exist stay when they are no more.
        types: The types of topology.
        complete: Whether these are all types, so that a HyperNode which belongs to none of them can go.
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
"""Without any configuration."""
