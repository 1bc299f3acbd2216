import itertools
import random

from pumice.webhook.rules.jobs.depends_on import cycle
from tests.kit.counting import calls

MOST_CALLS = 5
"""Functions called for each node and each edge."""


def size(edges: dict[str, list[str]]) -> int:
    """Nodes and edges of a graph."""
    return len(edges) + sum(map(len, edges.values()))


def test_no_circle_in_a_graph_without_one() -> None:
    assert list(cycle({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []})) == []


def test_a_cycle_is_reported_from_its_first_node() -> None:
    assert list(cycle({"x": ["a"], "a": ["b"], "b": ["c"], "c": ["a"]})) == [["a", "b", "c"]]


def test_cycles_that_do_not_touch_are_reported_one_by_one() -> None:
    assert list(cycle({"a": ["a"], "b": ["c"], "c": ["b"]})) == [["a"], ["b", "c"]]


def test_cycles_that_one_search_meets_are_reported_each() -> None:
    edges = {"a": ["b", "c"], "b": ["a"], "c": ["d"], "d": ["e", "f"], "e": ["d"], "f": ["c"]}
    assert list(cycle(edges)) == [["a", "b"], ["d", "e"]]
    apart = {"a": ["b", "c"], "b": ["a"], "c": ["d"], "d": ["c"]}
    assert list(cycle(apart)) == [["a", "b"], ["c", "d"]]


def test_a_cycle_is_reported_of_all_nodes_that_lead_to_each_other() -> None:
    """Compared with what can be reached from where, on a thousand small graphs."""
    for seed in range(1000):
        chance = random.Random(seed)
        nodes = [str(n) for n in range(chance.randint(1, 7))]
        edges = {
            node: chance.sample(nodes, chance.randint(0, min(3, len(nodes)))) for node in nodes
        }
        told = list(cycle(edges))
        for circle in told:
            assert all(b in edges[a] for a, b in zip(circle, circle[1:] + circle[:1], strict=True))
        named = [node for circle in told for node in circle]
        assert len(named) == len(set(named))
        reached = {node: _reached(edges, node) for node in nodes}
        for node in nodes:
            if node in reached[node]:  # it stands in a circle, and somebody there is told
                assert any(each in reached[node] and node in reached[each] for each in named)


def _reached(edges: dict[str, list[str]], start: str) -> set[str]:
    found: set[str] = set()
    ahead = list(edges[start])
    while ahead:
        if (node := ahead.pop()) not in found:
            found.add(node)
            ahead.extend(edges[node])
    return found


def test_as_many_cycles_as_can_be_take_time_by_their_edges() -> None:
    """Of 300 nodes that all lead to each other, and of a long way with a way back from each step.

    A search that walked over a circle for each way into it would take the square of that.
    """
    nodes = [str(n) for n in range(300)]
    ring = {node: [each for each in nodes if each != node] for node in nodes}
    chain = [f"c{n}" for n in range(30_000)]
    back = {a: [chain[0], b] for a, b in itertools.pairwise(chain)} | {chain[-1]: [chain[0]]}
    back[chain[0]] = [chain[1]]
    assert [len(circle) for circle in cycle(ring)] == [2]
    assert [len(circle) for circle in cycle(back)] == [2]
    assert calls(lambda: list(cycle(ring))) < MOST_CALLS * size(ring)
    assert calls(lambda: list(cycle(back))) < MOST_CALLS * size(back)


def test_a_deep_chain_ends_no_stack() -> None:
    edges = {str(n): [str(n + 1)] for n in range(50_000)} | {"50000": []}
    assert list(cycle(edges)) == []


def test_the_densest_graph_takes_time_by_its_edges() -> None:
    """Every path of a layered graph would be looked at by a search without memory: 30 to the 40."""
    layers = [[f"{layer}-{node}" for node in range(30)] for layer in range(40)]
    edges = {node: list(layers[i + 1]) for i, layer in enumerate(layers[:-1]) for node in layer}
    edges |= {node: [] for node in layers[-1]}
    assert list(cycle(edges)) == []
    assert calls(lambda: list(cycle(edges))) < MOST_CALLS * size(edges)


def test_a_cycle_is_found_in_any_order_of_the_nodes() -> None:
    edges = {"a": ["b"], "b": ["c", "d"], "c": [], "d": ["a"]}
    for seed in range(20):
        nodes = list(edges)
        random.Random(seed).shuffle(nodes)
        assert [sorted(found) for found in cycle({node: edges[node] for node in nodes})] == [
            ["a", "b", "d"]
        ]
