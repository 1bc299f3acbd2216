"""Where HyperNodes are discovered: the part of `volcano-controller.conf` that is about network topology.

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

A mistake must not take the topology of a cluster away. What cannot be read goes on as it was read before, and
nothing is deleted as long as it is not known what was there before.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from pumice.api.fields import did_you_mean
from pumice.api.names import dns_subdomain_problem, qualified_name_problem

__all__ = ["OFF", "Discovery", "TopologyType", "read"]

T = TypeVar("T")

LABEL = "label"
NOT_BUILT = ("ufm", "roce")
"""Sources of Volcano's format that Pumice does not have; `roce` has no implementation in Volcano either."""

_ROOT = "networkTopologyDiscovery"
_LONGEST_NAME = 20
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.-]")
_WHERE = re.compile(r"^(.*?)(?: - at `\$(.*)`)?$", re.DOTALL)


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
    """

    enabled: bool = False
    types: tuple[TopologyType, ...] = ()
    complete: bool = False
    problems: tuple[str, ...] = ()
    not_built: tuple[str, ...] = ()


OFF = Discovery()
"""Without any configuration."""


class _Source(msgspec.Struct):
    source: str
    enabled: bool | None = None


class _Level(msgspec.Struct, rename="camel"):
    node_label: str


class _Config(msgspec.Struct, rename="camel"):
    network_topology_types: dict[str, Any] | None = None


class _Labels(msgspec.Struct):
    config: _Config | None = None


class _SettingsError(Exception):
    """A part of the configuration that cannot be used; the message has its path."""


def read(text: str | None, before: Discovery = OFF) -> Discovery:
    """Read a configuration.

    Args:
        text: The value of `volcano-controller.conf`; None when the key is missing.
        before: What was read before; it goes on where the text cannot be read.
    """
    try:
        entries = _entries(text)
    except _SettingsError as error:
        return _unreadable(before, (str(error),), ())
    place = None
    problems: list[str] = []
    not_built: list[str] = []
    unclear = False
    for index, entry in enumerate(entries):
        path = f"{_ROOT}[{index}]"
        try:
            source = _convert(entry, _Source, path)
        except _SettingsError as error:
            problems.append(str(error))
            unclear |= not isinstance(entry, dict) or entry.get("source") not in NOT_BUILT
            continue
        if source.enabled and source.source == LABEL:
            place = place or (path, entry)
        elif source.enabled:
            (not_built if source.source in NOT_BUILT else problems).append(_no_source(path, source))
    if place is None:
        if unclear:
            return _unreadable(before, problems, not_built)
        return Discovery(problems=tuple(problems), not_built=tuple(not_built))
    return _labels(*place, before, problems, not_built)


def _unreadable(before: Discovery, problems: Iterable[str], not_built: Iterable[str]) -> Discovery:
    return Discovery(
        before.enabled, before.types, before.complete, tuple(problems), tuple(not_built)
    )


def _entries(text: str | None) -> list[Any]:
    from pumice.api.documents import DocumentError, parse  # brings YAML, which few clusters need

    if text is None:
        raise _SettingsError("the key volcano-controller.conf is missing; add it, it may be empty")
    try:
        documents = [value for _, _, value in parse(text.encode())]
    except DocumentError as error:
        where = f"line {error.line}: " if error.line else ""
        raise _SettingsError(f"{where}must be YAML: {error}") from None
    root = documents[0] if documents else {}
    wanted = _convert(root, dict[str, Any], "").get(_ROOT)
    return _convert(wanted or [], list[Any], _ROOT)


def _no_source(path: str, source: _Source) -> str:
    if source.source in NOT_BUILT:
        return (
            f"{path}.source: Pumice does not discover HyperNodes by {source.source!r}; use source "
            f"{LABEL!r}, or create them by other means"
        )
    meant = did_you_mean(source.source, (LABEL, *NOT_BUILT))
    return f"{path}.source: unknown source {source.source!r}{meant}; use {LABEL!r}"


def _labels(
    path: str, entry: Any, before: Discovery, problems: list[str], not_built: list[str]
) -> Discovery:
    """What the label source discovers."""
    path = f"{path}.config.networkTopologyTypes"
    wrong: list[str] = []
    types: dict[str, TopologyType] = {}
    try:
        config = _convert(entry, _Labels, path.partition(".")[0]).config or _Config()
        if not config.network_topology_types:
            raise _SettingsError(
                f"{path}: must have at least one type; to stop the discovery, set enabled: false"
            )
        for name, levels in config.network_topology_types.items():
            try:
                _add(types, _type(f"{path}.{name}", name, levels), f"{path}.{name}")
            except _SettingsError as error:
                wrong.append(str(error))
    except _SettingsError as error:
        wrong.append(str(error))
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


def _add(types: dict[str, TopologyType], found: TopologyType, path: str) -> None:
    prefix = found.prefix(1)
    for other in types.values():
        if other.prefix(1) == prefix:
            raise _SettingsError(
                f"{path}: names of its HyperNodes would start like those of type {other.name!r}; rename one"
            )
    types[found.name] = found


def _type(path: str, name: str, levels: Any) -> TopologyType:
    length = len(name.encode())
    if length > _LONGEST_NAME:
        raise _SettingsError(
            f"{path}: the name must be at most {_LONGEST_NAME} bytes, found {length}"
        )
    keys = [each.node_label for each in _convert(levels or [], list[_Level], path)]
    if len(keys) < 2:
        raise _SettingsError(
            f"{path}: must have at least two levels, of which the last one stands for the Node, "
            f"found {len(keys)}"
        )
    for index, key in enumerate(keys):
        where = f"{path}[{index}].nodeLabel"
        if problem := qualified_name_problem(key):
            raise _SettingsError(f"{where}: {problem}")
        if key in keys[:index]:
            raise _SettingsError(f"{where}: {key!r} is listed twice; a key can be one level only")
    found = TopologyType(name, tuple(keys[-2::-1]))
    if problem := dns_subdomain_problem(f"{found.prefix(len(keys))}x"):
        raise _SettingsError(f"{path}: invalid name of a HyperNode: {problem}; rename the type")
    return found


def _convert(value: Any, type_: type[T], path: str) -> T:
    """A value in its shape.

    Raises:
        _SettingsError: It has another one.
    """
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        what, below = _WHERE.fullmatch(str(error)).groups(default="")  # type: ignore[union-attr]
        where = f"{path}{below}".lstrip(".")
        problem = what.replace("`", "").replace(" | null", "")
        raise _SettingsError(f"{where + ': ' if where else ''}{_lower(problem)}") from None


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
