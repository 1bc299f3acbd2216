"""Which nodes HyperNodes select directly, kept current node by node.

A node that comes, changes or goes is compared with the selectors that may concern it: names are looked up, labels are
looked up by one label of each selector, and patterns are matched once for each name. If a HyperNode comes or changes, all nodes are
compared so when they are next asked for.
"""

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

import msgspec

from pumice.api.hypernodes import HyperNode, Member
from pumice.api.kinds import HYPER_NODE
from pumice.api.meta import LabelSelector
from pumice.api.regexes import judge_regex, searcher

LONGEST_SELECTORS = 32 * 1024
"""Bytes of patterns and label selectors of a HyperNode that are read, each of them and its place included. They are compared with
all nodes."""

_PLACE = 64
"""Bytes for which each pattern and each selector counts at least."""

MOST_INSTRUCTIONS = 10_000
"""Size of the compiled patterns of a HyperNode; an ordinary one has some 30 instructions."""

Labels = Mapping[str, str]
_NO_LABELS: Labels = {}


class Selectors(NamedTuple):
    """The members of a HyperNode, by the way in which they are selected.

    Attributes:
        names: Names of nodes.
        patterns: Patterns of names of nodes.
        labels: Selectors of nodes; none of them is empty.
        hyper_nodes: Names of HyperNodes.
        faults: Members that are not read, as sentences that begin with a path.
    """

    names: frozenset[str]
    patterns: tuple[str, ...]
    labels: tuple[LabelSelector, ...]
    hyper_nodes: frozenset[str]
    faults: tuple[str, ...]

    @classmethod
    def read(cls, hyper_node: HyperNode) -> "Selectors":
        """The selectors of a HyperNode, within limits on what is compared with each node."""
        names: set[str] = set()
        hyper_nodes: set[str] = set()
        faults: dict[str, None] = {}
        reader = _Reader()
        for index, member in enumerate(hyper_node.members):
            selector = member.selector
            if selector is None:
                continue
            is_node = member.type != HYPER_NODE.kind
            if selector.exact_match is not None:
                (names if is_node else hyper_nodes).add(selector.exact_match.name)
            if fault := reader.take(member) if is_node else _not_exact(member):
                faults.setdefault(f"spec.members[{index}].selector.{fault}")
        return cls(
            frozenset(names),
            tuple(reader.patterns),
            tuple(reader.labels),
            frozenset(hyper_nodes),
            tuple(faults)[:1],
        )


def _not_exact(member: Member) -> str:
    ways = [way for way in member.selector.ways if way != "exactMatch"] if member.selector else []
    return f"{ways[0]}: members of type HyperNode are selected by exactMatch only" if ways else ""


class _Reader:
    """Takes in patterns and label selectors until their limit is reached."""

    def __init__(self) -> None:
        self.patterns: dict[str, None] = {}
        self.labels: list[LabelSelector] = []
        self._bytes = LONGEST_SELECTORS
        self._instructions = MOST_INSTRUCTIONS

    def take(self, member: Member) -> str:
        """Take in a member of type Node; why it is not read, empty if it is."""
        selector = member.selector
        assert selector is not None
        if selector.regex_match is not None:
            fault = self._pattern(selector.regex_match.pattern)
            if fault:
                return f"regexMatch.pattern: {fault}"
        labels = selector.label_match
        if labels is not None and (labels.match_labels or labels.match_expressions):
            if not self._has_room(len(msgspec.json.encode(labels))):
                return f"labelMatch: {_TOO_MANY}"
            self.labels.append(labels)
        return ""

    def _pattern(self, pattern: str) -> str:
        if pattern in self.patterns:
            return ""
        if not self._has_room(len(pattern)):
            return _TOO_MANY
        judged = judge_regex(pattern)
        if judged.problem is not None:
            self._instructions -= judged.instructions
            return judged.problem
        if judged.instructions > self._instructions:
            self._instructions = 0
            return _TOO_MANY
        self._instructions -= judged.instructions
        self.patterns[pattern] = None
        return ""

    def _has_room(self, size: int) -> bool:
        if self._bytes < size + _PLACE or self._instructions <= 0:
            self._bytes = 0
            return False
        self._bytes -= size + _PLACE
        return True


_TOO_MANY = (
    "is not read: the patterns and label selectors up to here are longer or larger than those of one HyperNode "
    "may be; select the nodes by a label that they share"
)


class MemberTable:
    """Nodes, and which of them HyperNodes select directly; `settle` before reading.

    Attributes:
        nodes: Labels of nodes by name.
        selected: For each HyperNode, names of the nodes that it selects.
        holders: For each node that is selected, names of the HyperNodes that do.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Labels] = {}
        self.selected: dict[str, set[str]] = {}
        self.holders: dict[str, set[str]] = {}
        self._selectors: dict[str, Selectors] = {}
        self._by_name: dict[str, set[str]] = {}
        self._patterns: dict[str, _Pattern] = {}
        self._by_label: dict[str, dict[str, set[str]]] = {}
        self._has_new = False

    # -- HyperNodes --------------------------------------------------------------------------

    def set_selectors(self, name: str, selectors: Selectors) -> None:
        """Add a HyperNode or replace its selectors."""
        self.remove_selectors(name)
        self._selectors[name] = selectors
        self.selected[name] = set()
        self._has_new = True
        for each in selectors.names:
            self._by_name.setdefault(each, set()).add(name)
        for pattern in selectors.patterns:
            known = self._patterns.get(pattern)
            if known is None:
                known = self._patterns[pattern] = _Pattern(pattern, self.nodes)
            known.users.add(name)
        for selector in selectors.labels:
            key, values = _one_label(selector)
            for value in values:
                self._by_label.setdefault(key, {}).setdefault(value, set()).add(name)

    def settle(self) -> None:
        """Find the nodes of new HyperNodes."""
        if self._has_new:
            self._has_new = False
            for name, labels in self.nodes.items():
                self._hold(name, self._holders_of(name, labels))

    def remove_selectors(self, name: str) -> None:
        """Remove a HyperNode."""
        selectors = self._selectors.pop(name, None)
        if selectors is None:
            return
        for node in self.selected.pop(name):
            _discard(self.holders, node, name)
        for each in selectors.names:
            _discard(self._by_name, each, name)
        for pattern in selectors.patterns:
            users = self._patterns[pattern].users
            users.discard(name)
            if not users:
                del self._patterns[pattern]
        for selector in selectors.labels:
            key, values = _one_label(selector)
            by_value = self._by_label.get(key, {})
            for value in values:
                _discard(by_value, value, name)
            if not by_value:
                self._by_label.pop(key, None)

    # -- nodes -------------------------------------------------------------------------------

    def set_node(self, name: str, labels: Labels | None) -> Set[str]:
        """Add or update a node; the HyperNodes that it has joined or left, as far as they are settled."""
        labels = labels or _NO_LABELS
        before = self.nodes.get(name)
        if before is labels or before == labels:
            return set()
        self.nodes[name] = labels
        if before is None:
            for pattern in self._patterns.values():
                pattern.test(name)
        return self._hold(name, self._holders_of(name, labels)) if self._selectors else set()

    def remove_node(self, name: str) -> Set[str]:
        """Remove a node; the HyperNodes that it has left, as far as they are settled."""
        if self.nodes.pop(name, None) is None:
            return set()
        for pattern in self._patterns.values():
            pattern.names.discard(name)
        return self._hold(name, set())

    def _holders_of(self, name: str, labels: Labels) -> set[str]:
        found = set(self._by_name.get(name, ()))
        for pattern in self._patterns.values():
            if name in pattern.names:
                found |= pattern.users
        if self._by_label:
            asked = set(self._by_label.get("", {}).get("", ()))
            for key in self._by_label.keys() & labels.keys():
                asked |= self._by_label[key].get(labels[key], set())
            found.update(each for each in asked if _any_matches(self._selectors[each], labels))
        return found

    def _hold(self, name: str, holders: set[str]) -> Set[str]:
        before = self.holders.get(name, set())
        if holders:
            self.holders[name] = holders
        else:
            self.holders.pop(name, None)
        for each in before - holders:
            self.selected[each].discard(name)
        for each in holders - before:
            self.selected[each].add(name)
        return before ^ holders


class _Pattern:
    """A pattern, the nodes whose names it matches, and the HyperNodes that have it."""

    def __init__(self, pattern: str, nodes: Iterable[str]) -> None:
        self._search = searcher(pattern)
        self.names = set(filter(self._search, nodes))
        self.users: set[str] = set()

    def test(self, name: str) -> None:
        """Match the name of a new node."""
        if self._search(name):
            self.names.add(name)


def _one_label(selector: LabelSelector) -> tuple[str, Iterable[str]]:
    """A label that each selected node has, and its possible values; without one an empty key and an empty value."""
    for key, operator, values in selector.expressions():
        if operator == "In":
            return key, values
    return "", ("",)


def _any_matches(selectors: Selectors, labels: Labels) -> bool:
    return any(each.matches(labels) for each in selectors.labels)


def _discard(sets: dict[str, set[str]], key: str, member: str) -> None:
    found = sets.get(key)
    if found is not None:
        found.discard(member)
        if not found:
            del sets[key]
