"""What holds in every network: limits, wishes, and the lowest tier, compared with a search through all domains.

Clusters have up to eight nodes. Between cycles pods of gangs are deleted and made again, others end, and the scheduler may be killed: then
some of its bindings did not happen, and another process that knows only the objects takes over.
"""

import copy
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.kit.examples import examples
from tests.unit.scheduler.network_clusters import Cluster, pod
from tests.unit.scheduler.scenarios import Raw

CPU = 8
CYCLES = 5
FILE = ["gang", "predicates", "network-topology-aware"]


@dataclass
class Tree:
    """HyperNodes as a case has them, and nodes of each by name; the root is empty."""

    fields: dict[str, Raw] = field(default_factory=dict)
    nodes: dict[str, frozenset[str]] = field(default_factory=dict)
    tiers: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, tier: int, nodes: list[str], below: list[str]) -> None:
        """A HyperNode of nodes and of other HyperNodes."""
        self.fields[name] = {"tier": tier, "nodes": nodes, "below": below}
        inside = frozenset(nodes).union(*[self.nodes[each] for each in below])
        self.nodes[name], self.tiers[name] = inside, tier

    def narrowest(self, nodes: set[str]) -> int:
        """Tier of the narrowest domain that has all of some nodes."""
        found = [self.tiers[name] for name, inside in self.nodes.items() if nodes <= inside]
        return min(found, default=self.root)

    @property
    def root(self) -> int:
        """Tier of the root."""
        return 1 + max(self.tiers.values(), default=0)


@st.composite
def trees(draw: st.DrawFn, count: int) -> Tree:
    """Racks next to each other, some of them below switches; some nodes in none, and maybe a second tree."""
    tree = Tree()
    names = [f"n{index}" for index in range(count)]
    racks: list[str] = []
    left = names[draw(st.integers(0, 1)) :]
    while left:
        size = draw(st.integers(1, 3))
        rack = f"r{len(racks)}"
        tree.add(rack, 1, left[:size], [])
        racks.append(rack)
        left = left[size:]
        if draw(st.integers(0, 4)) == 0:
            left = left[1:]
    tier = draw(st.integers(2, 3))
    for number in range(draw(st.integers(0, 2))):
        size = draw(st.integers(1, 3))
        if racks[:size]:
            tree.add(f"s{number}", tier, [], racks[:size])
            racks = racks[size:]
    if draw(st.integers(0, 3)) == 0:
        ring = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
        tree.add("a", draw(st.integers(1, 2)), sorted(ring), [])
    return tree


LIMITS: st.SearchStrategy[Raw] = st.sampled_from(
    [{"hard": 1}, {"hard": 2}, {"hard": 3}, {"hard": 4}, {"soft": True}, {}]
)


@st.composite
def networks(draw: st.DrawFn) -> tuple[Raw, Tree]:
    """A cluster without a gang."""
    count = draw(st.integers(2, 8))
    tree = draw(trees(count))
    names = [f"n{index}" for index in range(count)]
    used = {name: draw(st.integers(0, CPU)) for name in names}
    case = {
        "nodes": names,
        "tree": "none",
        "more": tree.fields,
        "used": {name: cpu for name, cpu in used.items() if cpu},
        "plugins": FILE,
    }
    return case, tree


def placed(case: Raw) -> list[str]:
    """Nodes of the gang after one cycle."""
    cluster = Cluster(case)
    result = cluster.cycle()
    assert not result.pipelined
    return cluster.nodes()


@examples(60)
@given(networks(), st.integers(1, 6), st.sampled_from([1, 2, 3, 4, 8]), LIMITS)
def test_equal_pods_get_the_lowest_tier_that_holds_them_and_of_it_the_best_domain(
    network: tuple[Raw, Tree], pods: int, cpu: int, limit: Raw
) -> None:
    case, tree = network
    nodes = placed(case | {"gang": {"pods": pods, "cpu": cpu} | limit})
    free = {name: (CPU - case["used"].get(name, 0)) // cpu for name in case["nodes"]}
    domains = [(tree.tiers[name], name, inside) for name, inside in tree.nodes.items()]
    domains.append((tree.root, "", frozenset(case["nodes"])))
    highest = limit.get("hard", tree.root)
    holding = [
        (tier, name, inside)
        for tier, name, inside in domains
        if tier <= highest and sum(free[node] for node in inside) >= pods
    ]
    if not limit:
        holding = [each for each in holding if not each[1]]
    if not holding:
        assert nodes == [""] * pods
        return
    assert all(nodes)
    if not limit:
        return
    lowest = min(tier for tier, _, _ in holding)
    assert tree.narrowest(set(nodes)) == lowest

    def score(inside: frozenset[str]) -> float:
        filled = sum(case["used"].get(node, 0) for node in inside) + pods * cpu
        return filled / (CPU * len(inside)) if filled <= CPU * len(inside) else 0.0

    best = min(
        (each for each in holding if each[0] == lowest),
        key=lambda each: (-score(each[2]), each[1]),
    )
    assert set(nodes) <= best[2]


@examples(60)
@given(
    networks(),
    st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=6),
    st.integers(1, 6),
)
def test_a_wish_decides_where_a_gang_is_placed_and_not_whether(
    network: tuple[Raw, Tree], sizes: list[int], least: int
) -> None:
    case, _ = network
    gang = {"pods": len(sizes), "cpu": sizes[0], "sizes": sizes, "min": min(least, len(sizes))}
    without = Cluster(case | {"gang": gang})
    wished = Cluster(case | {"gang": gang | {"soft": True}})
    for cluster in (without, wished):
        cluster.cycle()
    if any(without.nodes()):
        assert any(wished.nodes())
    elif len(set(sizes)) == 1:
        assert not any(wished.nodes())


@st.composite
def histories(draw: st.DrawFn) -> tuple[Raw, Tree, list[Raw]]:
    """A cluster with a gang, and what happens before each cycle."""
    case, tree = draw(networks())
    size = draw(st.sampled_from([1, 1, 2, 3]))
    pods = draw(st.integers(1, 6 // size)) * size
    gang: Raw = {"pods": pods, "cpu": draw(st.sampled_from([1, 2, 4, 8]))} | draw(LIMITS)
    gang["min"] = draw(st.integers(1, pods))
    if size > 1:
        parts = pods // size
        said: Raw = {"size": size, "min": draw(st.integers(0, parts))}
        gang["parts"] = said | draw(LIMITS)
    events = [
        {
            "killed": draw(st.booleans()),
            "bound": draw(st.integers(0, 6)),
            "again": draw(st.lists(st.integers(0, pods - 1), max_size=2, unique=True)),
            "ends": draw(st.lists(st.sampled_from(case["nodes"]), max_size=2)),
            "comes": draw(st.dictionaries(st.sampled_from(case["nodes"]), st.integers(1, 3))),
        }
        for _ in range(CYCLES)
    ]
    return case | {"gang": gang}, tree, events


@examples(60)
@given(histories())
def test_limits_hold_at_any_time(history: tuple[Raw, Tree, list[Raw]]) -> None:
    case, tree, events = history
    cluster = Cluster(case)
    for event in events:
        cluster.cycle(event["bound"] if event["killed"] else None)
        if event["killed"]:
            cluster = Cluster(case, cluster.manifests)
        check(cluster, case["gang"], tree)
        for index in event["again"]:
            cluster.make_again(f"pg-worker-{index}")
        for node in event["ends"]:
            cluster.end(f"used-{node}")
        for node, cpu in event["comes"].items():
            room = CPU - cluster.used(node)
            if room >= cpu:
                other: dict[str, Any] = pod(f"used-{node}", {"cpu": str(cpu)}, node)
                if ("Pod", f"used-{node}") not in cluster.manifests:
                    cluster.manifests["Pod", f"used-{node}"] = other
                    cluster.show(other)

    fresh = Cluster(case, copy.deepcopy(cluster.manifests))
    fresh.cycle()
    cluster.cycle()
    assert cluster.nodes() == fresh.nodes(), "what it has found out before keeps no gang waiting"


def check(cluster: Cluster, gang: Raw, tree: Tree) -> None:
    """The gang, and each of its partitions, is in one domain of its limit."""
    nodes = cluster.nodes()
    parts = gang.get("parts")
    units = [(gang, nodes)]
    if parts is not None:
        size = parts["size"]
        units += [(parts, nodes[at : at + size]) for at in range(0, len(nodes), size)]
    for said, where in units:
        held = {node for node in where if node}
        if held and "hard" in said:
            assert tree.narrowest(held) <= said["hard"]
