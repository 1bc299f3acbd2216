import random
import time

from pumice.webhook.rules.dependencies import cycle


def test_no_circle_in_a_graph_without_one() -> None:
    assert list(cycle({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []})) == []


def test_a_circle_is_told_from_its_first_node() -> None:
    assert list(cycle({"x": ["a"], "a": ["b"], "b": ["c"], "c": ["a"]})) == [["a", "b", "c"]]


def test_circles_that_do_not_touch_are_told_one_by_one() -> None:
    assert list(cycle({"a": ["a"], "b": ["c"], "c": ["b"]})) == [["a"], ["b", "c"]]


def test_a_deep_chain_ends_no_stack() -> None:
    edges = {str(n): [str(n + 1)] for n in range(50_000)} | {"50000": []}
    assert list(cycle(edges)) == []


def test_the_densest_graph_takes_time_by_its_edges() -> None:
    """Every path of a layered graph would be looked at by a search without memory: 30 to the 40."""
    layers = [[f"{layer}-{node}" for node in range(30)] for layer in range(40)]
    edges = {node: list(layers[i + 1]) for i, layer in enumerate(layers[:-1]) for node in layer}
    edges |= {node: [] for node in layers[-1]}
    started = time.process_time()
    assert list(cycle(edges)) == []
    assert time.process_time() - started < 2.0


def test_a_circle_is_found_in_any_order_of_the_nodes() -> None:
    edges = {"a": ["b"], "b": ["c", "d"], "c": [], "d": ["a"]}
    for seed in range(20):
        nodes = list(edges)
        random.Random(seed).shuffle(nodes)
        assert [sorted(found) for found in cycle({node: edges[node] for node in nodes})] == [
            ["a", "b", "d"]
        ]
