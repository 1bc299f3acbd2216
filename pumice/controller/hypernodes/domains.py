"""Network domains, derived from labels of Nodes, the settings of their discovery, and the Nodes of each HyperNode.

A domain is identified by its type and its path: its own value and the values of all wider levels. So rack `r1` of one
cluster and rack `r1` of another one are two domains.

The path of a Node ends where it lacks the label of the next wider level. If exactly one longer path begins with this
path, the Node belongs to that domain. If there is none, it belongs to a domain without a wider one. If there are
several, it belongs to none.

`reading` reads the settings from `volcano-controller.conf`.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import pairwise

from pumice.api.hypernodes import HyperNode, Member
from pumice.api.meta import LabelSelector
from pumice.api.regexes import regex_problem, searcher

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
    """The domains of a type, tier 1 first."""
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


_NONE: frozenset[str] = frozenset()


class NodeCounter:
    """Counts Nodes. It remembers which names a pattern matched, so that only a new Node's name is matched.

    Matching a few hundred patterns against a few thousand names takes seconds.

    Attributes:
        errors: HyperNodes at which the last count failed unexpectedly; they have no number, and count as empty in others.
    """

    def __init__(self) -> None:
        self.errors: dict[str, Exception] = {}
        self._nodes = _Candidates({}, {})

    def count(
        self, hyper_nodes: Mapping[str, HyperNode], nodes: Mapping[str, Labels]
    ) -> dict[str, int]:
        """The number of Nodes of each HyperNode.

        A Node counts once, and only if it exists. HyperNodes may contain each other by mistake.
        """
        self._nodes = _Candidates(nodes, self._nodes.used)
        direct: dict[str, set[str]] = {}
        below: dict[str, set[str]] = {}
        self.errors = {}
        for name, each in hyper_nodes.items():
            try:
                direct[name], below[name] = self._selected_by(each, hyper_nodes)
            except Exception as error:
                direct[name], below[name] = set(), set()
                self.errors[name] = error
        return {
            name: _reached(name, direct, below) for name in hyper_nodes if name not in self.errors
        }

    def _selected_by(
        self, hyper_node: HyperNode, known: Container[str]
    ) -> tuple[set[str], set[str]]:
        """Names of the Nodes and of the HyperNodes that are members; HyperNodes are selected by name only."""
        nodes: set[str] = set()
        hyper_nodes: set[str] = set()
        for member in hyper_node.members:
            if member.type == "Node":
                nodes.update(self._nodes.selected(member))
            elif member.selector is not None and (exact := member.selector.exact_match) is not None:
                hyper_nodes |= {exact.name} if exact.name in known else set()
        return nodes, hyper_nodes


def _reached(start: str, direct: Mapping[str, set[str]], below: Mapping[str, set[str]]) -> int:
    if not below[start]:
        return len(direct[start])
    seen, ahead = {start}, [start]
    found: set[str] = set()
    while ahead:
        name = ahead.pop()
        found |= direct[name]
        ahead += below[name] - seen
        seen |= below[name]
    return len(found)


class _Candidates:
    """Nodes that members may select.

    Attributes:
        used: For each used pattern, the names that were tested and those that matched.
    """

    def __init__(
        self,
        labels: Mapping[str, Labels],
        known: Mapping[str, tuple[Set[str], Set[str]]],
    ) -> None:
        self.used: dict[str, tuple[Set[str], Set[str]]] = {}
        self._labels = labels
        self._names = frozenset(labels)
        self._known = known
        self._by_label: dict[tuple[str, str], list[str]] = {}

    def selected(self, member: Member) -> Iterator[str]:
        """Names that a member selects; an empty label selector selects none, as in Volcano."""
        selector = member.selector
        if selector is None:
            return
        if selector.exact_match is not None and selector.exact_match.name in self._labels:
            yield selector.exact_match.name
        if selector.regex_match is not None:
            yield from self._matched(selector.regex_match.pattern)
        if selector.label_match is not None:
            yield from self._labelled(selector.label_match)

    def _matched(self, pattern: str) -> Set[str]:
        if pattern not in self.used:
            seen, found = self._known.get(pattern, (_NONE, _NONE))
            if seen != self._names:
                found = (found & self._names) | _matching(pattern, self._names - seen)
            self.used[pattern] = self._names, found
        return self.used[pattern][1]

    def _labelled(self, selector: LabelSelector) -> Iterator[str]:
        names: Mapping[str, Labels] | list[str] = self._labels if selector.match_expressions else []
        if selector.match_labels:
            if not self._by_label:
                for name, labels in self._labels.items():
                    for pair in labels.items():
                        self._by_label.setdefault(pair, []).append(name)
            names = self._by_label.get(next(iter(selector.match_labels.items())), [])
        yield from (name for name in names if selector.matches(self._labels[name]))


def _matching(pattern: str, names: Set[str]) -> Set[str]:
    if not names or regex_problem(pattern) is not None:
        return _NONE
    return frozenset(filter(searcher(pattern), names))
