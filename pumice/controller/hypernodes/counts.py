"""The number of Nodes of each HyperNode, including those of the HyperNodes in it."""

from collections.abc import Container, Iterator, Mapping, Set

from pumice.api.hypernodes import HyperNode, Member
from pumice.api.meta import LabelSelector
from pumice.api.regexes import regex_problem, searcher
from pumice.controller.hypernodes.domains import Labels

__all__ = ["NodeCounter"]

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

        Args:
            hyper_nodes: All of them by name.
            nodes: Labels of all Nodes by name.
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
