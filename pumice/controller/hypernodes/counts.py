"""How many Nodes HyperNodes have, those of their HyperNodes included."""

from collections.abc import Iterator, Mapping

from pumice.api.hypernodes import HyperNode, Member
from pumice.api.regexes import regex_problem
from pumice.controller.hypernodes.domains import Labels

__all__ = ["count_nodes"]


def count_nodes(
    hyper_nodes: Mapping[str, HyperNode], nodes: Mapping[str, Labels]
) -> dict[str, int]:
    """The number of Nodes of each HyperNode.

    A Node counts once, and only if it exists. HyperNodes may contain each other by mistake.

    Args:
        hyper_nodes: All of them by name.
        nodes: Labels of all Nodes by name.
    """
    own_labels = {name: each.metadata.labels or {} for name, each in hyper_nodes.items()}
    direct: dict[str, set[str]] = {}
    below: dict[str, set[str]] = {}
    for name, each in hyper_nodes.items():
        direct[name], below[name] = set(), set()
        for member in each.members:
            if member.type == "Node":
                direct[name].update(_selected(member, nodes))
            else:
                below[name].update(_selected(member, own_labels))
    return {name: _reached(name, direct, below) for name in hyper_nodes}


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


def _selected(member: Member, candidates: Mapping[str, Labels]) -> Iterator[str]:
    """Names that a member selects; an empty label selector selects none, as in Volcano."""
    selector = member.selector
    if selector is None:
        return
    if selector.exact_match is not None and selector.exact_match.name in candidates:
        yield selector.exact_match.name
    if selector.regex_match is not None and regex_problem(selector.regex_match.pattern) is None:
        import re2  # type: ignore[import-untyped]  # late: most HyperNodes list names

        search = re2.compile(selector.regex_match.pattern).search
        yield from (name for name in candidates if search(name))
    labels = selector.label_match
    if labels is not None and (labels.match_labels or labels.match_expressions):
        yield from (name for name, found in candidates.items() if labels.matches(found))
