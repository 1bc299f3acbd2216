"""Settings of HyperNode discovery; `reading` reads them from `volcano-controller.conf`."""

import re
from dataclasses import dataclass

__all__ = ["OFF", "Discovery", "TopologyType"]

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
