"""Sums in the tree: guarantee and deserved of queues add up to at most those of the queue above.

A resource that the queue above does not name counts as 0 there, except for queue root: it has the whole cluster, so it
limits only resources that it names. All quantities are exact milli-units.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from pumice.api import keys
from pumice.api.quantities import format_milli
from pumice.api.queues import Queue
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.queues.amounts import Amounts, guaranteed, milli, readable
from pumice.webhook.rules.queues.capability import ruled
from pumice.webhook.rules.queues.excess import Excess, listed
from pumice.webhook.rules.queues.overlay import Tree
from pumice.webhook.rules.rule import Rule

Q_SIB_GUAR = Rule(
    "Q-SIB-GUAR",
    "guarantees of sibling queues add up to at most their parent's",
    "The parent would guarantee more than it is guaranteed.",
    "guarantee: {resource: {cpu: 7}} beside a sibling's 2, where the parent has 8",
    compares=True,
)
Q_SIB_DES = Rule(
    "Q-SIB-DES",
    "deserved shares of sibling queues add up to at most their parent's",
    "The parent cannot divide more than it deserves.",
    "deserved: {cpu: 7} beside a sibling's 2, where the parent has 8",
    compares=True,
)
Q_CHILD_GUAR = Rule(
    "Q-CHILD-GUAR",
    "the guarantee is at least what the queues below are guaranteed",
    "The queue would guarantee more than it is guaranteed.",
    "guarantee: {resource: {cpu: 10}}, where queues below have 13 in all",
    compares=True,
)
Q_CHILD_DES = Rule(
    "Q-CHILD-DES",
    "what is deserved is at least what the queues below deserve",
    "The queue cannot divide more than it deserves.",
    "deserved: {cpu: 10}, where queues below have 13 in all",
    compares=True,
)


def _deserved(queue: Queue) -> Amounts:
    return queue.spec.deserved or _NONE


def _capability(queue: Queue) -> Amounts:
    return queue.spec.capability or _NONE


_NONE: Amounts = {}


class _Share(NamedTuple):
    """One kind of quantity that is summed.

    Attributes:
        noun: Its name in messages.
        path: Its path.
        of: Returns a queue's quantities.
        siblings: The rule about it and its siblings'.
        children: The rule about it and those below.
        of_root: Limits in root, the nearest first, with their paths.
    """

    noun: str
    path: str
    of: Callable[[Queue], Amounts]
    siblings: Rule
    children: Rule
    of_root: tuple[tuple[str, Callable[[Queue], Amounts]], ...]

    def over(self, total: int) -> str:
        """First part of the message about a sum that is too large; the caller appends the limit."""
        return (
            f"sum of children's {self.noun}, {format_milli(total)}, "
            f"exceeds parent's {self.noun} limit"
        )


_GUARANTEE_PATH, _DESERVED_PATH = "spec.guarantee.resource", "spec.deserved"
_OF_ROOT = (
    (_GUARANTEE_PATH, guaranteed),
    (_DESERVED_PATH, _deserved),
    ("spec.capability", _capability),
)
_SHARES = (
    _Share("guarantee", _GUARANTEE_PATH, guaranteed, Q_SIB_GUAR, Q_CHILD_GUAR, _OF_ROOT),
    _Share("deserved", _DESERVED_PATH, _deserved, Q_SIB_DES, Q_CHILD_DES, _OF_ROOT[1:]),
)


def sums(case: Case, queue: Queue, old: Queue | None) -> Iterator[Excess]:
    """Find sums above the share of the queue above, if this queue is involved."""
    tree = Tree(case.view, queue)
    parent = tree.parent
    stays = old is not None and (old.spec.parent or keys.ROOT_QUEUE) == (
        queue.spec.parent or keys.ROOT_QUEUE
    )
    if parent is not None:
        for share in _SHARES:
            yield from _among_siblings(tree, share, parent, old if stays else None)
    children = tree.children(tree.name)
    if children:
        for share in _SHARES:
            yield from _among_children(tree, share, children, old)


def _among_siblings(
    tree: Tree, share: _Share, parent: Queue, old: Queue | None
) -> Iterator[Excess]:
    before = readable(share.of(old)) if old is not None else {}
    own = {
        name: amount
        for name, amount in readable(share.of(tree.queue)).items()
        if amount > max(0, before.get(name, 0))
    }
    limits = {name: found[0] for name in own if (found := _limit(share, parent, name)) is not None}
    if not limits:
        return
    above = parent.metadata.name
    siblings = [each for each in tree.children(above) if each is not tree.queue]
    theirs = [amounts for each in siblings if (amounts := share.of(each))]
    for name, limit in sorted(limits.items()):
        total = own[name] + _total(theirs, name)
        if total <= limit:
            continue
        message = f'{share.over(total)}, {format_milli(limit)} in queue "{above}"'
        if total != own[name]:
            message += f": {format_milli(own[name])} here, beside {_parts(share, siblings, name)}"
        limiting = ("siblings", share.noun, above, name)
        rule = ruled(share.siblings, name, above)
        yield Excess(limiting, total - limit, rule, f"{share.path}.{name}", message)


def _among_children(
    tree: Tree, share: _Share, children: list[Queue], old: Queue | None
) -> Iterator[Excess]:
    theirs = [amounts for each in children if (amounts := share.of(each))]
    for name in sorted({name for amounts in theirs for name in amounts}):
        found = _limit(share, tree.queue, name)
        before = _limit(share, old, name) if old is not None else None
        if found is None or (before is not None and found[0] >= before[0]):
            continue
        limit, path = found
        total = _total(theirs, name)
        if total <= limit:
            continue
        message = f"{share.over(total)}, which is {format_milli(limit)} here: {_parts(share, children, name)}"
        rule = ruled(share.children, name, tree.name)
        yield Excess(("children", share.noun, name), total - limit, rule, f"{path}.{name}", message)


def _limit(share: _Share, queue: Queue, name: str) -> tuple[int, str] | None:
    """The share of a resource for all queues below a queue, and its path."""
    if queue.metadata.name != keys.ROOT_QUEUE:
        return milli(share.of(queue).get(name)) or 0, share.path
    for path, of in share.of_root:
        limit = milli(of(queue).get(name))
        if limit is not None:
            return limit, path
    return None


def _total(found: Iterable[Amounts], name: str) -> int:
    """The sum of a resource; equal texts are parsed once, since siblings are often alike."""
    counts = Counter([amounts.get(name) for amounts in found])
    return sum((milli(value) or 0) * count for value, count in counts.items())


def _parts(share: _Share, queues: Iterable[Queue], name: str) -> str:
    """The largest parts of a sum, with their queues."""
    parts = [(milli(share.of(each).get(name)), each.metadata.name) for each in queues]
    ordered = sorted((-amount, whose) for amount, whose in parts if amount)
    return listed(f'"{whose}" ({format_milli(-amount)})' for amount, whose in ordered)
