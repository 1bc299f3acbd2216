"""Sums in the tree: guarantee and deserved of queues add up to at most those of the queue above.

A resource that the queue above does not name counts as 0 there, except for queue root: it has the whole cluster, so it
limits only resources that it names. All quantities are exact milli-units.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import NamedTuple

from pumice.api import keys
from pumice.api.quantities import format_milli
from pumice.api.queues import Queue
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.queues.amounts import AMOUNTS, Amounts, Excess, milli, readable
from pumice.webhook.rules.queues.capability import ruled
from pumice.webhook.rules.queues.tree import LISTED, Tree, first_ten
from pumice.webhook.rules.rule import Rule
from pumice.webhook.view import AdmissionView

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


_Named = tuple[int, str]
"""A quantity in milli-units and the queue that has it."""


class _Children:
    """Quantities of one kind of the children of a queue, added up when a resource is first asked for.

    Siblings are checked one after the other against the same sums, so each query says which of the children do not count.
    """

    __slots__ = ("_found", "_naming", "_ordered", "_totals")

    def __init__(self, children: Iterable[Queue], of: Callable[[Queue], Amounts]) -> None:
        self._found = {each.metadata.name: found for each in children if (found := of(each))}
        self._totals: dict[str, int] = {}
        self._ordered: dict[str, list[_Named]] = {}
        self._naming: Counter[str] | None = None

    @classmethod
    def of(cls, of: Callable[[Queue], Amounts], view: AdmissionView, name: str) -> "_Children":
        """The children of a queue; queues without a parent are children of root."""
        found = [*view.children(name), *(view.children("") if name == keys.ROOT_QUEUE else ())]
        return cls(found, of)

    def names(self, but: Collection[str]) -> set[str]:
        """Resources that any of them names."""
        if self._naming is None:
            self._naming = Counter(name for amounts in self._found.values() for name in amounts)
        left_out = Counter(name for each in but for name in self._found.get(each, ()))
        if not left_out:
            return set(self._naming)
        return {name for name, count in self._naming.items() if count > left_out[name]}

    def total(self, name: str, but: Collection[str]) -> int:
        """The sum of a resource; equal texts are parsed once, since siblings are often alike."""
        total = self._totals.get(name)
        if total is None:
            counts = Counter([amounts.get(name) for amounts in self._found.values()])
            total = sum((milli(value) or 0) * count for value, count in counts.items())
            self._totals[name] = total
        return total - sum(
            milli(self._found[each].get(name)) or 0 for each in but if each in self._found
        )

    def parts(self, name: str, but: Collection[str]) -> str:
        """The largest parts of a sum, with their queues."""
        ordered = self._ordered.get(name)
        if ordered is None:
            parts = [(milli(found.get(name)), whose) for whose, found in self._found.items()]
            ordered = sorted((-amount, whose) for amount, whose in parts if amount)
            self._ordered[name] = ordered
        shown = islice((each for each in ordered if each[1] not in but), LISTED + 1)
        return first_ten(f'"{whose}" ({format_milli(-amount)})' for amount, whose in shown)


class _Share(NamedTuple):
    """One kind of quantity that is summed.

    Attributes:
        noun: Its name in messages.
        of: Returns a queue's quantities.
        siblings: The rule about it and its siblings'.
        children: The rule about it and those below.
        paths: Paths of limits in root, the nearest first; in other queues only the first one counts.
        below: Returns the quantities of a queue's children.
    """

    noun: str
    of: Callable[[Queue], Amounts]
    siblings: Rule
    children: Rule
    paths: tuple[str, ...]
    below: Callable[[AdmissionView, str], _Children]

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
_SHARES = tuple(
    _Share(noun, AMOUNTS[paths[0]], *rules, paths, partial(_Children.of, AMOUNTS[paths[0]]))
    for noun, rules, paths in (
        ("guarantee", (Q_SIB_GUAR, Q_CHILD_GUAR), _PATHS),
        ("deserved", (Q_SIB_DES, Q_CHILD_DES), _PATHS[1:]),
    )
)


def sums(case: Case, queue: Queue, _: Queue | None) -> Iterator[Excess]:
    """Find sums above the share of the queue above, if this queue is involved."""
    name = queue.metadata.name
    if (parent := Tree(case.view, queue).parent) is not None:
        above = parent.metadata.name
        for share in _SHARES:
            own = {name: each for name, each in readable(share.of(queue)).items() if each > 0}
            if limits := share.limits(parent, own):
                children = case.view.derived(share.below, above)
                but = {name, above, keys.ROOT_QUEUE}
                yield from _sums(share, parent, limits, children, but, own)
    if name:
        for share in _SHARES:
            children, but = case.view.derived(share.below, name), {name, keys.ROOT_QUEUE}
            limits = share.limits(queue, children.names(but))
            yield from _sums(share, queue, limits, children, but, {})


def _sums(
    share: _Share,
    above: Queue,
    limits: Mapping[str, tuple[int, str]],
    children: _Children,
    but: Collection[str],
    own: Mapping[str, int],
) -> Iterator[Excess]:
    """Find sums of other queues and of what the checked queue has itself; if it has none, they are below it."""
    for name, (limit, path) in limits.items():
        mine = own.get(name, 0)
        total = mine + children.total(name, but)
        if total <= limit:
            continue
        parts = children.parts(name, but)
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
