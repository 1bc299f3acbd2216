"""Trees of HyperNodes over a table of nodes, for tests."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pumice.api.hypernodes import HyperNode
from pumice.api.meta import format_time
from pumice.api.nodes import Node
from pumice.scheduler.model.axis import Axis
from pumice.scheduler.model.nodes import NodeTable
from pumice.scheduler.topology.levels import Levels
from pumice.scheduler.topology.tree import Domain, NetworkTree

Raw = dict[str, Any]


def hyper_node(
    name: str,
    tier: int = 1,
    *,
    nodes: Iterable[str] = (),
    below: Iterable[str] = (),
    regex: str | None = None,
    labels: Raw | None = None,
    raw: Iterable[Raw] = (),
    created: float | None = None,
    **spec: Any,
) -> Raw:
    """A HyperNode as users write it: members by name, by a pattern, by labels, and as they are."""
    members = [_exact("Node", each) for each in nodes]
    members += [_exact("HyperNode", each) for each in below]
    if regex is not None:
        members.append({"type": "Node", "selector": {"regexMatch": {"pattern": regex}}})
    if labels is not None:
        members.append({"type": "Node", "selector": {"labelMatch": labels}})
    metadata: Raw = {"name": name}
    if created is not None:
        metadata["creationTimestamp"] = format_time(created)
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": metadata,
        "spec": {"tier": tier, "members": [*members, *raw]} | spec,
    }


def _exact(kind: str, name: str) -> Raw:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


class Network:
    """A tree and the table of its nodes, fed together as the scheduler's state does."""

    def __init__(self) -> None:
        self.table = NodeTable(Axis(), {})
        self.tree = NetworkTree(self.table)
        self.levels = Levels(self.tree)

    def set_node(
        self, name: str, labels: Mapping[str, str] | None = None, *, is_ready: bool = True
    ) -> bool:
        """Add or update a node."""
        node = msgspec.convert(
            {
                "metadata": {"name": name, "labels": dict(labels or {})},
                "status": {"conditions": [{"type": "Ready", "status": str(is_ready)}]},
            },
            Node,
        )
        self.table.set(node, self.table.read(node))
        return self.tree.set_node(name, node.metadata.labels, is_ready=node.is_ready)

    def remove_node(self, name: str) -> bool:
        """Remove a node."""
        self.table.remove(name)
        return self.tree.remove_node(name)

    def set(self, name: str, **fields: Any) -> bool:
        """Add or update a HyperNode; see `hyper_node`."""
        return self.tree.set_hyper_node(msgspec.convert(hyper_node(name, **fields), HyperNode))

    def settle(self) -> NetworkTree:
        """The tree, ready to be read."""
        self.table.settle()
        return self.tree

    def rows(self, names: str) -> list[int]:
        """Rows of nodes whose names are separated by spaces."""
        return [self.table.row_of(name) for name in names.split()]

    def in_domain(self, domain: Domain) -> str:
        """Names of the ready nodes in a domain."""
        return " ".join(self.table.names[row] for row in self.tree.mask(domain).nonzero()[0])

    def by_tier(self) -> dict[int, list[str]]:
        """Names of the domains with ready nodes, by tier."""
        self.levels.settle()
        root = self.settle().root
        sets = [each.domains for each in self.levels.below(root, root.tier) if len(each)]
        return {found[0].tier: [each.name for each in found] for found in sets}

    def picture(self) -> Raw:
        """All that can be asked of the tree, as data."""
        tree = self.settle()
        return {
            "domains": [
                (each.name, each.tier, each.tier_name, each.parent and each.parent.name)
                for each in (tree.root, *tree.domains.values())
            ],
            "children": {
                each.name: [child.name for child in each.children]
                for each in (tree.root, *tree.domains.values())
            },
            "nodes": {
                each.name: self.in_domain(each) for each in (tree.root, *tree.domains.values())
            },
            "lowest": [tree.narrowest([row]).name for row in range(len(self.table))],
            "by tier": self.by_tier(),
            "names": {name: tree.tier_named(name) for name in ("x", "y", "")},
            "faults": dict(tree.faults),
        }
