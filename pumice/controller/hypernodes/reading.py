"""The configuration of HyperNode discovery, with its pydantic models: the part of `volcano-controller.conf` about network topology.

```yaml
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      fabric:                          # the widest level first
      - nodeLabel: example.com/spine
      - nodeLabel: example.com/rack
      - nodeLabel: kubernetes.io/hostname  # the last one is not read: it stands for the Node
```

A mistake must not remove the topology of a cluster. If a part cannot be read, its previous value stays in effect.
Nothing is deleted while no previous value is known.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, SkipValidation

from pumice.api.fields import did_you_mean
from pumice.api.names import dns_subdomain_problem, qualified_name_problem
from pumice.api.setting_errors import SettingError, path_of
from pumice.controller.hypernodes.domains import OFF, Discovery, TopologyType
from pumice.settings import FilePart, Location, checked, document, read_leniently, refuse
from pumice.settings import read as read_model

LABEL = "label"
NOT_BUILT = ("ufm", "roce")
"""Sources of Volcano's format that Pumice does not have; `roce` has no implementation in Volcano either."""

_ROOT = "networkTopologyDiscovery"
_LONGEST_NAME = 20


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


def read(text: str | None, before: Discovery = OFF) -> Discovery:
    """Read a configuration.

    Args:
        text: The value of `volcano-controller.conf`; None when the key is missing.
        before: The previous configuration; its parts stay in effect where the text cannot be read.
    """
    try:
        entries, unknown = _entries(text)
    except SettingError as error:
        return _unreadable(before, map(str, error.problems), ())
    place = None
    delete = False
    problems = [*unknown]
    not_built: list[str] = []
    unclear = False
    for index, entry in enumerate(entries):
        where = (_ROOT, index)
        try:
            source, ignored = read_leniently(DiscoverySource, entry, at=where)
        except SettingError as error:
            problems += map(str, error.problems)
            unclear |= not isinstance(entry, dict) or entry.get("source") not in NOT_BUILT
            continue
        problems += map(str, ignored)
        if source.enabled and source.source == LABEL:
            place = place or (where, entry, source.keep_when_empty)
        elif source.enabled:
            (not_built if source.source in NOT_BUILT else problems).append(
                _no_source(path_of(where), source.source)
            )
        else:
            delete |= source.source == LABEL and source.delete_when_disabled
    if place is None:
        if unclear:
            return _unreadable(before, problems, not_built)
        return Discovery(
            problems=tuple(problems),
            not_built=tuple(not_built),
            delete_when_disabled=delete and not problems,
        )
    where, entry, keep = place
    found = _labels(where, entry, before, problems, not_built)
    return replace(found, keep_when_empty=keep)


def _unreadable(before: Discovery, problems: Iterable[str], not_built: Iterable[str]) -> Discovery:
    return replace(before, problems=tuple(problems), not_built=tuple(not_built))


def _entries(text: str | None) -> tuple[list[Any], Iterable[str]]:
    """The sources, not read yet, and what has no effect beside them."""
    if text is None:
        raise SettingError.of("the key volcano-controller.conf is missing; add it, it may be empty")
    content = document(text.encode())
    file, unknown = read_leniently(DiscoveryFile, {} if content is None else content)
    return file.network_topology_discovery, map(str, unknown)


def _no_source(path: str, source: str) -> str:
    if source in NOT_BUILT:
        return (
            f"{path}.source: Pumice does not discover HyperNodes by {source!r}; use source "
            f"{LABEL!r}, or create them by other means"
        )
    meant = did_you_mean(source, (LABEL, *NOT_BUILT))
    return f"{path}.source: unknown source {source!r}{meant}; use {LABEL!r}"


def _labels(
    where: Location, entry: Any, before: Discovery, problems: list[str], not_built: list[str]
) -> Discovery:
    """The types of topology of the label source."""
    wrong: list[str] = []
    types: dict[str, TopologyType] = {}
    try:
        given = read_model(LabelSource, entry, at=where).config.network_topology_types
        where = (*where, "config", "networkTopologyTypes")
        if not given:
            message = "must have at least one type; to stop the discovery, set enabled: false"
            raise SettingError.of(message, *where)
        for name, levels in given.items():
            try:
                types[name] = _type(name, levels, types, (*where, name))
            except SettingError as error:
                wrong += map(str, error.problems)
    except SettingError as error:
        wrong += map(str, error.problems)
    if wrong:
        prefixes = {each.prefix(1) for each in types.values()}
        kept = [each for each in before.types if each.prefix(1) not in prefixes]
        types |= {each.name: each for each in kept}
    return Discovery(
        enabled=True,
        types=tuple(types.values()),
        complete=not wrong or (before.enabled and before.complete),
        problems=(*problems, *wrong),
        not_built=tuple(not_built),
    )


def _type(
    name: str, levels: Any, others: Mapping[str, TopologyType], where: Location
) -> TopologyType:
    length = len(name.encode())
    if length > _LONGEST_NAME:
        message = f"the name must be at most {_LONGEST_NAME} bytes, found {length}"
        raise SettingError.of(message, *where)
    keys = [each.node_label for each in read_model(Levels, levels or [], at=where)]
    found = TopologyType(name, tuple(keys[-2::-1]))
    if problem := dns_subdomain_problem(f"{found.prefix(len(keys))}x"):
        raise SettingError.of(f"invalid name of a HyperNode: {problem}; rename the type", *where)
    for other in others.values():
        if other.prefix(1) == found.prefix(1):
            message = (
                f"names of its HyperNodes would start like those of type {other.name!r}; rename one"
            )
            raise SettingError.of(message, *where)
    return found
