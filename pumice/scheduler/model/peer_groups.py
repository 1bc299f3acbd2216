"""What terms select, as sums of groups of pods that many terms share.

A group is all pods that have some marks: a label, a label with a value, a namespace, a label of their namespace. By inclusion and
exclusion each term is a sum of groups with signs: `app NotIn [a]` is all pods of the namespace minus those with `app: a`. Thousands
of terms that differ in one value thus share the group of which almost all pods are members, and have a small one each: what has
to be kept for a pod follows from its own labels and terms, and not from the number of terms that select it.

A sum has a limit. An expression that would exceed it is not taken apart; the groups then have it as a condition.
"""

from collections.abc import Iterable

from pumice.scheduler.model.affinity_terms import Requirement, Requirements, Selection, TermKey

IN_NAMESPACE, IS_KNOWN, NAMESPACE_HAS_LABEL, HAS_LABEL = range(4)
"""What a mark is about: the namespace of a pod, whether that is known, one of its labels, and a label of the pod."""

Mark = tuple[int, str, str | None]
"""What it is about, the key of a label, and the value; None for any value."""

Groups = dict[frozenset[Mark | Selection], int]
"""A sum: how often pods count that have all these marks, and that these conditions select."""

_LIMIT = 16
"""Groups that a sum may have, besides four for each of those that its expressions have by themselves."""

_ALL: Groups = {frozenset(): 1}


def groups_of(key: TermKey) -> Groups:
    """The pods that a term selects, as a sum."""
    factors: dict[Requirement | Selection, tuple[Groups, Selection]] = {}
    for part in key:
        if part.selector is None:
            return {}
        scope = Selection(part.namespaces, part.namespace_selector, ())
        factors[scope] = _scope(scope), scope
        for each in part.selector:
            factors[each] = _expression(HAS_LABEL, each), Selection((), (), (each,))
    limit = _limit(len(groups) for groups, _ in factors.values())
    found = _ALL
    for groups, whole in sorted(factors.values(), key=lambda factor: len(factor[0])):
        fits = len(found) * len(groups) <= limit
        found = _product(found, groups if fits else {frozenset([whole]): 1})
    return found


def _limit(counts: Iterable[int]) -> int:
    return _LIMIT + 4 * sum(counts)


def _expression(about: int, requirement: Requirement) -> Groups:
    key, operator, values = requirement
    exact: list[frozenset[Mark | Selection]] = [frozenset([(about, key, each)]) for each in values]
    present: frozenset[Mark | Selection] = frozenset([(about, key, None)])
    match operator:
        case "In":
            return dict.fromkeys(exact, 1)
        case "NotIn":
            return _ALL | dict.fromkeys(exact, -1)
        case "Exists":
            return {present: 1}
        case "DoesNotExist":
            return _ALL | {present: -1}
    return {}


def _scope(scope: Selection) -> Groups:
    """The pods of the namespaces that a term is about."""
    named: Groups = {frozenset([(IN_NAMESPACE, "", each)]): 1 for each in scope.namespaces}
    if scope.namespace_selector is None:
        return named
    if not scope.namespace_selector:
        return _ALL
    found = _labelled(scope.namespace_selector)
    if found is None:
        return {frozenset([scope]): 1}
    both = {group: -count for group, count in _product(named, found).items()}
    return _sum(named, _sum(found, both))


def _labelled(selector: Requirements) -> Groups | None:
    """The pods of known namespaces with some labels; None if the sum is too long."""
    factors = [_expression(NAMESPACE_HAS_LABEL, each) for each in selector]
    limit = _limit(map(len, factors))
    found: Groups = {frozenset([(IS_KNOWN, "", None)]): 1}
    for each in factors:
        found = _product(found, each)
        if len(found) > limit:
            return None
    return found


def _sum(one: Groups, other: Groups) -> Groups:
    found = dict(one)
    for group, count in other.items():
        found[group] = found.get(group, 0) + count
    return {group: count for group, count in found.items() if count}


def _product(one: Groups, other: Groups) -> Groups:
    """The pods of both sums."""
    found: Groups = {}
    for left, count in one.items():
        for right, times in other.items():
            both = _both(left, right)
            if both is not None:
                found[both] = found.get(both, 0) + count * times
    return {group: count for group, count in found.items() if count}


def _both(
    left: frozenset[Mark | Selection], right: frozenset[Mark | Selection]
) -> frozenset[Mark | Selection] | None:
    """The pods of both groups; None if there can be none, because a label has one value."""
    values: dict[tuple[int, str], str | None] = {}
    found: set[Mark | Selection] = set()
    for each in (*left, *right):
        if isinstance(each, Selection):
            found.add(each)
            continue
        about, key, value = each
        known = values.get((about, key))
        if known is not None and value is not None and known != value:
            return None
        values[about, key] = value if known is None else known
    found.update((about, key, value) for (about, key), value in values.items())
    return frozenset(found)
