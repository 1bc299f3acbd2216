"""Domains side by side, in columns: which rows each has, and sums over them.

A search asks the same of many domains at once: what they have free, and how many pods they hold. Their rows stand one after the
other in one column, so that a question costs a pass over it and not a look at each domain.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

import numpy as np

from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.topology.tree import Domain, NetworkTree

_KEPT = 256
"""Sets of domains that are kept of each kind."""


class SideBySide:
    """Some domains with ready nodes.

    Attributes:
        rows: Rows of the first one, of the second one, and so on.
        starts: Where those of each domain begin.
    """

    def __init__(self, domains: Sequence[Domain], rows: Sequence[Ints], nodes: int) -> None:
        """Put domains side by side, each with its rows, of so many nodes in all."""
        self.domains = domains
        self.rows: Ints = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
        sizes = [len(each) for each in rows]
        self.starts: Ints = np.cumsum([0, *sizes[:-1]]) if rows else np.zeros(0, dtype=np.int64)
        self._sizes = sizes
        self._nodes = nodes

    def __len__(self) -> int:
        return len(self.domains)

    def sums(self, values: Ints) -> Ints:
        """The sum of a value by row, for each domain."""
        if not self.domains:
            return np.zeros(0, dtype=np.int64)
        found: Ints = np.add.reduceat(values[self.rows], self.starts)
        return found

    def rows_of(self, place: int) -> Ints:
        """The rows of one of the domains."""
        start = int(self.starts[place])
        return self.rows[start : start + self._sizes[place]]

    @cached_property
    def around(self) -> Sequence[Sequence[int]]:
        """For each row places of the domains that have it."""
        found: list[list[int]] = [[] for _ in range(self._nodes)]
        for place in range(len(self.domains)):
            for row in self.rows_of(place).tolist():
                found[row].append(place)
        return found

    @cached_property
    def codes(self) -> Ints:
        """For each row the place of the domain that has it, the first one if several have; -1 for none."""
        found: Ints = np.full(self._nodes, -1, dtype=np.int64)
        for place in range(len(self.domains) - 1, -1, -1):
            found[self.rows_of(place)] = place
        return found


class Levels:
    """The domains of a tree as a search meets them; `settle` after the tree may have changed."""

    def __init__(self, tree: NetworkTree) -> None:
        """Begin with a tree, which is not read yet."""
        self.tree = tree
        self._rows: dict[str, Ints] = {}
        self._tiers = lru_cache(_KEPT)(self._find_tiers)
        self.children = lru_cache(_KEPT)(self._children)
        self._known: Mapping[str, Bools] = {}

    def settle(self) -> None:
        """Forget what is kept of the tree if domains, or rows of nodes, have changed."""
        if self._known is not self.tree.masks:
            self._known = self.tree.masks
            self._rows.clear()
            self._tiers.cache_clear()
            self.children.cache_clear()

    def rows(self, domain: Domain) -> Ints:
        """Rows of the ready nodes in a domain, ascending."""
        found = self._rows.get(domain.name)
        if found is None:
            found = self._rows[domain.name] = np.flatnonzero(self.tree.mask(domain))
        return found

    def _children(self, domain: Domain) -> SideBySide:
        """The domains directly in a domain, without those that have no ready node."""
        return self.side_by_side(domain.children)

    def below(self, domain: Domain, highest: int) -> Sequence[SideBySide]:
        """The domains in a domain, itself included, of a tier up to a highest one: tiers ascending, domains by name."""
        return self._tiers(domain, min(highest, domain.tier))

    def outwards(self, anchor: Domain, highest: int) -> Iterator[SideBySide]:
        """The domains of a tier up to a highest one, those first that are nearest to one of them: what is in that one, then what is around it.

        What is equally near is in the order of tiers, so that each set has one tier.
        """
        inner: Domain | None = None
        for each in anchor.and_above():
            if each.tier > highest:
                return
            if inner is None:
                yield from self.below(each, each.tier)
            else:
                yield from self._tiers(each, each.tier, inner)
            inner = each

    def _find_tiers(
        self, domain: Domain, highest: int, without: Domain | None = None
    ) -> Sequence[SideBySide]:
        """Domains in a domain by tier, except those in another one."""
        found: dict[int, list[Domain]] = {}
        ahead = [domain]
        while ahead:
            each = ahead.pop()
            if each is without:
                continue
            if each.tier <= highest:
                found.setdefault(each.tier, []).append(each)
            ahead.extend(each.children)
        return [self.side_by_side(sorted(found[tier])) for tier in sorted(found)]

    def side_by_side(self, domains: Sequence[Domain]) -> SideBySide:
        """Some domains, without those that have no ready node."""
        ready = [each for each in domains if len(self.rows(each))]
        rows = [self.rows(each) for each in ready]
        return SideBySide(ready, rows, len(self.tree.mask(self.tree.root)))
