"""The part of `volcano-controller.conf` that is about network topology, as pydantic models."""

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, SkipValidation

from pumice.api.names import qualified_name_problem
from pumice.settings import FilePart, checked, refuse

__all__ = ["DiscoveryFile", "DiscoverySource", "LabelSource", "Levels"]


class TopologyLevel(FilePart):
    """A level of a topology."""

    node_label: Annotated[str, checked(qualified_name_problem)] = Field(
        description="key of a label of Nodes"
    )


def _distinct(levels: list[TopologyLevel]) -> list[TopologyLevel]:
    keys = [each.node_label for each in levels]
    if len(keys) < 2:
        message = (
            "must have at least two levels, of which the last one stands for the Node, "
            f"found {len(keys)}"
        )
        refuse([((), message)])
    message = "is listed twice; a key can be one level only"
    refuse(
        ((index, "nodeLabel"), f"{key!r} {message}")
        for index, key in enumerate(keys)
        if key in keys[:index]
    )
    return levels


Levels = Annotated[list[TopologyLevel], AfterValidator(_distinct)]
"""Levels of a topology, the widest first; the last one is the Node itself."""


class LabelConfig(FilePart):
    """How HyperNodes are derived from labels of Nodes."""

    network_topology_types: dict[str, SkipValidation[Levels]] = Field(  # read one by one
        default={}, description="Topologies by name, each a list of levels."
    )


class LabelSource(FilePart):
    """A source that discovers HyperNodes by labels of Nodes."""

    model_config = ConfigDict(extra="ignore")

    config: LabelConfig = Field(default=LabelConfig())


class DiscoverySource(FilePart):
    """A way to discover HyperNodes."""

    source: str = Field(description="label, the only source that Pumice has")
    enabled: bool = Field(default=False, description="Whether it is used.")
    keep_when_empty: bool = Field(
        default=False,
        description="Whether the HyperNodes of a topology stay when no Node has its labels any more.",
    )
    delete_when_disabled: bool = Field(
        default=False,
        description="Whether discovered HyperNodes are deleted when enabled is false.",
    )
    config: SkipValidation[LabelConfig] = Field(default=LabelConfig())
    interval: Any = Field(default=None, description="Of Volcano's other sources; it has no effect.")
    credentials: Any = Field(
        default=None, description="Of Volcano's other sources; it has no effect."
    )


class DiscoveryFile(FilePart):
    """The file of the ConfigMap that says how HyperNodes are discovered."""

    network_topology_discovery: list[SkipValidation[DiscoverySource]] = Field(  # read one by one
        default=[], description="Ways of discovery."
    )
