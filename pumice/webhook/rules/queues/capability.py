"""Capability in the queue tree: at most that of the queues above, at least that of the queues below.

A queue without a limit for a resource has the limit of the nearest queue above that has one. So each capability is
compared with the nearest one above it. All quantities are exact milli-units. `ruled` selects the code: limits of root,
and resources that Volcano does not compare, have their own rules.
"""

from collections.abc import Iterable, Iterator, Sequence

from pumice.api import keys
from pumice.api.quantities import format_milli
from pumice.api.queues import Queue
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.queues.amounts import Excess, readable
from pumice.webhook.rules.queues.tree import Tree, first_ten
from pumice.webhook.rules.rule import Rule, stricter

Q_ROOT_LIMIT = stricter(
    "Q-ROOT-LIMIT",
    "what the queue root limits is limited for the queues below it",
    "root is the whole cluster; no queue can get more than it has. Volcano does not compare with root.",
    "capability: {cpu: 20}, where root has capability: {cpu: 10}",
    compares=True,
)
Q_TREE_OTHER = stricter(
    "Q-TREE-OTHER",
    "quantities of every resource fit into the tree of queues",
    "Volcano compares cpu, memory, pods, ephemeral storage, huge pages, volumes and extended resources, and no others.",
    "deserved: {count/jobs.batch: 20}, where the parent has deserved: {count/jobs.batch: 10}",
    compares=True,
)


_COMPARED = frozenset({"cpu", "ephemeral-storage", "memory", "pods"})
_COMPARED_PREFIXES = ("attachable-volumes-", "hugepages-")
_NOT_COMPARED_PREFIXES = ("count/", "requests.")


def ruled(rule: Rule, resource: str, limiting: str) -> Rule:
    """The rule for a resource above the limit of queue `limiting`: `rule` if Volcano checks it, too."""
    if limiting == keys.ROOT_QUEUE:
        return Q_ROOT_LIMIT
    extended = "/" in resource and not resource.startswith(_NOT_COMPARED_PREFIXES)
    compared = resource in _COMPARED or resource.startswith(_COMPARED_PREFIXES) or extended
    return rule if rule.stricter or compared else Q_TREE_OTHER


Q_CAP_GT_ANCESTOR = Rule(
    "Q-CAP-GT-ANCESTOR",
    "capability is at most that of the nearest queue above that limits the resource",
    "Pods of a queue count in all queues above it, so the larger limit could never be reached.",
    "capability: {cpu: 20}, where the parent has capability: {cpu: 10}",
    compares=True,
)
Q_CAP_LT_DESC = Rule(
    "Q-CAP-LT-DESC",
    "capability is at least that of every queue below",
    "The queues below could never use their capability.",
    "capability: {cpu: 10}, where a queue below has capability: {cpu: 12}",
    compares=True,
)
Q_CAP_DESC_GT_ANCESTOR = stricter(
    "Q-CAP-DESC-GT-ANCESTOR",
    "if a queue has no limit, the queues below it are within the limits above it",
    "When a queue moves or drops its limit, the limits above apply to the queues below it.",
    "spec: {parent: small}, where small has capability: {cpu: 10} and a queue below this one {cpu: 12}",
    compares=True,
)
Q_CAP_BELOW_ZERO = stricter(
    "Q-CAP-BELOW-ZERO",
    "below a capability of 0 no queue has more",
    "0 means none of the resource; Volcano ignores the 0 in this comparison.",
    "capability: {nvidia.com/gpu: 4}, where the parent has capability: {nvidia.com/gpu: 0}",
    compares=True,
)

_Named = tuple[int, str]
"""A capability and the queue that has it."""


def capability(case: Case, queue: Queue, old: Queue | None) -> Iterator[Excess]:
    """Find capabilities above those of queues above, if this queue is involved."""
    spec = queue.spec
    if old is not None and (spec.capability, spec.parent) == (old.spec.capability, old.spec.parent):
        return
    tree = Tree(case.view, queue)
    own = readable(spec.capability)
    above = [(readable(each.spec.capability), each.metadata.name) for each in tree.climb()[0]]
    limited = own.keys() | {name for limits, _ in above for name in limits}
    below = _below(tree, frozenset(limited)) if limited else {}
    for name in sorted(limited):
        limits = [(found[name], whose) for found, whose in above if name in found]
        yield from _over_those_above(name, own.get(name, 0), limits, below.get(name, ()))
    for name, amount in sorted(own.items()):
        yield from _under_those_below(tree.name, name, amount, below.get(name, ()))


def _below(tree: Tree, limited: frozenset[str]) -> dict[str, list[_Named]]:
    """Capabilities of queues below, largest first: those with none in between."""
    found: dict[str, list[_Named]] = {}
    seen = {tree.name}
    waiting = [(child, limited) for child in tree.children(tree.name)]
    while waiting:
        queue, free = waiting.pop()
        name = queue.metadata.name
        if name in seen:
            continue
        seen.add(name)
        own = readable(queue.spec.capability)
        taken = [each for each in free if own.get(each, 0) > 0]
        for each in taken:
            found.setdefault(each, []).append((own[each], name))
        if rest := free.difference(taken):
            waiting.extend((child, rest) for child in tree.children(name))
    for capabilities in found.values():
        capabilities.sort(key=lambda named: (-named[0], named[1]))
    return found


def _over_those_above(
    name: str, own: int, above: Iterable[_Named], below: Sequence[_Named]
) -> Iterator[Excess]:
    """Compare a resource of a queue, or of the queues below it if it has no limit, with the queues above.

    A limit of 0 applies beside the nearest larger one, because Volcano ignores it.
    """
    if own > 0:
        amount, path, usual = own, f"spec.capability.{name}", Q_CAP_GT_ANCESTOR
        found = f"{name} {format_milli(own)}"
    elif below:
        (amount, largest), path, usual = below[0], "spec.parent", Q_CAP_DESC_GT_ANCESTOR
        found = f'{name} {format_milli(amount)} of queue "{largest}" below it'
    else:
        return
    has_zero = False
    for limit, queue in above:
        if amount > limit and (limit > 0 or not has_zero):
            rule = ruled(usual if limit > 0 else Q_CAP_BELOW_ZERO, name, queue)
            message = f'{found} exceeds its ancestor\'s capability, {format_milli(limit)} in queue "{queue}"'
            yield Excess(("above", queue, name), amount - limit, rule, path, message)
        if limit > 0:
            return
        has_zero = True


def _under_those_below(
    queue: str, name: str, own: int, below: Sequence[_Named]
) -> Iterator[Excess]:
    larger = [each for each in below if each[0] > own]
    if not larger:
        return
    largest, whose = larger[0]
    names = f'queue "{whose}"'
    if len(larger) > 1:
        names = "queues " + first_ten(
            f'"{each}" ({format_milli(amount)})' for amount, each in larger
        )
    rule = ruled(Q_CAP_LT_DESC if own > 0 else Q_CAP_BELOW_ZERO, name, queue)
    message = (
        f"{name} {format_milli(own)} is smaller than its descendants' max capability, "
        f"{format_milli(largest)} in {names}"
    )
    yield Excess(("below", name), largest - own, rule, f"spec.capability.{name}", message)
