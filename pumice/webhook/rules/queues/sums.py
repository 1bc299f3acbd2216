"""Sums in the tree: guarantee and deserved of queues add up to at most those of the queue above.

A resource that the queue above does not name counts as 0 there, except for queue root: it has the whole cluster, so it
limits only resources that it names. All quantities are exact milli-units.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pumice.api import keys
from pumice.api.quantities import format_milli
from pumice.api.queues import Queue
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.queues.amounts import AMOUNTS, Amounts, milli, readable
from pumice.webhook.rules.queues.capability import ruled
from pumice.webhook.rules.queues.excess import Excess, listed
from pumice.webhook.rules.queues.tree import Tree
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


class _Share(NamedTuple):
    """One kind of quantity that is summed.

    Attributes:
        noun: Its name in messages.
        of: Returns a queue's quantities.
        siblings: The rule about it and its siblings'.
        children: The rule about it and those below.
        paths: Paths of limits in root, the nearest first; in other queues only the first one counts.
    """

    noun: str
    of: Callable[[Queue], Amounts]
    siblings: Rule
    children: Rule
    paths: tuple[str, ...]

    def limits(self, queue: Queue, names: Iterable[str]) -> dict[str, tuple[int, str]]:
        """The shares of resources for all queues below a queue, and their paths."""
        if queue.metadata.name != keys.ROOT_QUEUE:
            found = self.of(queue)
            return {name: (milli(found.get(name)) or 0, self.paths[0]) for name in sorted(names)}
        return {
            name: (limit, path)
            for name in sorted(names)
            for path in reversed(self.paths)
            if (limit := milli(AMOUNTS[path](queue).get(name))) is not None
        }


_PATHS = ("spec.guarantee.resource", "spec.deserved", "spec.capability")
_SHARES = (
    _Share("guarantee", AMOUNTS[_PATHS[0]], Q_SIB_GUAR, Q_CHILD_GUAR, _PATHS),
    _Share("deserved", AMOUNTS[_PATHS[1]], Q_SIB_DES, Q_CHILD_DES, _PATHS[1:]),
)


def sums(case: Case, queue: Queue, _: Queue | None) -> Iterator[Excess]:
    """Find sums above the share of the queue above, if this queue is involved."""
    tree = Tree(case.view, queue)
    if (parent := tree.parent) is not None:
        for share in _SHARES:
            own = {name: each for name, each in readable(share.of(queue)).items() if each > 0}
            if limits := share.limits(parent, own):
                siblings = [
                    each for each in tree.children(parent.metadata.name) if each is not queue
                ]
                yield from _sums(share, parent, limits, siblings, own)
    if children := tree.children(tree.name):
        for share in _SHARES:
            names = {name for each in children for name in share.of(each)}
            yield from _sums(share, queue, share.limits(queue, names), children, {})


def _sums(
    share: _Share,
    above: Queue,
    limits: Mapping[str, tuple[int, str]],
    others: Sequence[Queue],
    own: Mapping[str, int],
) -> Iterator[Excess]:
    """Find sums of other queues and of what the checked queue has itself; if it has none, they are below it."""
    theirs = [amounts for each in others if (amounts := share.of(each))]
    for name, (limit, path) in limits.items():
        mine = own.get(name, 0)
        total = mine + _total(theirs, name)
        if total <= limit:
            continue
        parts = _parts(share, others, name)
        message = (
            f"sum of children's {share.noun}, {format_milli(total)}, "
            f"exceeds parent's {share.noun} limit, "
        )
        if not own:
            message += f"which is {format_milli(limit)} here: {parts}"
        else:
            path = share.paths[0]
            message += f'{format_milli(limit)} in queue "{above.metadata.name}"'
            if total != mine:
                message += f": {format_milli(mine)} here, beside {parts}"
        rule = ruled(share.siblings if own else share.children, name, above.metadata.name)
        limiting = (share.noun, above.metadata.name, name)
        yield Excess(limiting, total - limit, rule, f"{path}.{name}", message)


def _total(found: Iterable[Amounts], name: str) -> int:
    """The sum of a resource; equal texts are parsed once, since siblings are often alike."""
    counts = Counter([amounts.get(name) for amounts in found])
    return sum((milli(value) or 0) * count for value, count in counts.items())


def _parts(share: _Share, queues: Iterable[Queue], name: str) -> str:
    """The largest parts of a sum, with their queues."""
    parts = [(milli(share.of(each).get(name)), each.metadata.name) for each in queues]
    ordered = sorted((-amount, whose) for amount, whose in parts if amount)
    return listed(f'"{whose}" ({format_milli(-amount)})' for amount, whose in ordered)
