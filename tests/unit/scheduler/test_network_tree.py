"""The tree of HyperNodes: the cases, and that events lead to the same tree as a new start."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.hypernodes import HyperNode
from tests.kit.counting import calls
from tests.kit.growth import sizes_of
from tests.kit.tables import table
from tests.unit.scheduler.network_trees import Network, Raw


@pytest.mark.parametrize("case", table("scheduler/network_trees"), ids=lambda case: case["id"])
def test_what_the_tree_is(case: Raw) -> None:
    network = Network()
    for name, fields in case["hyperNodes"].items():
        network.set(name, **fields)
    for index in range(8):
        network.set_node(f"n{index}", {"rack": "r1"} if index in (2, 3) else {})
    for name in case.get("more", ()):
        network.set_node(name)
    tree = network.settle()
    parents = {name: each.parent.name for name, each in tree.domains.items() if each.parent}
    assert parents == case["parents"]
    for name, nodes in case.get("nodes", {}).items():
        assert network.in_domain(tree.domains[name]) == nodes, name
    if "tiers" in case:
        assert network.by_tier() == case["tiers"]
    for node, name in case.get("lowest", {}).items():
        assert tree.narrowest(network.rows(node)).name == name, node
    for nodes, name in case.get("narrowest", {}).items():
        assert tree.narrowest(network.rows(nodes)).name == name, nodes
    for name, tier in case.get("named", {}).items():
        assert tree.tier_named(name) == tier, name
    assert {name: list(found) for name, found in tree.faults.items()} == case.get("faults", {})
    assert tree.has_hyper_nodes is bool(case["hyperNodes"])


def test_nodes_that_are_not_ready_do_not_count_but_are_where_they_are() -> None:
    network = Network()
    network.set("s0", nodes=["n0", "n1"])
    network.set("s1", tier=2, below=["s0"])
    network.set_node("n0")
    network.set_node("n1", is_ready=False)
    tree = network.settle()
    assert network.in_domain(tree.domains["s1"]) == network.in_domain(tree.root) == "n0"
    assert tree.narrowest(network.rows("n1")).name == "s0"
    assert network.set_node("n0", is_ready=False)
    assert not network.by_tier(), "a domain without ready nodes is never chosen"
    assert network.set_node("n0")
    assert network.in_domain(tree.domains["s1"]) == "n0"


def test_a_node_in_no_hyper_node_counts_in_the_cluster_while_it_is_ready() -> None:
    network = Network()
    network.set_node("n0")
    tree = network.settle()
    assert network.in_domain(tree.root) == "n0"
    network.set_node("n0", is_ready=False)
    assert network.in_domain(tree.root) == ""


@pytest.mark.parametrize(
    "fields",
    [{"labels": {"matchLabels": {"rack": "r0"}}}, {"regex": "^n"}],
    ids=["labels", "regex"],
)
def test_a_selector_that_is_known_finds_the_nodes_of_now(fields: Raw) -> None:
    network = Network()
    network.set("s0", **fields)
    network.set_node("n0", {"rack": "r0"})
    network.set_node("n1", {"rack": "r0"})
    network.remove_node("n0")
    network.set("s1", **fields)
    tree = network.settle()
    assert [network.in_domain(each) for each in tree.domains.values()] == ["n1", "n1"]
    assert tree._members.holders == {"n1": {"s0", "s1"}}


def test_a_hyper_node_that_is_being_deleted_is_out_at_once() -> None:
    network = Network()
    network.set_node("n0")
    assert network.set("s0", nodes=["n0"])
    going = {"metadata": {"name": "s0", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert network.tree.set_hyper_node(msgspec.convert(going, HyperNode))
    assert not network.tree.has_hyper_nodes
    assert not network.tree.remove_hyper_node("s0")


def test_only_what_matters_is_a_change() -> None:
    network = Network()
    network.set_node("n0", {"rack": "r0"})
    assert network.set("s0", labels={"matchLabels": {"rack": "r0"}})
    assert not network.set("s0", labels={"matchLabels": {"rack": "r0"}})
    network.set_node("n1")
    masks = network.settle().masks
    assert not network.set_node("n0", {"rack": "r0"})
    assert not network.set_node("n0", {"rack": "r0", "other": "x"})
    assert not network.set_node("n1", {"rack": "r1"}), "it is in no HyperNode"
    assert network.settle().masks is masks
    assert network.set_node("n1", {"rack": "r0"})
    assert network.remove_node("n1")
    assert network.set_node("n0", {"rack": "r1"})
    assert network.settle().masks is not masks


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ([{"regexMatch": {"pattern": f"n{index}x"}} for index in range(1000)], "members[477]"),
        ([{"regexMatch": {"pattern": rf"\pL{{{5 + index}}}"}} for index in range(40)], "members["),
        (
            [{"labelMatch": {"matchLabels": {"a": "b" * 9000}}}] * 9,
            "members[4].selector.labelMatch",
        ),
    ],
    ids=["many patterns", "large patterns", "long selectors"],
)
def test_what_is_compared_with_each_node_is_bounded(members: list[Raw], path: str) -> None:
    network = Network()
    network.set_node("n0")
    network.set("s0", nodes=["n0"], raw=[{"type": "Node", "selector": each} for each in members])
    (fault,) = network.settle().faults["s0"]
    assert f"spec.{path}" in fault
    assert "is not read" in fault
    assert network.in_domain(network.tree.domains["s0"]) == "n0"


_NODES = [f"n{index}" for index in range(6)]
_HYPER_NODES = [f"h{index}" for index in range(5)]
_LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
_EXPRESSIONS = st.fixed_dictionaries(
    {
        "key": st.sampled_from("ab"),
        "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
        "values": st.lists(st.sampled_from("xy"), max_size=2),
    }
)
_SELECTORS = st.fixed_dictionaries(
    {}, optional={"matchLabels": _LABELS, "matchExpressions": st.lists(_EXPRESSIONS, max_size=2)}
)
_FIELDS = st.fixed_dictionaries(
    {
        "tier": st.integers(0, 3),
        "nodes": st.lists(st.sampled_from(_NODES), max_size=2),
        "below": st.lists(st.sampled_from(_HYPER_NODES), max_size=3),
        "regex": st.none() | st.sampled_from(["n1", "^n[2-3]$", "n[0-4]?5", "^n", "("]),
        "labels": st.none() | _SELECTORS,
        "created": st.none() | st.integers(0, 3),
    },
    optional={"tierName": st.sampled_from("xy")},
)
_EVENTS = st.one_of(
    st.tuples(st.just("set"), st.sampled_from(_HYPER_NODES), _FIELDS),
    st.tuples(st.just("remove"), st.sampled_from(_HYPER_NODES), st.none()),
    st.tuples(st.just("set node"), st.sampled_from(_NODES), st.tuples(_LABELS, st.booleans())),
    st.tuples(st.just("remove node"), st.sampled_from(_NODES), st.none()),
    st.tuples(st.just("read"), st.none(), st.none()),
)


@given(st.lists(_EVENTS, max_size=25))
def test_events_lead_to_the_same_tree_as_a_new_start(events: list[tuple[str, str, Any]]) -> None:
    network = Network()
    nodes: dict[str, tuple[dict[str, str], bool]] = {}
    hyper_nodes: dict[str, Raw] = {}
    for event, name, fields in events:
        match event:
            case "set":
                hyper_nodes[name] = fields
                network.set(name, **fields)
            case "remove":
                hyper_nodes.pop(name, None)
                network.tree.remove_hyper_node(name)
            case "set node":
                nodes[name] = fields
                network.set_node(name, fields[0], is_ready=fields[1])
            case "remove node":
                nodes.pop(name, None)
                network.remove_node(name)
            case _:
                before, masks = network.picture(), network.tree.masks
                assert network.picture() == before
                assert network.tree.masks is masks
    anew = Network()
    for name, (labels, is_ready) in sorted(nodes.items()):
        anew.set_node(name, labels, is_ready=is_ready)
    for name, fields in sorted(hyper_nodes.items()):
        anew.set(name, **fields)
    assert network.picture() == anew.picture()
    for name in list(hyper_nodes):
        network.tree.remove_hyper_node(name)
    for name in list(nodes):
        network.remove_node(name)
    network.picture()
    assert +sizes_of(network.tree._members) == Counter()
    for domain in network.tree.domains.values():
        assert domain.parent is not None
        assert domain.parent.tier > domain.tier


def test_an_event_of_a_node_costs_the_same_in_a_large_cluster() -> None:
    """5,000 nodes in 500 HyperNodes by name, labels and patterns, with two tiers above them."""
    network = Network()
    for index in range(5000):
        network.set_node(f"node-{index}", {"rack": f"r{index // 10}", "zone": "z"})
    for rack in range(250):
        network.set(f"l{rack}", labels={"matchLabels": {"rack": f"r{rack}"}})
    for rack in range(125):
        network.set(f"x{rack}", nodes=[f"node-{2500 + 10 * rack + i}" for i in range(10)])
        network.set(f"p{rack}", regex=f"^node-{375 + rack}[0-9]$")
    network.set("top", tier=2, below=[f"l{rack}" for rack in range(250)])
    tree = network.settle()
    network.by_tier()

    def flap() -> None:
        for is_ready in (False, True):
            tree.set_node("node-17", {"rack": "r1", "zone": "z"}, is_ready=is_ready)

    assert calls(flap) < 100
    assert calls(network.by_tier) < 50 * 500, "it finds the ready nodes of each domain again"
    assert calls(lambda: tree.set_node("node-17", {"rack": "r2"}, is_ready=True)) < 100
    assert calls(lambda: tree.set_node("node-5000", {"rack": "r2"}, is_ready=True)) < 1000
    assert calls(lambda: tree.narrowest([17])) < 30
