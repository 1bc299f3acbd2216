"""The network as a tree of domains.

A domain is a HyperNode, or the root, which contains every node. A HyperNode has one parent, and the tier of the parent is above its
own, so that links never form a cycle. A link that breaks one of these rules is set aside, and `faults` says so; everything else is
as if the link were not there. Domains of several trees stand side by side below the root, and a node may be in several of them.

Links, and masks of domains, are made when they are first read after a change.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

import numpy as np

from pumice.api.hypernodes import HyperNode
from pumice.api.meta import parse_time
from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.nodes import NodeTable
from pumice.scheduler.topology.members import MemberTable, Selectors


class Domain:
    """Nodes that are near to each other; it is replaced by another object when a HyperNode changes.

    Attributes:
        name: Name of the HyperNode; empty for the root.
        tier: How far apart its nodes are; of the root one more than the highest.
        parent: The domain around it; None for the root.
        children: Domains in it, by name; of the root those without another parent.
    """

    def __init__(self, name: str, tier: int, tier_name: str = "") -> None:
        self.name = name
        self.tier = tier
        self.tier_name = tier_name
        self.parent: Domain | None = None
        self.children: Sequence[Domain] = ()

    def __lt__(self, other: "Domain") -> bool:
        """Whether its tier is lower, or of equal ones its name is first."""
        return (self.tier, self.name) < (other.tier, other.name)

    def and_above(self) -> Iterator["Domain"]:
        """The domain, its parent, and so on up to the root."""
        domain: Domain | None = self
        while domain is not None:
            yield domain
            domain = domain.parent


class NetworkTree:
    """All domains, of the HyperNodes and nodes that are there.

    Read it only after `NodeTable.settle`, because masks are by row.
    """

    def __init__(self, table: NodeTable) -> None:
        """An empty tree over the rows of a table, which gets the same nodes."""
        self._table = table
        self._members = MemberTable()
        self._hyper_nodes: dict[str, tuple[HyperNode, Selectors]] = {}
        self._ready: set[str] = set()
        self._is_linked = False
        self._root = Domain("", 1)
        self._domains: dict[str, Domain] = {}
        self._tiers: dict[str, int] = {}
        self._faults: dict[str, tuple[str, ...]] = {}
        self._layout = -1
        self._masks: dict[str, Bools] = {}

    # -- events ------------------------------------------------------------------------------

    def set_hyper_node(self, hyper_node: HyperNode) -> bool:
        """Add or update a HyperNode; one that is being deleted is removed. True if a relevant field changed."""
        meta = hyper_node.metadata
        if meta.deletion_timestamp is not None:
            return self.remove_hyper_node(meta.name)
        old, _ = self._hyper_nodes.get(meta.name, (None, None))
        created = meta.creation_timestamp
        if old and old.spec == hyper_node.spec and old.metadata.creation_timestamp == created:
            return False
        self._hyper_nodes[meta.name] = hyper_node, Selectors(hyper_node)
        self._is_linked = False
        return True

    def remove_hyper_node(self, name: str) -> bool:
        """Remove a HyperNode; True if it existed."""
        if self._hyper_nodes.pop(name, None) is None:
            return False
        self._is_linked = False
        return True

    def set_node(self, name: str, labels: Mapping[str, str] | None, *, is_ready: bool) -> bool:
        """Add or update a node; True if what a HyperNode contains changed."""
        has_moved = self._members.set_node(name, labels)
        is_other = is_ready is not (name in self._ready)
        if is_other:
            (self._ready.add if is_ready else self._ready.discard)(name)
            has_moved |= name in self._members.holders
        if has_moved or is_other:
            self._masks = {}
        return has_moved

    def remove_node(self, name: str) -> bool:
        """Remove a node; True if a HyperNode contained it."""
        self._ready.discard(name)
        self._masks = {}
        return self._members.remove_node(name)

    # -- questions ---------------------------------------------------------------------------

    @property
    def has_hyper_nodes(self) -> bool:
        """Whether there is any domain other than the root."""
        return bool(self._hyper_nodes)

    @property
    def root(self) -> Domain:
        """The domain of all nodes."""
        self._link()
        return self._root

    @property
    def domains(self) -> Mapping[str, Domain]:
        """The domain of each HyperNode by name, also of those without nodes, in the order of names; without the root."""
        self._link()
        return self._domains

    @property
    def faults(self) -> Mapping[str, Sequence[str]]:
        """What is set aside, as sentences, by name of the HyperNode that has to be changed."""
        self._link()
        return self._faults

    def tier_named(self, name: str) -> int | None:
        """The tier of a name; the lowest one if it has several, None if no HyperNode has it."""
        self._link()
        return self._tiers.get(name)

    def mask(self, domain: Domain) -> Bools:
        """Rows of the ready nodes in a domain; it cannot be written to."""
        return self.masks[domain.name]

    @property
    def masks(self) -> Mapping[str, Bools]:
        """The masks of all domains by name; another mapping whenever one of them has changed."""
        self._link()
        if not self._masks or self._layout != self._table.layout:
            self._layout = self._table.layout
            self._masks = self._find_masks()
        return self._masks

    def _find_masks(self) -> dict[str, Bools]:
        order = self._table.order
        ready = np.array([each.is_ready for each in order], dtype=np.bool_)
        inside: defaultdict[str, list[int]] = defaultdict(list)
        if holders := self._members.holders:
            row_of = {order[row].name: row for row in np.flatnonzero(ready).tolist()}
            for name in holders.keys() & row_of.keys():
                for holder in holders[name]:
                    inside[holder].append(row_of[name])
        found = {"": ready}
        for domain in sorted(self._domains.values()):  # children come first
            mask = found[domain.name] = np.zeros(len(order), dtype=np.bool_)
            mask[inside[domain.name]] = True
            for child in domain.children:
                mask |= found[child.name]
        for mask in found.values():
            mask.flags.writeable = False
        return found

    def narrowest(self, rows: Iterable[int]) -> Domain:
        """The domain of the lowest tier that has all of some nodes, ready or not; the root for none of them."""
        return min(self.around(rows), default=self._root)

    def around(self, rows: Iterable[int]) -> Set[Domain]:
        """All domains that have all of some nodes, ready or not: in one tree those above each other; empty for no nodes."""
        self._link()
        shared: set[Domain] | None = None
        for name in {self._table.order[row].name for row in rows}:
            holders = self._members.holders.get(name, ())
            around = {domain for each in holders for domain in self._domains[each].and_above()}
            around.add(self._root)
            shared = around if shared is None else shared & around
        return shared or set()

    # -- links -------------------------------------------------------------------------------

    def _link(self) -> None:
        """Make the domains and their links, if a HyperNode has changed."""
        if self._is_linked:
            return
        self._is_linked = True
        self._masks = {}
        self._members.set_selectors({name: each for name, (_, each) in self._hyper_nodes.items()})
        domains = self._domains = {
            name: Domain(name, spec.tier, spec.tier_name)
            for name, spec in sorted(
                (name, each.spec) for name, (each, _) in self._hyper_nodes.items()
            )
        }
        faults: dict[str, list[str]] = {
            name: [fault] if (fault := self._hyper_nodes[name][1].fault) else [] for name in domains
        }
        self._root = Domain("", 1 + max((each.tier for each in domains.values()), default=0))
        children: dict[str, list[Domain]] = {}
        for name in sorted(domains, key=self._age):
            for member in sorted(self._hyper_nodes[name][1].hyper_nodes & domains.keys()):
                problem = _problem(domains[name], domains[member])
                if problem:
                    faults[name].append(problem)
                else:
                    domains[member].parent = domains[name]
        for domain in domains.values():
            domain.parent = domain.parent or self._root
            children.setdefault(domain.parent.name, []).append(domain)
        for domain in (self._root, *domains.values()):
            domain.children = tuple(children.get(domain.name, ()))
        self._name_tiers(faults)
        self._faults = {name: _few(found) for name, found in faults.items() if found}

    def _age(self, name: str) -> tuple[float, str]:
        """The order of HyperNodes by creation."""
        created = self._hyper_nodes[name][0].metadata.creation_timestamp
        return parse_time(created) or 0.0, name

    def _name_tiers(self, faults: dict[str, list[str]]) -> None:
        """Note the tier of each name, and the first HyperNode of each further tier with the same name."""
        self._tiers = {}
        last: dict[str, int] = {}
        for domain in sorted(self._domains.values()):
            name, tier = domain.tier_name, domain.tier
            if not name:
                continue
            lowest = self._tiers.setdefault(name, tier)
            if last.get(name, lowest) != tier:
                faults[domain.name].append(
                    f'the tier name "{name}" stands for tier {lowest}, the lowest that has it, and not for {tier}'
                )
            last[name] = tier


_MOST_FAULTS = 3
"""Sentences about a HyperNode; it may have any number of members."""


def _few(faults: Sequence[str]) -> tuple[str, ...]:
    left = len(faults) - _MOST_FAULTS
    return (*faults[:_MOST_FAULTS], *([f"{left} more members are set aside"] if left > 0 else ()))


def _problem(parent: Domain, child: Domain) -> str:
    """Why a HyperNode does not get a member; empty if it does."""
    if parent is child:
        return f"{parent.name} is a member of itself"
    if parent.tier <= child.tier:
        return (
            f"{child.name} (tier {child.tier}) is no member of {parent.name} (tier {parent.tier}): "
            "the tier of a HyperNode must be above that of its members"
        )
    if child.parent is not None:
        return (
            f"HyperNodes {child.parent.name} and {parent.name} both claim {child.name}, "
            f"which stays in {child.parent.name}, the first by age, then by name"
        )
    return ""
