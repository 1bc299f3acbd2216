"""Which nodes HyperNodes select directly, kept current node by node.

A node that comes, changes or goes is compared with the selectors that may concern it: names are looked up, labels are
looked up by one label of each selector, and patterns are matched once for each name. If a HyperNode comes or changes, all nodes are
compared so when they are next asked for.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from pumice.api.hypernodes import HyperNode, MemberSelector
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
_ANY = ("", "")
"""Stands for labels of nodes that cannot be looked up by one of them."""


class Selectors:
    """The members of a HyperNode, by the way in which they are selected, within limits on what is compared with each node.

    Attributes:
        labels: Selectors of nodes; none of them is empty.
        fault: A sentence that begins with a path about the first member that is not read; empty if there is none.
    """

    def __init__(self, hyper_node: HyperNode) -> None:
        self.names: set[str] = set()
        self.hyper_nodes: set[str] = set()
        self.patterns: dict[str, None] = {}
        self.labels: list[LabelSelector] = []
        self.fault = ""
        self._bytes = LONGEST_SELECTORS
        self._instructions = MOST_INSTRUCTIONS
        for index, member in enumerate(hyper_node.members):
            if member.selector is None:
                continue
            if fault := self._take(member.selector, is_node=member.type != HYPER_NODE.kind):
                self.fault = self.fault or f"spec.members[{index}].selector.{fault}"

    def _take(self, selector: MemberSelector, *, is_node: bool) -> str:
        """Take in a member; why it is not read, empty if it is."""
        if selector.exact_match is not None:
            (self.names if is_node else self.hyper_nodes).add(selector.exact_match.name)
        if not is_node:
            ways = [way for way in selector.ways if way != "exactMatch"]
            said = "members of type HyperNode are selected by exactMatch only"
            return f"{ways[0]}: {said}" if ways else ""
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
        self._instructions -= judged.instructions
        if judged.problem is not None:
            return judged.problem
        if self._instructions < 0:
            return _TOO_MANY
        self.patterns[pattern] = None
        return ""

    def _has_room(self, size: int) -> bool:
        self._bytes -= size + _PLACE
        return self._bytes >= 0 and self._instructions > 0


_TOO_MANY = (
    "is not read: the patterns and label selectors up to here are longer or larger than those of one HyperNode "
    "may be; select the nodes by a label that they share"
)


class MemberTable:
    """Nodes, and which HyperNodes select them directly.

    Attributes:
        nodes: Labels of nodes by name.
        holders: For each node that is selected, names of the HyperNodes that do.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Labels] = {}
        self.holders: dict[str, set[str]] = {}
        self._patterns: dict[str, tuple[Callable[[str], bool], set[str]]] = {}
        self.set_selectors({})

    def set_selectors(self, selectors: Mapping[str, Selectors]) -> None:
        """Compare all nodes with the selectors of all HyperNodes, by name."""
        self._selectors = selectors
        self._by_name: defaultdict[str, set[str]] = defaultdict(set)
        self._by_pattern: defaultdict[str, set[str]] = defaultdict(set)
        self._by_label: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for name, each in selectors.items():
            for node in each.names:
                self._by_name[node].add(name)
            for pattern in each.patterns:
                self._by_pattern[pattern].add(name)
            for selector in each.labels:
                for label in _one_label(selector):
                    self._by_label[label].add(name)
        known = self._patterns
        self._patterns = {
            each: known.get(each) or _matched(each, self.nodes) for each in self._by_pattern
        }
        self.holders.clear()
        for name in self.nodes if selectors else ():
            self._find_holders(name)

    def set_node(self, name: str, labels: Labels | None) -> bool:
        """Add or update a node; True if it has joined or left a HyperNode."""
        labels = labels or _NO_LABELS
        before = self.nodes.get(name)
        if before is labels or before == labels:
            return False
        self.nodes[name] = labels
        if before is None:
            for search, names in self._patterns.values():
                if search(name):
                    names.add(name)
        return bool(self._selectors) and self._find_holders(name)

    def remove_node(self, name: str) -> bool:
        """Remove a node; True if it was in a HyperNode."""
        if self.nodes.pop(name, None) is None:
            return False
        for _, names in self._patterns.values():
            names.discard(name)
        return self.holders.pop(name, None) is not None

    def _find_holders(self, name: str) -> bool:
        """Find the HyperNodes of a node; True if they are others than before."""
        found = set(self._by_name.get(name, ()))
        for pattern, users in self._by_pattern.items():
            if name in self._patterns[pattern][1]:
                found |= users
        if self._by_label:
            labels = self.nodes[name]
            asked: set[str] = set()
            asked.update(*(self._by_label.get(each, ()) for each in (_ANY, *labels.items())))
            for each in asked:
                if any(one.matches(labels) for one in self._selectors[each].labels):
                    found.add(each)
        before = self.holders.pop(name, set())
        if found:
            self.holders[name] = found
        return before != found


def _matched(pattern: str, nodes: Iterable[str]) -> tuple[Callable[[str], bool], set[str]]:
    """What matches a name with a pattern, and the nodes whose names it matches."""
    search = searcher(pattern)
    return search, set(filter(search, nodes))


def _one_label(selector: LabelSelector) -> Sequence[tuple[str, str]]:
    """Labels one of which each selected node has; `_ANY` if that is not known."""
    for key, operator, values in selector.expressions():
        if operator == "In":
            return [(key, value) for value in values]
    return [_ANY]
