"""HyperNodes: tier and members."""

import msgspec

from pumice.api.hypernodes import NO_SELECTOR, SEVERAL_SELECTORS, HyperNode, Member
from pumice.api.kinds import HYPER_NODE
from pumice.api.regexes import judge_regex
from pumice.webhook.rules.case import Case, Check
from pumice.webhook.rules.rule import Rule, stricter, warned
from pumice.webhook.rules.templates import shapes
from pumice.webhook.rules.templates.metadata import label_selector
from pumice.webhook.rules.templates.table import Site

HN_NO_MEMBERS = Rule(
    "HN-NO-MEMBERS",
    "a HyperNode has members",
    "Without members it has no place in the network.",
    "members: []",
    reason="FieldValueRequired",
)
HN_TIER = Rule(
    "HN-TIER",
    "the tier is 0 or more",
    "Tiers are counted from the nodes upwards.",
    "tier: -1",
)
HN_SELECTOR = Rule(
    "HN-SELECTOR",
    "a member is selected in one way",
    "With several selectors it is unknown which one applies.",
    "selector: {exactMatch: {name: node-1}, regexMatch: {pattern: node-.*}}",
    reason="FieldValueForbidden",
)
HN_NO_SELECTOR = stricter(
    "HN-NO-SELECTOR",
    "a member has a selector",
    "A member without a selector selects no nodes.",
    "members: [{type: Node}]",
    reason="FieldValueRequired",
)
HN_REGEX = Rule(
    "HN-REGEX",
    "a pattern is a regular expression of RE2",
    "Neither Volcano nor Pumice could match node names with it; RE2 has no look-around and no "
    "back-references.",
    "regexMatch: {pattern: 'rack-(1'}",
)
HN_LABELS = shapes.stricter(
    "HN-LABELS",
    "a label selector is valid",
    "No node matches an invalid selector.",
    "labelMatch: {matchExpressions: [{key: rack, operator: In}]}",
)
_LABEL_SELECTOR = label_selector(HN_LABELS)
HN_EVERYTHING = warned(
    "HN-EVERYTHING",
    "a label selector is not empty",
    "An empty selector selects no node.",
    "labelMatch: {}",
)
HN_SELF = stricter(
    "HN-SELF",
    "a HyperNode is not a member of itself",
    "The tree of HyperNodes would have a cycle.",
    "metadata: {name: rack-1}, members: [{type: HyperNode, selector: {exactMatch: {name: rack-1}}}]",
)
HN_DUPLICATE = warned(
    "HN-DUPLICATE",
    "members are listed once",
    "The second of two equal members has no effect; another one may have been meant.",
    "the member node-1 twice",
    reason="FieldValueDuplicate",
)
HN_INEXACT = warned(
    "HN-INEXACT",
    "HyperNodes that are members are named one by one",
    "The tree of HyperNodes is built by exact names; other selectors are ignored, also by Volcano.",
    "members: [{type: HyperNode, selector: {regexMatch: {pattern: rack-.*}}}]",
)


def _tier(case: Case, hyper_node: HyperNode) -> None:
    tier = hyper_node.spec.tier
    if tier < 0:
        case.report(HN_TIER, "spec.tier", f"must be 0 or more, found {tier}")


def _members(case: Case, hyper_node: HyperNode) -> None:
    if not hyper_node.members:
        message = "member must have at least one member: list the nodes or HyperNodes that are in this HyperNode"
        case.report(HN_NO_MEMBERS, "spec.members", message)
    seen: dict[bytes, int] = {}
    patterns = _Patterns()
    for index, member in enumerate(hyper_node.members):
        path = f"spec.members[{index}]"
        _member(case, member, f"{path}.selector", hyper_node.metadata.name, patterns)
        first = seen.setdefault(msgspec.json.encode(member, order="sorted"), index)
        if first != index:
            case.report(HN_DUPLICATE, path, f"is the same as spec.members[{first}]")


class _Patterns:
    """Checks the patterns of a HyperNode, within a budget for large ones.

    Compiling for minutes would block all other requests of the webhook, so the budget does not depend on the number of
    members. Volcano has no limit.
    """

    __slots__ = ("_known", "_room")

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._room = _ROOM

    def judge(self, case: Case, pattern: str, path: str) -> None:
        is_new = pattern not in self._known
        if self._room < 0 and is_new:
            message = "is not checked: the patterns before it are as large as all may be together"
            case.report(HN_REGEX, path, message, stricter=True)
            return
        found = judge_regex(pattern)
        if is_new:
            self._known.add(pattern)
            self._room -= max(0, found.instructions - _FREE * len(pattern))
        if found.problem is not None:
            message = f"member regexMatch pattern is invalid: {found.problem}"
            case.report(HN_REGEX, path, message, stricter=found.large)


_ROOM = 200_000
"""Maximum number of instructions of all patterns together, without free ones: a tenth or two of a second."""

_FREE = 8
"""Free instructions for each character; more are needed only for large character classes and repetitions."""


def _member(case: Case, member: Member, path: str, name: str, patterns: _Patterns) -> None:
    selector = member.selector
    if selector is None:
        message = "must have one of exactMatch, regexMatch and labelMatch, found none"
        case.report(HN_NO_SELECTOR, path, message)
        return
    ways = selector.ways
    if len(ways) > 1:
        case.report(HN_SELECTOR, path, f"{SEVERAL_SELECTORS}, found {' and '.join(ways)}")
    elif not ways:
        case.report(HN_SELECTOR, path, f"{NO_SELECTOR}, found none", "FieldValueRequired")
    of_hyper_nodes = member.type == HYPER_NODE.kind
    if of_hyper_nodes and ways and ways != ("exactMatch",):
        message = "members of type HyperNode without exactMatch are ignored"
        case.report(HN_INEXACT, path, message)
    exact = selector.exact_match
    if of_hyper_nodes and exact is not None and name and exact.name == name:
        case.report(HN_SELF, f"{path}.exactMatch.name", f'"{name}" is the HyperNode itself')
    if selector.regex_match is not None:
        patterns.judge(case, selector.regex_match.pattern, f"{path}.regexMatch.pattern")
    if (labels := selector.label_match) is not None:
        if not labels.match_labels and not labels.match_expressions:
            message = "is empty, so it selects none of them"
            case.report(HN_EVERYTHING, f"{path}.labelMatch", message)
        _LABEL_SELECTOR(Site(case, f"{path}.labelMatch"), msgspec.to_builtins(labels), "", {})


CHECKS: tuple[Check[HyperNode], ...] = (
    (HN_TIER, _tier),
    (HN_NO_MEMBERS, _members),
)
